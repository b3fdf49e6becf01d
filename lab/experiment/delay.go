package experiment

import (
	"fmt"
	"io"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/sim"
)

// delayKey is the window alone, or a window with a law.
func delayKey() keyed.Key[Spec] {
	k := keyed.Of("delay", keyed.Form[sim.DelayLaw]{
		Schema: func() keyed.Object {
			return keyed.Object{"anyOf": []any{keyed.CountSchema("the window; all rewards come in it"),
				keyed.SchemaOf(delayKeys())}}
		},
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *sim.DelayLaw) error {
			switch n.(type) {
			case *ast.MappingNode, *ast.MappingValueNode:
				return keyed.ReadKeys(d, n, at, delayKeys(), to)
			}
			return d.Count(n, at, (*keyed.Count)(&to.Window))
		},
		Write: func(v sim.DelayLaw) (any, error) { return keyed.NormalOf(delayKeys(), &v) },
	}, func(s *Spec) *sim.DelayLaw { return &s.Delay },
		"rewards come late, and policies are played as they are live: how many rounds a reward may take")
	return k.Means("rewards come late, and policies are played as they are live: `1000`, the rounds " +
		"that a reward may take, or a window with a law of delays and a default; see delay below")
}

func delayKeys() []keyed.Key[sim.DelayLaw] {
	return []keyed.Key[sim.DelayLaw]{
		keyed.Always("window", keyed.Whole(), func(d *sim.DelayLaw) *keyed.Count { return (*keyed.Count)(&d.Window) },
			"rounds that a reward may take; 1 is at once").Must().
			Means("required; rounds that a reward may take. One that is d rounds late counts if d is " +
				"below the window: `1` is no delay"),
		keyed.Always("default", keyed.Real(keyed.Object{"default": 0}), func(d *sim.DelayLaw) *float64 { return &d.Default },
			"what a round counts whose reward does not come in its window").
			Means("`0`; what a round counts whose reward does not come in its window, in the range"),
		keyed.Of("law", keyed.OneOf(sim.DelayLaws()), func(d *sim.DelayLaw) *string { return &d.Law },
			"how late rewards are; all come in the window if it is not given").
			Means("how late rewards are: `constant`; `geometric`, on 0, 1, 2, …; `uniform`, on whole " +
				"rounds from 0 to twice the mean; `empirical`. Not given: all come in the window"),
		keyed.Of("mean", keyed.Real(keyed.Object{"minimum": 0}), func(d *sim.DelayLaw) *float64 { return &d.Mean },
			"of the law, in rounds").
			Means("of the law but for `empirical`, in rounds: a whole number for `constant`, a whole " +
				"or a half one for `uniform`"),
		keyed.Of("rounds", keyed.Reals(keyed.Object{"minItems": 1, "maxItems": sim.MaxDelays}),
			func(d *sim.DelayLaw) *[]float64 { return &d.Rounds }, "of the empirical law: how late").
			Means("of `empirical`: how late rewards are, whole rounds from 0"),
		keyed.Of("share", keyed.Reals(keyed.Object{"minItems": 1, "maxItems": sim.MaxDelays}),
			func(d *sim.DelayLaw) *[]float64 { return &d.Share }, "of the empirical law: of how many").
			Means("of `empirical`: which share of the rewards is so late, one for each of `rounds`; " +
				"they add up to 1"),
		keyed.Of("missing", keyed.Real(keyed.Object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
			func(d *sim.DelayLaw) *float64 { return &d.Missing }, "share of the rewards that never come").
			Means("`0`; the share of the rewards that never come, whatever they are and whatever the law"),
	}
}

// checkDelay refuses a delay that is none, or that does not go with the rest.
func (s *Spec) checkDelay() error {
	if !delayKey().Given(s) {
		return nil
	}
	lo, hi := s.span()
	if at, err := s.Delay.Check(lo, hi); err != nil {
		return s.src.Wrap("delay."+at, err)
	}
	switch {
	case s.Unclipped:
		return s.fail("unclipped", "is true, and rewards that come late are always clipped")
	case s.Trust.on():
		return s.fail("trust", "is %s, must be %s where rewards come late", s.Trust.Model, Continuous)
	}
	for i := range s.Policies {
		if t := s.Policies[i].Trust; t.on() {
			return s.fail(fmt.Sprintf("policies[%d].trust", i), "is %s, must be %s where rewards come late",
				t.Model, Continuous)
		}
	}
	return nil
}

// writeDelay is what a cell's hash has of how late rewards are: nothing where they are not.
func (s *Spec) writeDelay(h io.Writer) error {
	if !s.Delay.On() {
		return nil
	}
	fields, err := keyed.NormalOf(delayKeys(), &s.Delay)
	if err == nil {
		_, err = fmt.Fprintf(h, "delay %q\n", fmt.Sprint(fields))
	}
	return err
}

// admit refuses a policy that cannot be played where rewards come late, or whose releases do not give
// the intervals that are asked for.
func (c *Cell) admit(s *Spec, p policy.Policy) error {
	if err := c.admitIntervals(s, p); err != nil {
		return err
	}
	if !s.Delay.On() {
		return nil
	}
	if _, err := play.Admit(p); err != nil {
		return fmt.Errorf("policy %s where rewards come late: %w", c.choice.entry.Name, err)
	}
	return nil
}
