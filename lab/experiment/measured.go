package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/sim"
)

// measured is what the kinds have in common whose policies are measured by their regret at
// checkpoints: KindRegret, KindLinear and KindContextual.
type measured struct{}

func (measured) players() string { return "policies" }

// with are the keys of these kinds: the range is the kind's, and more goes before the lists.
func (measured) with(known catalog.Catalog, name, doc string, instances instanceForm, span keyed.Key[Spec],
	more []keyed.Key[Spec]) []keyed.Key[Spec] {
	keys := []keyed.Key[Spec]{nameKey(), descriptionKey(), kindKey(name, doc), horizonKey(), runsKey(),
		seedKey(), checkpointsKey(), span, unclippedKey(), boundsKey()}
	return slices.Concat(keys, more, []keyed.Key[Spec]{
		instancesKey(instances, "where rewards come from", seeBelow),
		policiesKey(known, name, keyed.Has(more, "trust"), seeBelow),
		budgetsKey(specBudgets, keyed.BudgetShapes(), "each private policy runs at each budget that it "+
			"can meet; the others run once", "required if a policy is private; see below")})
}

func (measured) length(s *Spec) (string, keyed.Count) { return "horizon", s.Horizon }

func (measured) text(s *Spec) string { return fmt.Sprintf("T = %d", s.Horizon) }

func (measured) checkpoints(p *Resolved) error {
	s := &p.Spec
	if s.Checkpoints == nil {
		if n := s.points(); n < 1 || n > MaxPoints {
			return s.fail("checkpoints", "is %d, must be a number of checkpoints from 1 to %d, or a "+
				"list of rounds", n, MaxPoints)
		}
		p.Checkpoints = sim.LogSpaced(int(s.points()), int(s.Horizon))
		return nil
	}
	if n := len(s.Checkpoints); n == 0 || n > MaxPoints {
		return s.fail("checkpoints", "lists %d rounds, must be from 1 to %d", n, MaxPoints)
	}
	last := keyed.Count(0)
	for i, t := range s.Checkpoints {
		field := fmt.Sprintf("checkpoints[%d]", i)
		switch {
		case t > s.Horizon:
			return s.fail(field, "is round %d, beyond the horizon, %d", t, s.Horizon)
		case t <= last:
			return s.fail(field, "is round %d after %d, must be increasing rounds, the first at "+
				"least 1", t, last)
		}
		last = t
		p.Checkpoints = append(p.Checkpoints, int(t))
	}
	if last != s.Horizon {
		return s.fail("checkpoints", "end at round %d: the last one must be the horizon, %d", last, s.Horizon)
	}
	return nil
}

func (measured) choices(p *Resolved) ([]choice, error) { return p.policies() }

func (measured) columns(p *Resolved, _ []environment) (int, error) { return len(p.Checkpoints), nil }

func (c *Cell) hash(p *Resolved) error {
	s := &p.Spec
	h := sha256.New()
	// One line a field, quoted: different contents are different texts.
	fmt.Fprintf(h, "sotto cell %d\nworld %q\npolicy %q\nbudget %q\nhorizon %d\nunclipped "+
		"%t\nseed %d\ncheckpoints %v\n",
		FormatVersion, c.world.public, c.choice.content, c.Budget, s.Horizon, s.Unclipped, s.Seed,
		p.Checkpoints)
	c.choice.trust.writeProtocol(h)
	c.world.writeKnown(h)
	err := s.writeDelay(h)
	s.writeIntervals(h)
	c.Hash = hex.EncodeToString(h.Sum(nil))
	return err
}

// streams are those of a run that are the cell's own: its noise, and its policy's coins.
func (c *Cell) streams(world noise.Key) (privately, coins *noise.Fast) {
	return sim.Cell{Policy: c.choice.content, Budget: c.Budget}.Streams(world)
}

// appendRegret appends the metrics of a run.
func appendRegret(to []float64, r *sim.Result) []float64 {
	return append(append(to, r.Regret...), r.PlaysBest...)
}

func (measured) checkTold(*CellInfo) error { return nil }

func (measured) metrics(*CellInfo) []string { return []string{MetricRegret, MetricPlaysBest} }

func (measured) judge(*CellResult) {}

func (measured) writeRows(ctx context.Context, w io.Writer, dir string, m *Manifest) error {
	return writeRows(ctx, w, dir, m, func(_ *CellInfo, at RunRow, v func(int) float64) Row {
		return Row{at, v(0), v(1)}
	})
}

func (measured) protects() bool { return false }
