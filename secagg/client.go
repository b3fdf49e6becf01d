package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/cloudflare/circl/dh/x25519"
)

// Pinned gives the identity key of a client, as it was enrolled. It must not come from the
// server of the session.
type Pinned func(client uint32) (ed25519.PublicKey, bool)

// PinnedKeys is a table as a [Pinned].
func PinnedKeys(keys map[uint32]ed25519.PublicKey) Pinned {
	return func(client uint32) (ed25519.PublicKey, bool) {
		k, ok := keys[client]
		return k, ok
	}
}

// ClientConfig is what a client brings to a session.
type ClientConfig struct {
	Session Session
	// ID is the client's number as enrolled, Identity its long-term key.
	ID       uint32
	Identity ed25519.PrivateKey
	// Server is the server's identity key, Pinned those of the other clients.
	Server ed25519.PublicKey
	Pinned Pinned
	// Used remembers past sessions; nil remembers nothing and leaves that to the caller.
	Used *Used
	// Rand is the source of secrets; nil is the operating system's. Anything else is for tests.
	Rand io.Reader
	// Clock is time.Now if nil.
	Clock func() time.Time
	// Timeout is the server's length of a round, [DefaultTimeout] if 0. The client waits
	// three times as long.
	Timeout time.Duration
}

// clientState is what a client waits for.
type clientState uint8

const (
	clientNew clientState = iota
	clientWaitsRoster
	clientWaitsDelivery
	clientWaitsSurvivors
	clientWaitsAcks
	clientDone
	clientFailed
)

// awaits is the kind of message that a state waits for.
func (s clientState) awaits() (k Kind, ok bool) {
	switch s {
	case clientWaitsRoster:
		return KindRoster, true
	case clientWaitsDelivery:
		return KindDelivery, true
	case clientWaitsSurvivors:
		return KindSurvivors, true
	case clientWaitsAcks:
		return KindAcks, true
	}
	return 0, false
}

// Client is one client's side of a session, a state machine without input or output of its own:
// [Client.Start] gives the first message to the server, [Client.Step] takes a message of the server
// and gives the answer. It is not safe for concurrent use, and must not be copied.
//
// A message that does not come from the server (malformed, of another session, badly signed, a
// duplicate) is refused and changes nothing. A message by which the server itself breaks the protocol
// ends the client for good: every later call gives the same error, and its secrets are wiped.
type Client struct {
	cfg    ClientConfig
	env    envelope
	watch  watch
	rnd    io.Reader
	state  clientState
	failed error

	input []uint64
	// key and seed are the two secrets that are shared: of the mask key and of the self mask.
	key, seed field
	mask, enc keyPair

	params Params
	place  int
	seats  []clientSeat
	roster [hashSize]byte // of the graph that it was told
	told   []byte         // the survivors' message that was acted upon
	hash   [hashSize]byte
}

// clientSeat is a neighbour.
type clientSeat struct {
	id        uint32
	mask      x25519.Key
	send      channel
	receive   channel
	mixed     bool // its shares came, a pairwise mask with it is in the masked message
	held      bool // its shares could be opened
	key, seed field
	alive     bool // the server says that it survives
	// it mixed with this client, as it says itself; against a semi-honest server the
	// server's word is enough
	proven bool
}

// NewClient prepares a client with a message: Length numbers below the modulus, its noise share
// already added (the package knows nothing of noise).
func NewClient(cfg ClientConfig, message []uint64) (*Client, error) {
	if err := cfg.Session.Validate(); err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Identity) != ed25519.PrivateKeySize:
		return nil, fmt.Errorf("%w: identity key of %d bytes, must be %d", ErrSession,
			len(cfg.Identity), ed25519.PrivateKeySize)
	case len(cfg.Server) != ed25519.PublicKeySize:
		return nil, fmt.Errorf("%w: server key of %d bytes, must be %d", ErrSession, len(cfg.Server),
			ed25519.PublicKeySize)
	case cfg.Pinned == nil:
		return nil, fmt.Errorf("%w: no pinned keys", ErrSession)
	}
	if err := checkMessage(message, cfg.Session); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Timeout > math.MaxInt64/8 {
		return nil, fmt.Errorf("%w: timeout = %v is too long", ErrSession, cfg.Timeout)
	}
	w, err := newWatch(cfg.Clock, 3*cfg.Timeout)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, env: envelope{cfg.Session.ID, cfg.Session.Digest()}, watch: w,
		rnd: cfg.Rand, input: slices.Clone(message)}
	if c.rnd == nil {
		c.rnd = rand.Reader
	}
	return c, nil
}

