package aggregate

import (
	"encoding/json"
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
)

// A Cohort is what the clients of an experiment and its service must have been told alike before
// they meet in sessions of package secagg. All else of a session follows from it and from who
// registered: clients who were told other terms share no masks, and the session fails.
//
// The service follows the protocol, and is curious (secagg.SemiHonest): it is who enrols, and could
// enrol clients of its own, against which no share of corrupt clients helps.
type Cohort struct {
	Experiment string
	Noise      release.Noise // whole, that of a sum
	// Users is how many are promised to answer and to be honest: each adds the share of one in so
	// many, and no sum is opened that may have fewer.
	Users int
	// Corrupt bounds the share of those who registered who are corrupt, Vanish that of those who
	// come who vanish: secagg's γ and δ.
	Corrupt, Vanish float64
}

// Session is a session for so many who registered, about the decisions of an arm from start on,
// and what its clients' messages are drawn from (release.NewRandomizer). Fewer than it needs are an
// error that matches secagg.ErrTooFew.
func (c Cohort) Session(id [32]byte, arm, start, registered int) (secagg.Session, privacy.Aggregated, error) {
	s := secagg.Session{ID: id, Experiment: c.Experiment, Arm: uint64(arm), Batch: uint64(start), Length: 1,
		Enrolled: registered, Honest: c.Users, Mode: secagg.SemiHonest, Gamma: c.Corrupt, Delta: c.Vanish}
	s.NMin = c.Least(registered)
	if registered < s.NMin {
		return s, privacy.Aggregated{}, fmt.Errorf("%w: %d registered, must be at least %d", secagg.ErrTooFew,
			registered, s.NMin)
	}
	m, err := c.Noise.Cohort(c.Users, registered)
	if err != nil {
		return s, m, err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return s, m, fmt.Errorf("cohort: mechanism: %w", err)
	}
	s.Grid, s.Modulus, s.Noise = uint64(m.G), uint64(m.Modulus), string(text)
	if err := s.Validate(); err != nil {
		return s, m, err
	}
	_, err = s.Graph(registered)
	return s, m, err
}

// Least is how many must survive a session for which so many registered: Users and all who may be
// corrupt, and 3, as two cannot be hidden in a crowd.
func (c Cohort) Least(registered int) int {
	return max(3, c.Users+secagg.Session{Gamma: c.Corrupt, Enrolled: registered}.Corrupt())
}
