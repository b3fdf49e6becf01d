package play

import "fmt"

// An Epoch tells apart what was handed out between two restarts. It must be new, and unpredictable,
// each time that a Live is made or restored: 128 bits of the operating system's.
type Epoch [16]byte

// A Ticket is one decision: a unit was given an arm, and owes one reward until the deadline. Number
// counts the decisions of the arm from 0. Whoever hands tickets out signs them, so that those that
// come back are those that went out.
type Ticket struct {
	Arm, Number int
	Deadline    int64
	Epoch       Epoch
}

// A Status answers a reward. None of them depends on a reward, nor on whether one came before.
type Status int

const (
	// Accepted: the reward counts, or one for this ticket did before.
	Accepted Status = iota
	// Late: the deadline has passed, and the default stands in for good.
	Late
	// Void: the ticket was handed out and lost before it was durable, and its number may be
	// another's. It counts nowhere.
	Void
)

// String is accepted, late or void.
func (s Status) String() string {
	switch s {
	case Accepted:
		return "accepted"
	case Late:
		return "late"
	case Void:
		return "void"
	}
	return fmt.Sprintf("status %d", int(s))
}
