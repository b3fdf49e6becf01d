package interval

import "fmt"

// An Assigned is what an assignment of arms to cells would have brought a decision, in the units of rewards.
type Assigned struct {
	Mean     *float64   `json:"mean"` // null where nothing was released of an arm in its cell
	Interval [2]float64 `json:"interval"`
	// Over are the same decisions if all of them had been given one arm.
	Over []Lead `json:"over"`
}

// Assign values an assignment of an arm to each cell of decisions, by the direct method on released sums: Σ q_c
// μ_c(arm), q_c being the share of cell c of all decisions that were released. The table is that of cells, and these
// have its arms.
//
// Differences of two arms in a cell (Lead) hold, of an A/B test, whatever drifts, for the average over decisions that
// were given either arm; with more arms than two that is the average over all of them where means do not change.
//
// The interval is Σ q_c [L_c, U_c] over the intervals for the means of the cells (Mean), and against one arm for
// everybody over those for the differences (Lead). The shares are counts, and no random quantity to be estimated: the
// value is that of the decisions that were released. All intervals of all cells hold together at all times with
// probability Confidence, and these sums follow from them: so do those of every assignment, however many are asked
// about and whatever they were chosen by. Where nothing is known of an arm in a cell, its interval is the range.
func (t Table) Assign(cells [][]NamedArm, arms []int) (Assigned, error) {
	out, all := Assigned{Over: []Lead{}}, 0
	if len(cells) != t.Cells || len(arms) != t.Cells {
		return out, fmt.Errorf("interval: %d arms of %d cells, must be of all %d", len(arms), len(cells), t.Cells)
	}
	share := make([]float64, len(cells))
	for c, of := range cells {
		if arms[c] < 0 || arms[c] >= t.Arms || len(of) != t.Arms {
			return out, fmt.Errorf("interval: arm %d of %d in cell %d, must be one of the %d", arms[c], len(of), c, t.Arms)
		}
		for _, a := range of {
			share[c] += float64(a.N)
			all += a.N
		}
	}
	if all == 0 {
		out.Interval = [2]float64{t.Lo, t.Hi}
		return out, nil
	}
	mean, known := 0.0, true
	for c, of := range cells {
		share[c] /= float64(all)
		if share[c] == 0 {
			continue
		}
		a := of[arms[c]]
		if a.N == 0 {
			known = false
		} else {
			mean += float64(share[c] * (t.Lo + float64((t.Hi-t.Lo)*(a.Sum/float64(a.N)))))
		}
		add(&out.Interval, share[c], t.Mean(a.Sums), t.Lo, t.Hi)
	}
	if known {
		out.Mean = &mean
	}
	for than := range t.Arms {
		lead := Lead{Arm: cells[0][than].Name, Interval: &[2]float64{}}
		for c, of := range cells {
			if arms[c] != than && share[c] > 0 {
				add(lead.Interval, share[c], t.Lead(of, arms[c], than), t.Lo-t.Hi, t.Hi-t.Lo)
			}
		}
		lead.Better = lead.Interval[0] > 0
		out.Over = append(out.Over, lead)
	}
	return out, nil
}

// add adds a share of an interval, or of all that there can be.
func add(to *[2]float64, share float64, of *[2]float64, lo, hi float64) {
	if of == nil {
		of = &[2]float64{lo, hi}
	}
	to[0] += float64(share * of[0])
	to[1] += float64(share * of[1])
}
