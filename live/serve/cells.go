package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/interval"
	decls "github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
)

// A CellInfo is what was released of a cell: of each arm, as an ArmInfo without decisions, and of each metric
// by arm, as Info.Metrics.
type CellInfo struct {
	Name    string
	Arms    []ArmInfo
	Metrics [][]float64
}

// newCells are those of an experiment before its first release, nil if it has none.
func newCells(decl *Experiment) (out []CellInfo) {
	for _, name := range decl.Cells() {
		one := CellInfo{Name: name, Arms: make([]ArmInfo, decl.FirstArms())}
		for range decl.Metrics {
			one.Metrics = append(one.Metrics, make([]float64, decl.FirstArms()))
		}
		out = append(out, one)
	}
	return out
}

// grow has one arm more.
func (c *CellInfo) grow() {
	c.Arms = append(slices.Clip(c.Arms), ArmInfo{})
	for m := range c.Metrics {
		c.Metrics[m] = append(slices.Clip(c.Metrics[m]), 0)
	}
}

func cloneCells(in []CellInfo) []CellInfo {
	out := slices.Clone(in)
	for c := range out {
		out[c].Arms, out[c].Metrics = slices.Clone(in[c].Arms), slices.Clone(in[c].Metrics)
		for m := range out[c].Metrics {
			out[c].Metrics[m] = slices.Clone(in[c].Metrics[m])
		}
	}
	return out
}

// add adds a release of a cell to what is known of it.
func (c *CellInfo) add(r amount) {
	if r.further > 0 {
		c.Metrics[r.further-1][r.Arm] += r.value
		return
	}
	a := &c.Arms[r.Arm]
	a.Released, a.Releases = a.Released+r.N, a.Releases+1
	a.Sum, a.Noise = a.Sum+r.value, r.Mechanism
}

// cellsOf are the cells as a replay has them, by arm and cell.
func cellsOf(decl *Experiment, by [][]play.CellSums) []CellInfo {
	out := newCells(decl)
	for a := range by {
		for c := range out {
			if a == len(out[c].Arms) {
				out[c].grow()
			}
		}
		for c, s := range by[a] {
			out[c].Arms[a] = ArmInfo{Released: s.N, Releases: s.Releases, Sum: s.Sum, Noise: s.Noise}
			for m, x := range s.Metrics {
				out[c].Metrics[m][a] = x
			}
		}
	}
	return out
}

// A ByCell is what was released of each cell, as page, report, API, Prometheus and Replay show it.
type ByCell struct {
	By      string `json:"by"`      // the fact of a decision's context
	Minimum int    `json:"minimum"` // decisions of a cell that is released for itself
	// Each are the cells in their order: of each the reward, with a verdict, and then the metrics.
	Measures
}

// ByCell has the experiment's cells; nil if it has none. What it gives is shared: it must not be changed.
func (i *Info) ByCell() *ByCell {
	return i.cells.get(i.Arms, func() *ByCell { return measuredBy(&i.Experiment, i.Arms, i.Cells) })
}

// ByCell is as that of Info.
func (r *Replayed) ByCell() *ByCell { return measuredBy(&r.Experiment, r.Arms, r.Cells) }

// withOff has the arms that were taken off marked in each cell too.
func withOff(cells []CellInfo, arms []ArmInfo) []CellInfo {
	out := cloneCells(cells)
	for c := range out {
		for a := range out[c].Arms {
			out[c].Arms[a].Off = arms[a].Off
		}
	}
	return out
}

// measuredBy makes the measures of cells: of each the reward, with the intervals and the verdict of a table
// that shares the risk with those of the other cells, then the metrics likewise.
func measuredBy(decl *Experiment, arms []ArmInfo, cells []CellInfo) *ByCell {
	of, err := decl.PlayCells()
	if len(cells) == 0 || err != nil { // it was checked
		return nil
	}
	out := &ByCell{By: decl.By.Key, Minimum: of.Least,
		Measures: Measures{Control: decl.Arms[ControlOf(decl)].Name, Confidence: interval.Confidence}}
	out.Says = celledSays(decl, len(cells), of.Least)
	for _, c := range withOff(cells, arms) {
		out.Each = append(out.Each, rewardOfCell(decl, c, len(cells)))
		if m := measured(decl, c.Arms, c.Metrics, len(cells)); m != nil {
			for _, one := range m.Each {
				one.Cell = c.Name
				out.Each = append(out.Each, one)
			}
		}
	}
	each := len(out.Each) / len(cells)
	for i := range out.Each {
		if i >= each {
			out.Each[i].apart(out.Each[i%each])
		}
	}
	return out
}

// rewardOfCell is the reward of a cell, as a measure.
func rewardOfCell(decl *Experiment, c CellInfo, cells int) Measure {
	lo, hi := decl.Range()
	out := Measure{Cell: c.Name, Name: decls.RewardName, Range: [2]float64{lo, hi}, Default: decl.Default,
		Budget: fmt.Sprint(decl.Budget)}
	table, named := decl.Table(), namedArms(decl, c.Arms)
	table.Cells = cells
	control := ControlOf(decl)
	for a := range c.Arms {
		out.add(decl.Arms[a].Name, named[a].Sums, table.Mean(named[a].Sums))
	}
	out.compare(control, func(a int) *[2]float64 { return table.Lead(named, a, control) }, nil)
	v := table.Verdict(named)
	out.Verdict = &v
	return out
}

// apart has how far each arm's difference to the control is from that in the first cell: with intervals [L1, U1]
// here and [L2, U2] there, from L1−U2 to U1−L2.
func (m *Measure) apart(first Measure) {
	for a := range m.Arms {
		m.Arms[a].Apart = less(m.Arms[a].DifferenceInterval, first.Arms[a].DifferenceInterval)
	}
}

// celledSays is what the intervals of cells are, and on what they rest.
func celledSays(decl *Experiment, cells, least int) string {
	text := fmt.Sprintf("The reward's intervals of all %d cells include the noise and stay valid however often you "+
		"look, all of them together with probability %v\u202f%%: each cell has 1/%d of the risk. ", cells, 100*interval.Confidence, cells)
	if len(decl.Metrics) > 0 {
		text += "The metrics' share a risk of their own in the same way. "
	}
	text += "The intervals of the whole experiment have a risk beside it."
	if decl.Split() {
		text += " Verdicts and differences hold whatever changes over time; means, and all of a ratio, assume that it " +
			"does not in a cell of an arm."
		if least > 1 {
			text += " All of a cell assumes that how many decisions of a batch are in it does not follow from arms or " +
				"outcomes of the same batch, since fewer than the minimum join another one."
		}
	} else {
		text += " They assume that an arm's mean in a cell does not change over time."
	}
	text += fmt.Sprintf(" “Against %s” is how far a difference is from that in the first cell.", decl.By.Values[0])
	if c := decl.IntervalCondition(); c != "" {
		text += " " + strings.TrimSpace(c)
	}
	return text
}

// Assign values an assignment of arms to the cells of an experiment: see interval.Table.Assign.
func (r *Replayed) Assign(arms []int) (interval.Assigned, error) {
	table, cells := r.Experiment.Table(), make([][]interval.NamedArm, len(r.Cells))
	table.Cells = len(r.Cells)
	for c, of := range withOff(r.Cells, r.Arms) {
		cells[c] = namedArms(&r.Experiment, of.Arms)
	}
	return table.Assign(cells, arms)
}
