package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// assignedJSON is what another assignment of arms to cells would have brought.
type assignedJSON struct {
	Cells map[string]string `json:"cells"` // the arm of each
	interval.Assigned
}

// elseCell stands for all cells that are not named.
const elseCell = "else"

// assignedOf reads an assignment, such as "phone: onepage, else: classic", and values it.
func assignedOf(r *serve.Replayed, text string) (*assignedJSON, error) {
	x := &r.Experiment
	cells := x.Cells()
	if cells == nil {
		return nil, usagef("--assign is for experiments with cells, and %s does not declare by", x.Name)
	}
	given := map[string]string{}
	for one := range strings.SplitSeq(text, ",") {
		cell, arm, ok := strings.Cut(one, ":")
		cell, arm = strings.TrimSpace(cell), strings.TrimSpace(arm)
		_, twice := given[cell]
		switch {
		case !ok:
			return nil, usagef("--assign has %q, must be cell: arm, such as %s: %s, %s: %s", one, cells[0],
				x.Arms[0].Name, elseCell, x.Arms[1].Name)
		case twice:
			return nil, usagef("--assign names %q twice", cell)
		case cell != elseCell && !slices.Contains(cells, cell):
			return nil, usagef("--assign names %q, must be one of %s, or %s", cell, strings.Join(cells, ", "), elseCell)
		}
		given[cell] = arm
	}
	out, arms := &assignedJSON{Cells: map[string]string{}}, make([]int, len(cells))
	for i, cell := range cells {
		name, ok := given[cell]
		if !ok {
			if name, ok = given[elseCell]; !ok {
				return nil, usagef("--assign has no arm for %q, must name it or %s", cell, elseCell)
			}
		}
		arms[i] = slices.IndexFunc(x.Arms, func(a decl.Arm) bool { return a.Name == name })
		if arms[i] < 0 {
			return nil, usagef("--assign gives %q to %q, which is no arm", name, cell)
		}
		out.Cells[cell] = name
	}
	var err error
	out.Assigned, err = r.Assign(arms)
	return out, err
}

// printAssigned prints what an assignment is worth.
func printAssigned(out io.Writer, of *assignedJSON, constant bool) error {
	if of == nil {
		return nil
	}
	mean := "–"
	if of.Mean != nil {
		mean = words.Number(*of.Mean)
	}
	var cells []string
	for cell, arm := range of.Cells {
		cells = append(cells, cell+": "+arm)
	}
	slices.Sort(cells)
	fmt.Fprintf(out, "%s\nwould have brought a decision %s, in %s\n", strings.Join(cells, ", "), mean,
		intervalText(&of.Interval))
	for _, o := range of.Over {
		word := ""
		if o.Better {
			word = ": better"
		}
		fmt.Fprintf(out, "  less %s for everybody: %s%s\n", o.Arm, intervalText(o.Interval), word)
	}
	note := "Of the decisions that were released, in their shares of cells. The intervals are those of the cells, added up:\n" +
		"they hold for every assignment together. Differences hold whatever changes over time; values assume constant means."
	if constant {
		note = "Of the decisions that were released, in their shares of cells. The intervals are those of the cells, added up:\n" +
			"they hold for every assignment together, where an arm's mean in a cell does not change over time."
	}
	_, err := fmt.Fprintf(out, "%s\n\n", note)
	return err
}
