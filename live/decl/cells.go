package decl

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// By partitions decisions into cells by a fact of their public context: one cell for each declared value,
// and one for all else, OtherCell.
type By struct {
	Key    string
	Values []string
}

// OtherCell is the name of the cell of decisions that have none of the declared values.
const OtherCell = "other"

// maxCells bounds the cells of an experiment, with that of all else.
const maxCells = 50

// lasts is how long the experiment lasts, monthly where no start and end are declared.
func (l *Experiment) lasts() time.Duration {
	if l.Start.IsZero() || l.End.IsZero() {
		return monthly
	}
	return l.End.Sub(l.Start)
}

// monthly is for how long traffic is to fill cells where no end is declared.
const monthly = 30 * 24 * time.Hour

// Cells are the names of the cells, nil where there are none.
func (l *Experiment) Cells() []string {
	if l.By.Key == "" {
		return nil
	}
	return append(slices.Clone(l.By.Values), OtherCell)
}

// Cell is the number of the cell of a decision with this public context. Values are compared as text, as For
// compares them.
func (l *Experiment) Cell(context map[string]any) int {
	if l.By.Key == "" {
		return 0
	}
	if text, ok := scalar(context[l.By.Key]); ok {
		if i := slices.Index(l.By.Values, text); i >= 0 {
			return i
		}
	}
	return len(l.By.Values)
}

// ReadsContext says whether decisions are asked with a public context.
func (l *Experiment) ReadsContext() bool {
	return l.Contextual != nil || len(l.Only)+len(l.Where) > 0 || l.By.Key != ""
}

// PlayCells are the cells as they are played, with the least of one: as declared, or so many decisions that
// the noise of their sum is not above that of an eighth of them (8b for Lap(b), of joint batches for
// each arm).
func (l *Experiment) PlayCells() (play.Cells, error) {
	out := play.Cells{Count: len(l.Cells()), Least: int(l.CellMinimum)}
	if out.Count == 0 || out.Least > 0 {
		return out, nil
	}
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return out, err
	}
	least := 8 * privacy.ScaleOf(p.Mechanism())
	if _, normal := p.Mechanism().(privacy.Gaussian); normal {
		least /= math.Sqrt2
	}
	if l.Split() {
		least *= float64(len(l.Arms))
	}
	out.Least = int(min(max(1, math.Ceil(least)), maxFirst))
	return out, nil
}

func cellKeys() []keyed.Key[Experiment] {
	return []keyed.Key[Experiment]{
		keyed.Of("by", byForm(), func(l *Experiment) *By { return &l.By },
			"a public fact of a decision's context and its values, such as {device: [phone, desktop]}: all that is "+
				"released is released for each of these, at the same budget"),
		keyed.Of("cell_minimum", keyed.Whole(), func(l *Experiment) *keyed.Count { return &l.CellMinimum },
			"decisions of a cell that is released for itself, 8/ε if it is not given (of policy split 8/ε an arm); one with "+
				"fewer joins other in that release"),
	}
}

func byForm() keyed.Form[By] {
	return keyed.Form[By]{
		Schema: func() keyed.Object {
			return keyed.Object{"type": "object", "minProperties": 1, "maxProperties": 1,
				"additionalProperties": keyed.Object{"type": "array", "minItems": 1, "maxItems": maxCells - 1,
					"items": keyed.Object{"type": []any{"string", "number", "boolean"}}}}
		},
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *By) error {
			switch n.(type) {
			case *ast.MappingNode, *ast.MappingValueNode:
			default:
				return d.Fail(n, at, "is %s without values, must name them, such as {device: [phone, desktop, "+
					"tablet]}: free text has no cells", keyed.KindOfNode(n))
			}
			var all Experiment
			if err := readOnly(d, n, at, &all); err != nil {
				return err
			}
			if keys := all.attributes(); len(keys) != 1 {
				return d.Fail(n, at, "has %d keys, must have one", len(keys))
			}
			for key := range all.Where {
				return d.Fail(n, keyed.Join(at, key), "is a test, must be a list of values")
			}
			for key, values := range all.Only {
				*to = By{key, values}
			}
			return nil
		},
		Write: func(by By) (any, error) {
			values := make([]any, len(by.Values))
			for i, v := range by.Values {
				values[i] = v
			}
			return []keyed.Field{keyed.FieldOf(by.Key, values)}, nil
		},
	}
}

