package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// A chooser picks one of the actions of a round, and says what to do once it is known whether that was
// clicked. No action is an error that the chooser has told.
type chooser interface {
	pick(actions []float64) (action int, learn func(click bool))
}

// A peer is somebody else's learner as a policy: it has no privacy, and sees each reward by itself, as soon
// as that has come.
type peer struct {
	chooser
	next  func(click bool)
	queue []func(click bool) // of decisions whose rewards have not come, the oldest first
	due   bool
}

func (p *peer) Mechanism() privacy.Mechanism { return privacy.VectorGaussian{} }
func (p *peer) Slots() int                   { return 1 }

// Due says that each decision is a segment.
func (p *peer) Due() int {
	if p.due {
		return 0
	}
	return -1
}

func (p *peer) Cut() []int64 { p.due = false; return nil }

func (p *peer) Best(actions []float64) (a int) {
	a, p.next = p.pick(actions)
	return a
}

func (p *peer) Play([]float64) { p.queue, p.due = append(p.queue, p.next), true }

// Learn is of one decision: its vector, which begins with an intercept above 0, times −1 or 1.
func (p *peer) Learn(r privacy.ReleasedVector) {
	p.queue[0](r.At(0) > 0)
	p.queue = p.queue[1:]
}

// Choose is for rewards that come at once, which no experiment here has.
func (p *peer) Choose([]float64) linear.Choice { return linear.Choice{Action: -1} }

// entry is a peer in the catalog.
func entry(name, source string, params []catalog.Param,
	of func(catalog.ContextualSetting, catalog.Params) chooser) catalog.Entry {
	return catalog.Entry{Name: name, Bandit: catalog.BanditContextual, Guarantee: "none", Source: source,
		Anytime: true, Params: params,
		NewContextual: func(s catalog.ContextualSetting, p catalog.Params) (linear.Contextual, error) {
			return &peer{chooser: of(s, p)}, nil
		}}
}

func number(name, doc string, or float64) catalog.Param {
	return catalog.Param{Name: name, Doc: doc, Default: or, Hi: math.MaxFloat64, HiIn: true}
}

// learners are the rules that rest on a ridge regression of clicks.
func learners() []catalog.Entry {
	ridge := number("lambda", "ridge parameter", 10)
	alpha := number("alpha", "width, in clicks", 0.05)
	return []catalog.Entry{
		entry("linucb", "Li, Chu, Langford and Schapire 2010, Algorithm 1, of one model", []catalog.Param{ridge, alpha},
			func(s catalog.ContextualSetting, p catalog.Params) chooser {
				r := newRidge(s, p["lambda"], 1)
				return ruled{r, func(actions []float64) int { return r.optimist(actions, p["alpha"]) }}
			}),
		entry("lints", "Agrawal and Goyal 2013, Algorithm 1", []catalog.Param{ridge, alpha},
			func(s catalog.ContextualSetting, p catalog.Params) chooser {
				r := newRidge(s, p["lambda"], 1)
				return ruled{r, func(actions []float64) int { return r.best(r.draw(p["alpha"]), actions) }}
			}),
		entry("squarecb", "Foster and Rakhlin 2020, Algorithm 1, with γ = scale·√t",
			[]catalog.Param{ridge, number("scale", "of γ", 100)},
			func(s catalog.ContextualSetting, p catalog.Params) chooser {
				r := newRidge(s, p["lambda"], 1)
				return ruled{r, func(actions []float64) int {
					return drawn(r.gapWeights(actions, p["scale"]*math.Sqrt(float64(1+r.models[0].n))), s.Coins)
				}}
			}),
		entry("epsilon-greedy", "Langford and Zhang 2007, with one rate", []catalog.Param{ridge,
			number("epsilon", "share of uniform rounds", 0.05)},
			func(s catalog.ContextualSetting, p catalog.Params) chooser {
				r := newRidge(s, p["lambda"], 1)
				return ruled{r, func(actions []float64) int {
					if uniform, a := s.Coins.Float64(), s.Coins.Float64(); uniform < p["epsilon"] {
						return int(a * float64(len(actions)/r.dim))
					}
					return r.best(r.models[0].mean, actions)
				}}
			}),
		entry("bagged-ts", "Eckles and Kaptein 2014: each of some models takes a reward twice or not at all",
			[]catalog.Param{ridge, number("models", "how many", 16)},
			func(s catalog.ContextualSetting, p catalog.Params) chooser {
				r := newRidge(s, p["lambda"], max(1, int(p["models"])))
				return ruled{r, func(actions []float64) int {
					return r.best(r.models[int(s.Coins.Float64()*float64(len(r.models)))].mean, actions)
				}}
			}),
	}
}

// ruled is a rule on regressions.
type ruled struct {
	*ridge
	rule func(actions []float64) int
}

func (r ruled) pick(actions []float64) (int, func(bool)) {
	a := r.rule(actions)
	x := components(actions[a*r.dim:][:r.dim])
	return a, func(click bool) { r.learn(x, click) }
}

// refitEvery is how many rewards a fit is made of at a time.
const refitEvery = 100

// A ridge is one or more regressions of clicks, 0 or 1.
type ridge struct {
	dim    int
	coins  policy.Coins
	models []regression
}

