package paper

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// theorems are what [Azize and Basu 2024] to [Azize et al. 2023] prove, figure by figure of a source.
func theorems() []Figure {
	return []Figure{zcdpTheorems(), eliminationTheorems(), distributedTheorems(), identificationTheorems()}
}

// auditWhy is the Why of theorems on privacy: what an audit can say of them.
const auditWhy = "No audit can show that a mechanism is private: this one looked for a leak " +
	"larger than what is claimed, and says how much it found."

// An attacked is a policy that a theorem calls private, and how it is attacked.
type attacked struct {
	policy  string // by its name in the catalog
	horizon int    // of a game
	budget  privacy.Budget
	params  catalog.Params
	risk    float64 // of a policy that looks for the best arm; 0: it does not
	delta   float64 // at which ε is bounded
	fault   audit.Fault
}

// foundEpsilon is ε found at confidence Level, the estimate of it, what is claimed, and the games.
type foundEpsilon struct{ Low, Estimate, Claimed, Games float64 }

// found is what an attack finds.
func (a attacked) found(ctx context.Context, seed uint64, games int) (foundEpsilon, error) {
	const arms = 2
	bandit := catalog.BanditArms
	if a.risk > 0 {
		bandit = catalog.BanditIdentify
	}
	e, err := catalog.Find(bandit, a.policy)
	if err != nil {
		return foundEpsilon{}, err
	}
	var s audit.Subject
	if a.risk > 0 {
		s, err = audit.IdentifySubject(e, arms, a.horizon, a.risk, a.budget, a.params)
	} else {
		s, err = audit.PolicySubject(e, arms, a.horizon, a.budget, a.params)
	}
	if err != nil {
		return foundEpsilon{}, err
	}
	s = s.Broken(a.fault)
	f, err := audit.PolicyAudit{
		Subject: s, Adversaries: audit.Adversaries(arms, a.horizon, audit.View, audit.Table),
		Sees: audit.Releases, Delta: a.delta, Gamma: auditGamma,
		Games: games, Pilot: max(128, games/64),
		Key: noise.Key{Seed: seed, Experiment: "theorem", Cell: a.policy},
	}.Run(ctx)
	return foundEpsilon{f.Low, f.Estimate, claimedEpsilon(a.budget, a.delta), float64(f.Games)}, err
}

// claimedEpsilon is what a budget is at δ, NaN for a budget that no theorem of these has.
func claimedEpsilon(b privacy.Budget, delta float64) float64 {
	switch b := b.(type) {
	case privacy.Pure:
		return b.Epsilon
	case privacy.ZCDP:
		return privacy.ZCDPToApproxTight(b.Rho, delta)
	}
	return math.NaN()
}

// gamesOf are the games of an audit of a theorem.
func gamesOf(p Preset) int {
	if p == Quick {
		return 4_000
	}
	return 200_000
}

// unfound decides a theorem on privacy: it fails if an audit found more than it claims, at
// confidence Level.
func unfound(names ...string) Check {
	return func(e *Evidence) Finding {
		return each(names, func(name string) Finding {
			x := named[foundEpsilon](e, name)
			f := Finding{Answer: Holds, Value: x.Estimate, Low: x.Low, High: math.NaN(),
				Runs: int(x.Games)}
			f.Detail = fmt.Sprintf("%s: claimed ε is %.4g, found at least %.4g (%.0f %% of it)",
				name, x.Claimed, x.Low, 100*x.Low/x.Claimed)
			if x.Low > x.Claimed {
				f.Answer = Fails
			}
			return f
		})
	}
}

const unfoundStatistic = "The lower bound on ε of the best attack that was found on the " +
	"releases, at 99 %, over games with neighbours of view and table; holds if it is not above " +
	"the claim. A twin with half or a quarter of the noise must be found out, which a test sees to"

// tightest keeps the largest ratio and the place where it is.
type tightest struct {
	value float64
	at    string
}

func (t *tightest) see(v float64, format string, args ...any) {
	if t.at == "" || v > t.value || math.IsNaN(v) {
		t.value, t.at = v, fmt.Sprintf(format, args...)
	}
}

// tightestTitle is the table that says where ratios are largest.
const tightestTitle = "Where each is tightest"

// put keeps a largest ratio, and its place in a table of its own.
func (t *tightest) put(n *Numbers, name string) {
	n.set(name, t.value)
	if len(n.Tables) == 0 || n.Tables[0].Title != tightestTitle {
		n.Tables = append([]report.Table{{Title: tightestTitle,
			Head: []string{"what", "where", "largest ratio"}, Text: 2,
			Groups: make([]report.Group, 1)}}, n.Tables...)
	}
	rows := &n.Tables[0].Groups[0].Rows
	*rows = append(*rows, []string{name, t.at, fmt.Sprintf("%.4g", t.value)})
}

