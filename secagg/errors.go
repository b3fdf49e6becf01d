package secagg

import "errors"

// The errors of the protocol. Every refusal wraps exactly one of them, so that errors.Is tells a
// transport what happened.
var (
	// ErrTooFew: fewer clients, neighbours or shares than the session needs. No sum is opened.
	ErrTooFew = errors.New("secagg: too few")
	// ErrEquivocation: the server told two stories about who takes part or who vanished.
	ErrEquivocation = errors.New("secagg: the server equivocates")
	// ErrBothShares: after one share of a client was handed out, the server asked for the other one.
	ErrBothShares = errors.New("secagg: both shares of one client asked for")
	// ErrReplay: a message of another session, or a session id that was used before.
	ErrReplay = errors.New("secagg: replay")
	// ErrContext: a message of this session id under other parameters (arm, batch, modulus, noise,
	// policy state...).
	ErrContext = errors.New("secagg: other session parameters")
	// ErrLate: a message of a round that is closed, or of a client that was counted out.
	ErrLate = errors.New("secagg: late")
	// ErrEarly: a message of a round that has not begun.
	ErrEarly = errors.New("secagg: early")
	// ErrDuplicate: a second message of one sender in one round.
	ErrDuplicate = errors.New("secagg: duplicate")
	// ErrVersion: a message of another version of the format.
	ErrVersion = errors.New("secagg: unknown version")
	// ErrMalformed: a message that is not of the format (truncated, trailing bytes, impossible
	// length or kind).
	ErrMalformed = errors.New("secagg: malformed message")
	// ErrSignature: a signature that does not verify under the pinned key.
	ErrSignature = errors.New("secagg: bad signature")
	// ErrUnknown: a client that is not enrolled, or whose identity key is not pinned.
	ErrUnknown = errors.New("secagg: unknown client")
	// ErrSender: a message that names another sender than the one who sent it.
	ErrSender = errors.New("secagg: wrong sender")
	// ErrRange: a value outside the integers modulo m.
	ErrRange = errors.New("secagg: value out of range")
	// ErrDeadline: a round lasted longer than allowed.
	ErrDeadline = errors.New("secagg: deadline passed")
	// ErrClock: the clock went backwards, or leapt over a whole round.
	ErrClock = errors.New("secagg: the clock jumped")
	// ErrShares: the shares of a client do not belong to one secret, or not to the one
	// it committed to.
	ErrShares = errors.New("secagg: inconsistent shares")
	// ErrKey: a public key that is not a valid point, or is used twice.
	ErrKey = errors.New("secagg: bad public key")
	// ErrInfeasible: no graph gives the promised security at this size, corruption rate
	// and dropout rate.
	ErrInfeasible = errors.New("secagg: no graph is good enough")
	// ErrSession: a session or configuration that is not valid.
	ErrSession = errors.New("secagg: bad session")
	// ErrUnfinished: the protocol has not ended.
	ErrUnfinished = errors.New("secagg: not finished")
)
