package verdict

import (
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/lab/process"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Outside is an audit of a mechanism that is a program of somebody else.
type Outside struct {
	Settings
	Mechanism *process.Mechanism
	Records   int      // of a data set, at least 1
	Delta     *float64 // nil: that of the claim, 0 of ε-DP, 0.01 of others
	Searched  int      // games of the search with each adversary
	Further   audit.Further
}

// outputsAtOnce is how many games' outputs the program is asked for in a line.
const outputsAtOnce = 256

// Prepare checks the audit.
func (s Outside) Prepare() (*Searched, error) {
	delta := 0.01
	switch b := s.Mechanism.Claim.(type) {
	case privacy.Pure:
		delta = 0
	case privacy.Approx:
		delta = b.Delta
	}
	if s.Delta != nil {
		delta = *s.Delta
	}
	claim := privacy.LossOf(s.Mechanism.Claim)
	if s.Claim == nil && math.IsInf(claim.Approx(delta), 1) {
		return nil, errNoClaim(s.Mechanism.Claim.String())
	}
	// Neighbours differ in the first record.
	same := func(first, others float64) []float64 {
		return append([]float64{first}, slices.Repeat([]float64{others}, s.Records-1)...)
	}
	worlds := [][2][]float64{{same(0, 0), same(1, 0)}, {same(0, 1), same(1, 1)}, {same(0, 0.5), same(1, 0.5)}}
	d := audit.Outside{Name: s.Mechanism.Name, Claim: claim, Attack: "the output", Model: "table",
		Adversaries: []string{"the others are 0", "the others are 1", "the others are 0.5"},
		Worlds: func(i int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				var ready [2][]float64 // outputs of each world that no game has had
				return func(in bool, src *noise.Fast, to []float64) (err error) {
					w := 0
					if in {
						w = 1
					}
					if len(ready[w]) == 0 {
						if ready[w], err = s.Mechanism.Outputs(ready[w][:0], worlds[i][w], outputsAtOnce,
							src.Uint64()>>11); err != nil {
							return err
						}
					}
					to[0], ready[w] = ready[w][0], ready[w][1:]
					return nil
				}
			}
		}}.Direct()
	d.Delta, d.Gamma, d.Games, d.Pilot = delta, s.Gamma, s.Games, s.Searched
	d.Workers = 1 // outputs are left over from one game to the next
	d.Key = s.key("program", s.Mechanism.Name)
	p := &Page{Title: "Audit of a mechanism", Description: "Two data sets that differ in one record; an " +
		"adversary chooses them, sees what the program says of one, and says which of the two it was.",
		Cannot: []string{"Other data sets were not tried, and a program may tell an audit from other uses."}}
	p.fact("mechanism", "%s, a program of somebody else", s.Mechanism.Name)
	p.fact("neighbours", "one of %d records, 0 or 1", s.Records)
	p.fact("the claim", "%s", s.claimText(claim, delta))
	p.fact("adversary", "knows all records but one, and sees one output")
	x, err := d.Search(s.Further)
	if err != nil {
		return nil, err
	}
	return s.searched(p, x), nil
}