// checkBy says what is wrong with the cells themselves.
func (l *Experiment) checkBy() error {
	if l.By.Key == "" {
		switch {
		case l.By.Values != nil:
			return l.fail("by", "has a key of 0 bytes, must be from 1 to %d", maxOnlyText)
		case l.CellMinimum != 0:
			return l.fail("cell_minimum", "is given, and there are no cells: it is for by")
		}
		return nil
	}
	at := "by." + keyed.Clip(l.By.Key)
	if len(l.By.Key) > maxOnlyText {
		return l.fail("by", "has a key of %d bytes, must be from 1 to %d", len(l.By.Key), maxOnlyText)
	}
	if n := len(l.By.Values); n < 1 || n > maxCells-1 {
		return l.fail(at, "has %d values, must be from 1 to %d", n, maxCells-1)
	}
	for i, v := range l.By.Values {
		place := fmt.Sprintf("%s[%d]", at, i)
		if err := keyed.CheckLabel(v); err != nil {
			return l.src.Wrap(place, err)
		}
		switch {
		case v == OtherCell:
			return l.fail(place, "is %q, which is the cell of all that has none of the values: leave it out", v)
		case slices.Contains(l.By.Values[:i], v):
			return l.fail(place, "is %q, which is there before", keyed.Clip(v))
		}
	}
	switch t := l.TrustModel(); {
	case t != privacy.TrustCentral:
		return l.fail("by", "is given under trust %s, must be for trust %s: elsewhere sums are gathered by arm", t,
			privacy.TrustCentral)
	case l.Missing == MissingDrop:
		return l.fail("by", "is given, and missing is %s: counts of cells would tell whose rewards came", l.Missing)
	case l.Exposure == ExposeActivate:
		return l.fail("by", "is given, and exposure is %s, must be %s or %s: a cell is kept with a decision, and an "+
			"offer is none yet", l.Exposure, ExposeDecide, ExposeRetract)
	case l.CellMinimum < 0 || l.CellMinimum > maxFirst:
		return l.fail("cell_minimum", "is %d, must be from 1 to %d", int(l.CellMinimum), maxFirst)
	}
	return nil
}

// checkCells says whether the policy does with totals of cells, and traffic with so many.
func (l *Experiment) checkCells() error {
	if l.By.Key == "" {
		return nil
	}
	entry, err := l.Catalog.Find(l.Bandit(), l.Policy.Policy)
	if err == nil {
		params, complete := entry.Complete(l.Policy.Params)
		if err = complete; err == nil {
			err = entry.Gathers(params)
		}
	}
	if err != nil {
		return l.src.Wrap("policy", fmt.Errorf("cannot do with by, which adds a noise for each cell up: %w", err))
	}
	of, err := l.PlayCells()
	if err != nil || l.Traffic == 0 {
		return err
	}
	lasts := l.lasts()
	n := l.Traffic * lasts.Hours() / 24
	if l.Horizon > 0 {
		n = min(n, float64(l.Horizon))
	}
	rows := len(l.Arms)
	if l.Split() {
		rows = 1
	}
	bears := math.Floor(n / float64(rows*of.Least))
	switch {
	case float64(of.Count) <= bears:
		return nil
	case bears < 2:
		return l.fail("by", "has %d cells with %s, and %v decisions a day for %v fill none with the %d decisions that "+
			"a cell is released with: declare a cell_minimum of at most %d, or leave by out", of.Count, OtherCell,
			l.Traffic, lasts, of.Least, max(1, int(n)/(rows*of.Count)))
	}
	return l.fail("by", "has %d cells with %s, must have at most %d: %v decisions a day for %v fill no more with "+
		"the %d decisions that a cell is released with (cell_minimum)", of.Count, OtherCell, int(bears), l.Traffic,
		lasts, of.Least)
}

// celled is what the guarantee says of cells, empty without.
func (l *Experiment) celled() string {
	if l.By.Key == "" {
		return ""
	}
	return fmt.Sprintf("; how many decisions had which %s, and when, is public, so it must not follow from an outcome, "+
		"and it is kept of each decision until that is released", l.By.Key)
}
