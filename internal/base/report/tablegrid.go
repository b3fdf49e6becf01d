package report

// Grid is the table as text, as the page has it, for pages that are another's.
func (t Table) Grid() Grid {
	v := t.view(false)
	g := Grid{Title: v.Title, Text: 2, Notes: v.Notes, Head: []string{"policy", "budget", v.Metric}}
	add := func(yes bool, names ...string) {
		if yes {
			g.Head = append(g.Head, names...)
		}
	}
	add(v.Bounds, "×LB")
	add(true, "ratio", "vs best")
	add(v.Quantiles, "median", "5 %", "95 %")
	add(!v.SameRuns, "runs")
	for _, group := range v.Groups {
		out := GridGroup{Head: group.Instance}
		for _, r := range group.Rows {
			if r.Void {
				r.Policy += " (" + NoGuarantee + ")"
			}
			row := []string{r.Policy, r.Budget, r.Mean + " ± " + r.Half}
			if v.Bounds {
				row = append(row, r.Bound)
			}
			row = append(row, r.Ratio, r.Verdict)
			if v.Quantiles {
				row = append(row, r.Median, r.Q05, r.Q95)
			}
			if !v.SameRuns {
				row = append(row, r.Runs)
			}
			out.Rows = append(out.Rows, row)
		}
		g.Groups = append(g.Groups, out)
	}
	return g
}