func checkMessage(message []uint64, s Session) error {
	if len(message) != s.Length {
		return fmt.Errorf("%w: a message of %d numbers, must be %d", ErrRange, len(message), s.Length)
	}
	if s.Modulus == 0 {
		return nil
	}
	for i, v := range message {
		if v >= s.Modulus {
			return fmt.Errorf("%w: coordinate %d must be below the modulus %d", ErrRange, i, s.Modulus)
		}
	}
	return nil
}

// Start gives the first message to the server.
func (c *Client) Start() ([]byte, error) {
	if c.state == clientFailed {
		return nil, c.failed
	}
	if c.state != clientNew {
		return nil, fmt.Errorf("%w: the client has started", ErrDuplicate)
	}
	if c.cfg.Used != nil {
		if err := c.cfg.Used.Add(c.cfg.Session.ID); err != nil {
			return nil, c.fail(err)
		}
	}
	body, err := c.advertise()
	if err != nil {
		return nil, c.fail(err)
	}
	c.state = clientWaitsRoster
	c.watch.start()
	return c.env.seal(KindAdvertise, c.cfg.ID, body, c.cfg.Identity), nil
}

// Step takes a message of the server and gives the answer, or nil when there is nothing more to say.
func (c *Client) Step(message []byte) ([]byte, error) {
	if err := c.Tick(); err != nil {
		return nil, err
	}
	if c.state == clientNew {
		return nil, fmt.Errorf("%w: the client has not started", ErrEarly)
	}
	h, body, signature, err := open(message)
	if err != nil {
		return nil, err
	}
	if err := c.env.belongs(h); err != nil {
		return nil, err
	}
	if h.Kind.fromClient() {
		return nil, fmt.Errorf("%w: a server does not send %v", ErrMalformed, h.Kind)
	}
	if h.Client != c.cfg.ID {
		return nil, fmt.Errorf("%w: a message to client %d at client %d", ErrSender, h.Client, c.cfg.ID)
	}
	if err := c.env.authentic(message, signature, c.cfg.Server); err != nil {
		return nil, err
	}
	// From here on it is the server who speaks.
	wants, awaited := c.state.awaits()
	if h.Kind == KindSurvivors && c.told != nil && !bytes.Equal(body, c.told) {
		// A second story about who vanished: with one share opened it asks for the other one.
		if c.state == clientDone {
			return nil, c.fail(fmt.Errorf("%w: the second set of survivors differs from the first",
				ErrBothShares))
		}
		return nil, c.fail(fmt.Errorf("%w: the second set of survivors differs from the first",
			ErrEquivocation))
	}
	switch {
	case !awaited || h.Kind < wants:
		return nil, fmt.Errorf("%w: %v", ErrDuplicate, h.Kind)
	case h.Kind > wants:
		return nil, fmt.Errorf("%w: %v where %v is due", ErrEarly, h.Kind, wants)
	}
	body = bytes.Clone(body)
	var kind Kind
	var answer []byte
	var next clientState
	switch h.Kind {
	case KindRoster:
		kind, next = KindShares, clientWaitsDelivery
		answer, err = c.share(body)
	case KindDelivery:
		kind, next = KindMasked, clientWaitsSurvivors
		answer, err = c.maskInput(body)
	case KindSurvivors:
		if err = c.survive(body); err != nil {
			break
		}
		if c.cfg.Session.Mode == Malicious {
			kind, next = KindAck, clientWaitsAcks
			answer = c.acknowledge()
			break
		}
		kind, next = KindOpen, clientDone
		answer = c.openShares()
	case KindAcks:
		kind, next = KindOpen, clientDone
		if err = c.checkAcks(body); err == nil {
			answer = c.openShares()
		}
	}
	if err != nil {
		return nil, c.fail(err)
	}
	c.state = next
	if next == clientDone {
		c.wipe()
	} else {
		c.watch.start()
	}
	return c.env.seal(kind, c.cfg.ID, answer, c.cfg.Identity), nil
}