type regression struct {
	v    *mat.SymDense // λI + Σ xxᵀ
	b    *mat.VecDense // Σ x·click
	n    int           // how many
	chol mat.Cholesky  // of v, at the last fit
	mean *mat.VecDense // v⁻¹b, at the last fit
	wide *mat.SymDense // v⁻¹, at the last fit, if that was asked for
}

func newRidge(s catalog.ContextualSetting, lambda float64, models int) *ridge {
	r := &ridge{dim: s.Dim, coins: s.Coins, models: make([]regression, models)}
	for i := range r.models {
		m := &r.models[i]
		m.v, m.b, m.mean = mat.NewSymDense(s.Dim, nil), mat.NewVecDense(s.Dim, nil), mat.NewVecDense(s.Dim, nil)
		for j := range s.Dim {
			m.v.SetSym(j, j, lambda)
		}
		m.fit()
	}
	return r
}

// A component of a vector that is not 0: of a map's vectors most are.
type component struct {
	at int
	x  float64
}

func components(x []float64) (out []component) {
	for j, y := range x {
		if y != 0 {
			out = append(out, component{j, y})
		}
	}
	return out
}

func (r *ridge) learn(x []component, click bool) {
	for i := range r.models {
		m, weight := &r.models[i], 1.0
		if len(r.models) > 1 {
			weight = 2 * math.Floor(2*r.coins.Float64())
		}
		if weight > 0 {
			for i, p := range x {
				for _, q := range x[:i+1] {
					m.v.SetSym(p.at, q.at, m.v.At(p.at, q.at)+weight*p.x*q.x)
				}
				if click {
					m.b.SetVec(p.at, m.b.AtVec(p.at)+weight*p.x)
				}
			}
		}
		if m.n++; m.n%refitEvery == 0 {
			m.fit()
		}
	}
}

// fit solves for the mean. V ⪰ λI, so that it has a factor.
func (m *regression) fit() {
	if m.chol.Factorize(m.v) {
		_ = m.chol.SolveVecTo(m.mean, m.b) // the error is of a bad condition, and there is an answer
		m.wide = nil
	}
}

func (r *ridge) score(theta *mat.VecDense, actions []float64, a int) (sum float64) {
	mean := theta.RawVector().Data
	for j, x := range actions[a*r.dim:][:r.dim] {
		sum += x * mean[j]
	}
	return sum
}

func (r *ridge) best(theta *mat.VecDense, actions []float64) int {
	return most(len(actions)/r.dim, func(a int) float64 { return r.score(theta, actions, a) })
}

// optimist plays the largest ⟨mean, x⟩ + α‖x‖ in V⁻¹.
func (r *ridge) optimist(actions []float64, alpha float64) int {
	m := &r.models[0]
	if m.wide == nil {
		m.wide = mat.NewSymDense(r.dim, nil)
		_ = m.chol.InverseTo(m.wide)
	}
	return most(len(actions)/r.dim, func(a int) float64 {
		x, square := components(actions[a*r.dim:][:r.dim]), 0.0
		for _, p := range x {
			for _, q := range x {
				square += p.x * q.x * m.wide.At(p.at, q.at)
			}
		}
		return r.score(m.mean, actions, a) + alpha*math.Sqrt(square)
	})
}

// draw is mean + αU⁻¹z with V = UᵀU, which is N(mean, α²V⁻¹).
func (r *ridge) draw(alpha float64) *mat.VecDense {
	m := &r.models[0]
	z := mat.NewVecDense(r.dim, nil)
	for j := range r.dim {
		z.SetVec(j, r.coins.Normal())
	}
	_ = z.SolveVec(m.chol.RawU(), z)
	z.AddScaledVec(m.mean, alpha, z)
	return z
}

// gapWeights are 1/(K + γ·gap) of all but the best action, and what is left of 1 of that.
func (r *ridge) gapWeights(actions []float64, gamma float64) []float64 {
	k := len(actions) / r.dim
	best := r.best(r.models[0].mean, actions)
	top, left := r.score(r.models[0].mean, actions, best), 1.0
	p := make([]float64, k)
	for a := range p {
		if a != best {
			p[a] = 1 / (float64(k) + gamma*(top-r.score(r.models[0].mean, actions, a)))
			left -= p[a]
		}
	}
	p[best] = left
	return p
}

// most is the index of the largest score, the first of equals.
func most(n int, score func(int) float64) (best int) {
	top := math.Inf(-1)
	for i := range n {
		if s := score(i); s > top {
			best, top = i, s
		}
	}
	return best
}

// drawn is an index with these probabilities.
func drawn(p []float64, coins policy.Coins) int {
	u := coins.Float64()
	for i, q := range p {
		if u -= q; u < 0 {
			return i
		}
	}
	return most(len(p), func(i int) float64 { return p[i] })
}

// all are the peers, with Vowpal Wabbit if its program is named.
func all(program string) []catalog.Entry {
	out := learners()
	if program != "" {
		out = append(out, vowpal(program))
	}
	return out
}

func wrong(format string, args ...any) error { return fmt.Errorf("peers: "+format, args...) }
