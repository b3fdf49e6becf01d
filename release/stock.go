package release

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A Stock draws a noise before it is needed, so that nobody who waits for a report waits for its draw, whose time would
// tell of it (docs/timing.md). What is drawn is in memory alone. Goroutines may share a Stock: no two get the same noise.
// A process that was cloned, or resumed twice from a picture of its memory, has the same noise in both: two reports of
// a person then differ by their rewards exactly. Neither a client nor a server may be run so.
type Stock struct {
	of    privacy.Aggregated // if these are shares
	drawn *ahead
}

// Stock has whole noises, as Noise.Draw draws them; so many are ready, 32 at least, and 4096 at most.
func (n Noise) Stock(most int) (*Stock, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("gathered: %w", err)
	}
	law, err := n.law(src)
	if err != nil {
		return nil, err
	}
	return &Stock{drawn: newAhead(law, most)}, nil
}

// Shares has what each of the users of a cohort adds, of whom so many are promised (Noise.Cohort), for Randomizer.From.
func (n Noise) Shares(users int) (*Stock, error) {
	m, err := n.Cohort(users, users)
	if err != nil {
		return nil, err
	}
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("gathered: %w", err)
	}
	draw, err := exactShare(m, src)
	if err != nil {
		return nil, fmt.Errorf("gathered: %w", err)
	}
	return &Stock{m, newAhead(draw, leastAhead)}, nil
}

// Draw takes the noise that was drawn first.
func (s *Stock) Draw() (int64, error) { return s.drawn.Draw(1) }

// LocalReport is LocalReport with a noise that was drawn ahead.
func (s *Stock) LocalReport(c Clip, reward float64) (int64, error) {
	z, err := s.Draw()
	return c.Steps(reward) + z, err
}

// From has the messages of a cohort take their noise from a stock of such shares.
func (r *Randomizer) From(s *Stock) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, in := s.of, r.inner
	of.Invited, of.Modulus, of.Tau = in.Invited, in.Modulus, in.Tau // of which a share knows nothing
	if of != r.mechanism || r.noise == nil {
		return fmt.Errorf("randomizer: the stock has shares of %v, must have those of %v", s.of, r.mechanism)
	}
	r.noise = s.Draw
	return nil
}