// Tick looks at the clock: the client gives up when the server stays silent beyond
// [Client.Deadline].
func (c *Client) Tick() error {
	switch c.state {
	case clientFailed:
		return c.failed
	case clientNew, clientDone:
		return nil
	}
	passed, err := c.watch.look()
	if err == nil && passed {
		err = fmt.Errorf("%w: nothing from the server", ErrDeadline)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// Deadline is when the client gives up. It is zero before the start and after the end.
func (c *Client) Deadline() time.Time {
	if c.state == clientNew || c.state == clientDone || c.state == clientFailed {
		return time.Time{}
	}
	return c.watch.deadline
}

// Done says that the client has said all it had to say.
func (c *Client) Done() bool { return c.state == clientDone }

func (c *Client) fail(err error) error {
	c.state, c.failed = clientFailed, err
	c.wipe()
	return err
}

// wipe forgets the secrets. The garbage collector may have left copies; this is a matter of hygiene
// and not a promise.
func (c *Client) wipe() {
	clear(c.input)
	c.key, c.seed, c.mask, c.enc = field{}, field{}, keyPair{}, keyPair{}
	for i := range c.seats {
		s := &c.seats[i]
		s.key, s.seed = field{}, field{}
		s.send.wipe()
		s.receive.wipe()
	}
}

func (c *Client) advertise() (body []byte, err error) {
	if c.key, err = draw(c.rnd); err != nil {
		return nil, err
	}
	if c.seed, err = draw(c.rnd); err != nil {
		return nil, err
	}
	if c.mask, err = maskKey(&c.key, c.env.digest, c.cfg.ID); err != nil {
		return nil, err
	}
	var e [32]byte
	if _, err := io.ReadFull(c.rnd, e[:]); err != nil {
		return nil, fmt.Errorf("secagg: drawing a key: %w", err)
	}
	c.enc = newKeyPair(e[:])
	_, check, err := selfMask(&c.seed, c.env.digest, c.cfg.ID)
	if err != nil {
		return nil, err
	}
	m, p := c.mask.public[:], c.enc.public[:]
	return advertise{m, p, check, ed25519.Sign(c.cfg.Identity,
		keysStatement(c.env.digest, c.cfg.ID, m, p))}.append(nil), nil
}

// share checks the graph and the neighbours' keys, and seals the two shares for each of them.
func (c *Client) share(body []byte) ([]byte, error) {
	m, err := readRoster(body)
	if err != nil {
		return nil, err
	}
	s := c.cfg.Session
	switch {
	case m.params.N < s.NMin:
		return nil, fmt.Errorf("%w: %d clients, n_min is %d", ErrTooFew, m.params.N, s.NMin)
	case m.params.N > s.Enrolled:
		return nil, fmt.Errorf("%w: %d clients, %d are enrolled", ErrInfeasible, m.params.N, s.Enrolled)
	case !m.params.Sufficient(s.Corrupt(), s.Delta, s.Mode, s.Complete):
		return nil, fmt.Errorf("%w: the server chose %+v", ErrInfeasible, m.params)
	}
	if err := s.enough(m.params); err != nil {
		return nil, err
	}
	keyShares, err := split(c.rnd, c.key, m.params.K, m.params.T)
	if err != nil {
		return nil, err
	}
	seedShares, err := split(c.rnd, c.seed, m.params.K, m.params.T)
	if err != nil {
		return nil, err
	}
	c.params, c.place = m.params, m.place
	c.seats = make([]clientSeat, m.params.K)
	seen := map[uint32]bool{c.cfg.ID: true}
	out := sealed{make([][]byte, m.params.K)}
	for i, r := range m.seats {
		if seen[r.id] {
			return nil, fmt.Errorf("%w: client %d sits twice at one table", ErrEquivocation, r.id)
		}
		seen[r.id] = true
		identity, ok := c.cfg.Pinned(r.id)
		if !ok {
			return nil, fmt.Errorf("%w: neighbour %d", ErrUnknown, r.id)
		}
		if !verify(identity, keysStatement(c.env.digest, r.id, r.mask, r.enc), r.keys) {
			return nil, fmt.Errorf("%w: on the keys of client %d", ErrSignature, r.id)
		}
		enc := x25519.Key(r.enc)
		send, receive, err := newChannels(&c.enc, c.cfg.ID, &enc, r.id, c.env.digest)
		if err != nil {
			return nil, err
		}
		if out.pairs[i], err = send.seal(&keyShares[i], &seedShares[i]); err != nil {
			return nil, err
		}
		c.seats[i] = clientSeat{id: r.id, mask: x25519.Key(r.mask), send: send, receive: receive}
	}
	c.roster = rosterHash(c.env.digest, c.params, c.order())
	return out.append(nil), nil
}

// maskInput opens the neighbours' shares and masks the message: x + PRG(b_i) + Σ_{j>i} PRG(s_ij) −
// Σ_{j<i} PRG(s_ij).
func (c *Client) maskInput(body []byte) ([]byte, error) {
	m, err := readSealed(body)
	if err != nil {
		return nil, err
	}
	if len(m.pairs) != c.params.K {
		return nil, fmt.Errorf("%w: %d neighbours, must be %d", ErrMalformed, len(m.pairs), c.params.K)
	}
	mod := c.cfg.Session.Modulus
	own, _, err := selfMask(&c.seed, c.env.digest, c.cfg.ID)
	if err != nil {
		return nil, err
	}
	masks := append(make([]mask, 0, c.params.K+1), mask{own, false})
	var tags [][]byte
	if c.cfg.Session.Mode == Malicious {
		tags = make([][]byte, c.params.K)
	}
	there := 0
	for i, pair := range m.pairs {
		if pair == nil {
			continue
		}
		there++
		s := &c.seats[i]
		s.mixed = true
		// A neighbour who seals rubbish stays in: its masks must cancel. Its shares are just not
		// there to be opened.
		if s.key, s.seed, err = s.receive.open(pair); err == nil {
			s.held = true
		}
		if tags != nil {
			tags[i] = s.send.mixedTag(c.roster)
		}
		pair, err := pairMask(&c.mask, c.cfg.ID, &s.mask, s.id, c.env.digest)
		if err != nil {
			return nil, err
		}
		masks = append(masks, pair)
	}
	if there < c.params.T {
		return nil, fmt.Errorf("%w: %d neighbours are left, the threshold is %d", ErrTooFew, there, c.params.T)
	}
	if err := addMasks(c.input, mod, masks); err != nil {
		return nil, err
	}
	return masked{widthOf(mod), c.input, tags}.append(nil), nil
}

// survive judges the set of survivors that the server names.
func (c *Client) survive(body []byte) error {
	m, err := readSurvivors(body)
	if err != nil {
		return err
	}
	if len(m.set) != c.params.N {
		return fmt.Errorf("%w: a set of %d clients, there are %d", ErrMalformed, len(m.set), c.params.N)
	}
	if want := len(c.seats); c.cfg.Session.Mode == Malicious && len(m.tags) != want ||
		c.cfg.Session.Mode != Malicious && len(m.tags) != 0 {
		return fmt.Errorf("%w: %d tags of neighbours, must be %d against a malicious server and "+
			"none else", ErrMalformed, len(m.tags), want)
	}
	if !m.set[c.place] {
		return fmt.Errorf("%w: the server counts this client out", ErrLate)
	}
	n, least := 0, c.cfg.Session.fewest(c.params)
	for _, in := range m.set {
		if in {
			n++
		}
	}
	if n < least {
		return fmt.Errorf("%w: %d survivors, must be at least %d", ErrTooFew, n, least)
	}
	near, unproven := 0, 0
	for i := range c.seats {
		s := &c.seats[i]
		s.alive = m.set[c.params.neighbour(c.place, i+1)]
		if s.alive && !s.mixed {
			return fmt.Errorf("%w: client %d survives, though it was said to be gone", ErrEquivocation, s.id)
		}
		// Without its word the server could count in a neighbour who was told that this
		// client is gone, and whose message this client's mask does not protect. No share of
		// it is opened then.
		s.proven = s.alive && (c.cfg.Session.Mode != Malicious ||
			hmac.Equal(m.tags[i], s.receive.mixedTag(c.roster)))
		if s.alive && !s.proven {
			unproven++
		}
		if s.proven {
			near++
		}
	}
	want := c.params.T
	if c.cfg.Session.Mode == Malicious && !c.params.sparse() {
		// All survivors are neighbours: n_min of them, itself included, must say so themselves. Of
		// another one the server knows the key, if it was told of another circle and vanished there.
		want = max(want, c.cfg.Session.NMin-1)
	}
	switch {
	case near >= want:
	case near+unproven >= want:
		return fmt.Errorf("%w: %d neighbours survive, but only %d say so themselves, at least %d must",
			ErrEquivocation, near+unproven, near, want)
	default:
		return fmt.Errorf("%w: %d neighbours survive, at least %d must", ErrTooFew, near, want)
	}
	c.told = body
	c.hash = survivorsHash(c.env.digest, m.set, c.order())
	return nil
}

// order is who sits at which place, where it knows it: in the complete graph.
func (c *Client) order() []uint32 {
	if c.params.sparse() {
		return nil
	}
	order := make([]uint32, c.params.N)
	order[c.place] = c.cfg.ID
	for i, s := range c.seats {
		order[c.params.neighbour(c.place, i+1)] = s.id
	}
	return order
}

// acknowledge tells every surviving neighbour that it is counted in, under a key that the
// server does not have.
func (c *Client) acknowledge() []byte {
	m := ack{c.hash, make([][]byte, len(c.seats))}
	for i, s := range c.seats {
		if s.proven {
			m.tags[i] = s.send.survivorTag(c.hash)
		}
	}
	return m.append(nil)
}

// checkAcks wants T surviving neighbours who count this client in and were told the same set. They
// will never open their shares of its key; the others are too few to.
func (c *Client) checkAcks(body []byte) error {
	m, err := readAcks(body)
	if err != nil {
		return err
	}
	if len(m.tags) != c.params.K {
		return fmt.Errorf("%w: %d neighbours, must be %d", ErrMalformed, len(m.tags), c.params.K)
	}
	good, bad := 0, 0
	for i, tag := range m.tags {
		s := &c.seats[i]
		switch {
		case tag == nil:
		case !hmac.Equal(tag, s.receive.survivorTag(c.hash)):
			// It was told another story, or lies itself, which must not stop the others.
			bad++
		case !s.alive:
			return fmt.Errorf("%w: client %d, who is said to be gone, acknowledges the survivors",
				ErrEquivocation, s.id)
		case s.proven:
			good++
		}
	}
	switch {
	case good >= c.params.T:
		return nil
	case bad > 0:
		return fmt.Errorf("%w: %d neighbours were told the same survivors, %d others, the "+
			"threshold is %d", ErrEquivocation, good, bad, c.params.T)
	}
	return fmt.Errorf("%w: %d neighbours acknowledge the survivors, the threshold is %d", ErrTooFew,
		good, c.params.T)
}

// openShares gives one share of each neighbour: of the seed if it survives, of the key if it
// vanished. The shares of those who never came in are of no use and stay closed.
func (c *Client) openShares() []byte {
	m := opened{make([][]byte, len(c.seats)), make([]bool, len(c.seats))}
	for i := range c.seats {
		s := &c.seats[i]
		switch {
		case !s.held:
		case s.proven:
			m.shares[i] = appendField(nil, &s.seed)
		case !s.alive:
			m.shares[i], m.key[i] = appendField(nil, &s.key), true
		}
	}
	return m.append(nil)
}