// ratios decides a theorem from the largest of ratios that are computed: it holds if it is at most
// 1, up to rounding.
func ratios(name string) Check {
	return func(e *Evidence) Finding {
		most := named[float64](e, name)
		where := "a place that is not noted"
		for _, g := range e.Numbers.Tables {
			if g.Title != tightestTitle {
				continue
			}
			for _, row := range g.Groups[0].Rows {
				if row[0] == name {
					where = row[1]
				}
			}
		}
		return exact(most, most <= 1+1e-9, "largest at "+where)
	}
}

// underBound judges the mean final regret of a policy in every cell of some experiments against a
// bound: it holds if all ratios are below 1, and shows the largest.
func underBound(policy string, limit func(c *experiment.CellResult,
	m *experiment.Manifest) (float64, error), names ...string) Check {
	return overCells(policy, names, func(c *experiment.CellResult, m *experiment.Manifest,
		cells int) Finding {
		b := need(limit(c, m))
		x := meanOf(c.FinalRegret)
		h := x.half(cells)
		return Below(x.mean/b, (x.mean-h)/b, (x.mean+h)/b, 1, x.runs,
			fmt.Sprintf("%s at T = %.0e", c.Label(), float64(m.Horizon)))
	})
}

// overCells judges every cell of a policy in those of some experiments that are played. Of cells
// that agree, that with the largest value is shown.
func overCells(policy string, names []string,
	judge func(c *experiment.CellResult, m *experiment.Manifest, cells int) Finding) Check {
	return func(e *Evidence) Finding {
		type cell struct {
			c *experiment.CellResult
			m *experiment.Manifest
		}
		var cells []cell
		for _, name := range names {
			r, ok := e.Experiments[name]
			if !ok {
				continue
			}
			for i := range r.Cells {
				if r.Cells[i].Policy == policy {
					cells = append(cells, cell{&r.Cells[i], r.Manifest})
				}
			}
		}
		var parts []Finding
		for _, x := range cells {
			f := judge(x.c, x.m, len(cells))
			if len(parts) > 0 && f.Value > parts[0].Value {
				parts = append([]Finding{f}, parts...)
				continue
			}
			parts = append(parts, f)
		}
		return Every(parts)
	}
}

// keepsOrder judges whether the regret of a policy over a rate grows from one horizon to a later
// one: in every group of cells, the largest such ratio at the later horizon over the largest at the
// earlier one must be below most. Group names a cell's group; empty leaves the cell out.
func keepsOrder(policy, early, late string, most float64,
	rate func(c *experiment.CellResult, T float64) float64,
	group func(c *experiment.CellResult) string) Check {
	type top struct {
		value, rate float64
		c           *experiment.CellResult
	}
	return func(e *Evidence) Finding {
		var tops [2]map[string]top
		var names []string
		var T [2]float64
		for i, name := range []string{early, late} {
			r := need(e.Results(name))
			tops[i], T[i] = map[string]top{}, float64(r.Manifest.Horizon)
			for j := range r.Cells {
				c := &r.Cells[j]
				if c.Policy != policy || group(c) == "" {
					continue
				}
				g := group(c)
				old, ok := tops[i][g]
				if !ok && i == 0 {
					names = append(names, g)
				}
				x := rate(c, T[i])
				if v := mean(c.FinalRegret) / x; !ok || v > old.value {
					tops[i][g] = top{v, x, c}
				}
			}
		}
		var parts []Finding
		for _, g := range names {
			x, y := tops[0][g], tops[1][g]
			if y.c == nil {
				continue
			}
			r, lo, hi := unpaired(y.c.FinalRegret, x.c.FinalRegret, len(names))
			s := x.rate / y.rate
			f := Below(r*s, lo*s, hi*s, most, len(x.c.FinalRegret),
				fmt.Sprintf("%s: %.3g times the rate at T = %.0e, %.3g times at %.0e", g, x.value,
					T[0], y.value, T[1]))
			if len(parts) > 0 && f.Value > parts[0].Value {
				parts = append([]Finding{f}, parts...)
				continue
			}
			parts = append(parts, f)
		}
		return Every(parts)
	}
}

// gapOf is the gap of all suboptimal arms of a cell, which its instance's name ends with, as in
// "ten arms, gap-0.1".
func gapOf(c *experiment.CellResult) (float64, error) {
	_, text, ok := strings.Cut(c.Instance, "gap-")
	if !ok {
		return 0, fmt.Errorf("paper: instance %q names no gap", c.Instance)
	}
	return strconv.ParseFloat(text, 64)
}

// epsilonOfCell is the ε of a cell's row.
func epsilonOfCell(c *experiment.CellResult) float64 { return epsilonOf(place{c.Instance, c.Row()}) }
