package client

import (
	"context"
	"fmt"
	"net/http"
)

// A Word is what a Verdict comes to.
type Word string

// The words of a verdict, the strongest first.
const (
	Conclusive   Word = "conclusive"    // the leader is better than each other arm
	NoDifference Word = "no_difference" // no arm differs from the leader by more than the planned effect
	Ahead        Word = "ahead"         // an arm leads, and that may be chance
	NotYet       Word = "not_yet"       // rewards of fewer than two arms were released
)

// A Verdict is the answer of an experiment with arms, in the units of rewards. Its intervals stay valid
// however often you ask. It follows from releases: asking costs nothing.
type Verdict struct {
	Word   Word
	Text   string // in a sentence without its full stop
	Leader string // empty while nothing was released
	Over   []Lead // the other arms, the best first
	// Within is how far any of these may be from the leader, nil if that is not known.
	Within *float64
	// Earned is what was earned more than equal shares would have, nil while that is not known.
	Earned *struct {
		Estimate float64
		Interval [2]float64
	}
	// ConstantRates says that it is right only where each arm's mean stays the same.
	ConstantRates bool `json:"constant_rates"`
}

// A Lead is the leader against another arm.
type Lead struct {
	Arm      string
	Interval *[2]float64 // of the leader's mean less this arm's
	Better   bool        // the leader is, surely
}

// Verdict asks for the answer of an experiment, as its report has it. The key must have the scope read,
// unless the experiment is public.
func (c *Client) Verdict(ctx context.Context, experiment string) (Verdict, error) {
	var got struct{ Verdict *Verdict }
	err := c.ask(ctx, http.MethodGet, nil, &got, experiment, "report")
	if err == nil && got.Verdict == nil {
		err = fmt.Errorf("%w: it has no arms", ErrRequest)
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return *got.Verdict, nil
}
