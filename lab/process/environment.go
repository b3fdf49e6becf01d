package process

import (
	"encoding/json"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
)

// Paid is how many rewards of each arm a program pays: their empirical law is what is played, so that
// means are known, runs are fast, and a program cannot change its mind in the middle of one.
const Paid = 10_000

const (
	paidAtOnce = 2_500 // in a line
	mostArms   = 1_000
)

// Rewards implements catalog.Programs: Paid of each arm, by the arm's number as a seed.
func (h *Host) Rewards(of catalog.Program) ([][]float64, error) {
	arms := 0
	p, err := h.begin(of, func(line []byte) error {
		var in struct {
			Sotto json.Number
			Name  string
			Arms  int
		}
		if err := strict(line, &in); err != nil {
			return bad(line, `{"sotto":1,"name":"mine","arms":2}`, err)
		}
		if err := named(in.Sotto, in.Name); err != nil {
			return err
		}
		if in.Arms < 2 || in.Arms > mostArms {
			return fmt.Errorf("arms is %d, must be from 2 to %d", in.Arms, mostArms)
		}
		arms = in.Arms
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([][]float64, arms)
	for a := range out {
		for len(out[a]) < Paid {
			c, err := p.lease()
			if err != nil {
				return nil, err
			}
			line := fmt.Appendf(nil, "{\"arm\":%d,\"times\":%d,\"seed\":%d}\n", a, paidAtOnce,
				a*Paid+len(out[a]))
			x, err := p.numbers(c, line, "rewards", paidAtOnce)
			if err != nil {
				return nil, err
			}
			for _, v := range x {
				if v < -bandit.MaxAbs || v > bandit.MaxAbs {
					return nil, p.fail(fmt.Errorf("arm %d: a reward is %v, must be at most %v in absolute value", a, v,
						bandit.MaxAbs))
				}
			}
			out[a] = append(out[a], x...)
		}
	}
	return out, nil
}
