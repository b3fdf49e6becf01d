package trial

import (
	"encoding/json"
	"math"
	"strconv"
)

// Budget is the row's budget as text.
func (r PlanRow) Budget() string {
	if math.IsInf(r.Epsilon, 1) {
		return "none"
	}
	return "ε=" + strconv.FormatFloat(r.Epsilon, 'g', -1, 64)
}

// planJSON is a plan as programs read it.
type planJSON struct {
	Arms           string    `json:"arms"`
	Rule           string    `json:"rule"`
	Risk           float64   `json:"risk"`
	Runs           int       `json:"runs"`
	Cap            int       `json:"cap"`
	Rows           []rowJSON `json:"rows"`
	WithoutPrivacy rowJSON   `json:"without_privacy"`
	PlainRule      string    `json:"rule_without_privacy"`
	Boundary       any       `json:"regime_boundary"`
	Free           any       `json:"free_from"` // null: nowhere
}

type rowJSON struct {
	Epsilon  any        `json:"epsilon"` // "none" without privacy
	Lower    any        `json:"lower_bound"`
	Mean     float64    `json:"mean"`
	SE       float64    `json:"standard_error"`
	Median   float64    `json:"median"`
	Q90      float64    `json:"q90"`
	Max      float64    `json:"max"`
	Capped   int        `json:"capped"`
	Wrong    int        `json:"wrong"`
	Interval [2]float64 `json:"wrong_interval"`
	Batches  float64    `json:"batches"`
	Ratio    float64    `json:"over_without_privacy"`
}

// MarshalJSON writes the plan for programs: what is not a number, or infinite, is null, and the
// row without privacy has the epsilon "none".
func (p *Plan) MarshalJSON() ([]byte, error) {
	finite := func(x float64) any {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return x
	}
	row := func(r PlanRow) rowJSON {
		out := rowJSON{r.Epsilon, finite(r.Lower), r.Mean, r.SE, r.Median, r.Q90, r.Max, r.Capped,
			r.Wrong, [2]float64{r.WrongLo, r.WrongHi}, r.Batches, r.OverNonPrivate}
		if math.IsInf(r.Epsilon, 1) {
			out.Epsilon = "none"
		}
		return out
	}
	out := planJSON{Arms: p.Arms, Rule: p.Rule.Name(), Risk: p.Rule.Risk(), Runs: p.Runs,
		Cap: p.Cap, WithoutPrivacy: row(p.Plain), PlainRule: p.PlainRule.Name(), Boundary: finite(p.Boundary)}
	if p.Free > 0 {
		out.Free = p.Free
	}
	for _, r := range p.Rows {
		out.Rows = append(out.Rows, row(r))
	}
	return json.Marshal(out)
}
