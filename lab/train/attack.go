package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/audit"
)

// ErrNoIterates is returned where a run has no step to attack.
var ErrNoIterates = errors.New("train: no iterates: the attack needs the parameters before and after a step")

// A Score is what an attack on the iterates computes at each step; the steps' scores are added up
// [Azize 2024, Algorithm 13].
type Score int

const (
	// (7.2): the likelihood ratio with the covariance of reference gradients
	Covariance    Score = iota
	ScalarProduct       // ⟨g*_t, ḡ_t⟩ [Azize 2024, §7.1.2]
	GLiR                // the gradient likelihood ratio of Leemann et al. [Azize 2024, §7.1.2]
)

// String implements fmt.Stringer.
func (s Score) String() string {
	switch s {
	case Covariance:
		return "covariance"
	case ScalarProduct:
		return "scalar product"
	case GLiR:
		return "GLiR"
	}
	return fmt.Sprintf("Score(%d)", int(s))
}

// An Attack scores a run by its iterates. The covariance and the mean of gradients are estimated
// once, at θ₀, as in Algorithm 13; they and the canary's gradient are clipped as the run clips.
type Attack struct {
	Score      Score
	References Dataset // not used by ScalarProduct
	// Informed says that the references are the training set itself, without the canary: what
	// is random is the sample and the noise alone. A definition of privacy gives the
	// adversary that much.
	Informed bool
	// Refresh estimates the mean anew at each θ_t, which is ideal and costs a gradient for each
	// reference and step; the covariance remains that of θ₀.
	Refresh bool
	// Mixture scores a step of a sampled run by log((1−q) + q·e^s), since the canary is in the step
	// with probability q only. Without it scores are added as Algorithm 13 does. Covariance only.
	Mixture bool
	// LastLayer restricts the attack to the last linear layer's parameters [Azize 2024, §7.4].
	LastLayer bool
}

// String names the attack.
func (a Attack) String() string {
	s := a.Score.String()
	if a.Mixture {
		s += ", mixture"
	}
	if a.Informed {
		s += ", informed"
	}
	if a.LastLayer {
		s += ", last layer"
	}
	return s
}

// A Prepared is an attack prepared for a training run: what can be computed before any game. It is safe
// for use by several workers.
type Prepared struct {
	attack Attack
	t      Training
	c      audit.Covariance
	start  []float64
	mean   []float64 // of reference gradients at θ₀, in the attacked coordinates
	shrink float64
	lo, hi int
	rate   float64 // the probability that a step holds the canary
	rows   int
	n      int
	add    bool
}

// Plan prepares the attack on runs from start with n examples, not counting a canary that is added.
//
// The covariance is k times that of a step's mean gradient ḡ, where k is the batch: Ĉ₀ of the
// references, shrunk where they are fewer than needed; times 1 − |B|/n if the attack is informed;
// for Poisson samples Ĉ₀ + (1−q)μ̂₀μ̂₀ᵀ, and (1−q)(Ĉ₀ + μ̂₀μ̂₀ᵀ) if informed; and then the noise of
// DP-SGD, σ²C²/k. A target that is added, not put in the place of another, moves the mean by g*,
// and not by g* − μ.
func (a Attack) Plan(t Training, start []float64, n int, neighbour Neighbour) (*Prepared, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(start) != t.Model.Params() {
		return nil, fmt.Errorf("train: θ₀ has %d parameters, the model %d", len(start), t.Model.Params())
	}
	if n < 1 {
		return nil, fmt.Errorf("train: n = %d examples: at least 1", n)
	}
	if a.Score < Covariance || a.Score > GLiR {
		return nil, fmt.Errorf("train: score = %d: there is none of this number", a.Score)
	}
	if a.Mixture && a.Score != Covariance {
		return nil, fmt.Errorf("train: the %v attack has no mixture: it is no likelihood ratio", a.Score)
	}
	rows := t.rows(n, 0)
	p := &Prepared{attack: a, t: t, start: slices.Clone(start), lo: 0, hi: t.Model.Params(),
		rows: max(1, int(math.Round(rows))), n: n, add: neighbour == AddRemove, rate: 1}
	switch t.Method {
	case MiniBatch, Stochastic:
		p.rate = min(1, rows/float64(n))
	case DPSGD:
		p.rate = t.Sampling
	}
	if a.LastLayer {
		p.lo, p.hi = t.Model.Last()
	}
	if a.Score == ScalarProduct {
		return p, nil
	}
	if err := a.References.Validate(); err != nil {
		return nil, fmt.Errorf("train: references: %w", err)
	}
	if len(a.References.X) < 2 {
		return nil, fmt.Errorf("train: %w: %d references, must be at least 2",
			audit.ErrFewReferences, len(a.References.X))
	}
	if err := t.fits(a.References, start); err != nil {
		return nil, fmt.Errorf("train: references: %w", err)
	}
	gradients := p.gradients(start)
	d := p.hi - p.lo
	v := mat.NewSymDense(d, nil)
	scale := float64(p.rows) / rows
	poisson := t.Method == DPSGD && t.Sampling < 1
	// With every example in each step there is nothing random about the examples for who knows them.
	factor := scale
	if a.Informed {
		factor *= 1 - p.rate
	}
	p.mean = meanOf(gradients, d)
	if factor > 0 {
		c, err := audit.NewCovariance(gradients, p.rows, true)
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		p.shrink = c.Shrinkage()
		v.ScaleSym(factor, c.Matrix())
		if poisson {
			v.SymRankOne(v, scale*(1-p.rate), mat.NewVecDense(d, p.mean))
		}
	}
	if t.Method == DPSGD {
		sd := t.Noise * t.Clip
		for j := range d {
			v.SetSym(j, j, v.At(j, j)+sd*sd*scale/rows)
		}
	}
	var err error
	if p.c, err = audit.CovarianceOf(p.mean, v, p.rows); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return p, nil
}

// Note says in a sentence that the covariance was shrunk, for a report. It is empty if it was not.
func (p *Prepared) Note() string {
	if p.shrink == 0 {
		return ""
	}
	return fmt.Sprintf("The covariance of %d reference gradients in %d dimensions was shrunk: "+
		"weight %.3g on a multiple of the identity.", len(p.attack.References.X), p.hi-p.lo, p.shrink)
}

// gradients are those of the references, clipped and restricted.
func (p *Prepared) gradients(theta []float64) [][]float64 {
	refs := p.attack.References
	pass, g := p.t.Model.NewPass(), make([]float64, p.t.Model.Params())
	out := make([][]float64, len(refs.X))
	for i, x := range refs.X {
		pass.Gradient(theta, x, refs.Labels[i], g, nil)
		if p.t.Method == DPSGD {
			clip(g, p.t.Clip)
		}
		out[i] = append([]float64(nil), g[p.lo:p.hi]...)
	}
	return out
}

// Mahalanobis is a canary's leakage score at θ₀, ‖g* − μ̂₀‖²/k in the norm of the inverse
// covariance, or that of g* where the canary is added: the higher, the easier it is traced.
func (p *Prepared) Mahalanobis(c Canary) (float64, error) {
	if p.attack.Score == ScalarProduct {
		return 0, errors.New("train: the scalar product has no covariance")
	}
	if err := c.validate(p.t.Model); err != nil {
		return 0, fmt.Errorf("train: canary: %w", err)
	}
	tr := p.Tracer(c)
	return p.c.Mahalanobis(tr.aimed(p.start, p.mean))
}

// Tracer starts the attack for one canary. It is for one worker; Reset makes it ready
// for the next run.
func (p *Prepared) Tracer(c Canary) *Tracer {
	d := p.t.Model.Params()
	return &Tracer{p: p, canary: c, pass: p.t.Model.NewPass(), g: make([]float64, d),
		target: make([]float64, p.hi-p.lo), batch: make([]float64, p.hi-p.lo), mean: make([]float64, p.hi-p.lo)}
}

// A Tracer follows one run.
type Tracer struct {
	p                   *Prepared
	canary              Canary
	pass                Pass
	g                   []float64
	target, batch, mean []float64
	scorer, first       audit.Scorer // of this step, and of one from θ₀
	sum                 float64
	steps               int
}

// Reset forgets the run.
func (tr *Tracer) Reset() { tr.sum, tr.steps = 0, 0 }

// Score is the sum over the steps so far.
func (tr *Tracer) Score() float64 { return tr.sum }

// aimed is the target as an attack on a mean wants it.
func (tr *Tracer) aimed(theta, mean []float64) []float64 {
	p := tr.p
	tr.canary.gradient(tr.pass, theta, tr.g)
	if p.t.Method == DPSGD {
		clip(tr.g, p.t.Clip)
	}
	copy(tr.target, tr.g[p.lo:p.hi])
	if p.add && mean != nil {
		for j, m := range mean {
			tr.target[j] += m
		}
	}
	return tr.target
}

// Step adds a step's score: ḡ = (θ_t − θ_{t+1})/η, of which [Azize 2024, §7.2] prints the negative.
func (tr *Tracer) Step(before, after []float64) error {
	p := tr.p
	for j := range tr.batch {
		tr.batch[j] = (before[p.lo+j] - after[p.lo+j]) / p.t.Rate
	}
	if p.attack.Refresh && p.attack.Score != ScalarProduct && tr.steps > 0 {
		tr.drift(before)
	}
	// Every game starts at θ₀, so its first step needs no new aim.
	if tr.steps == 0 && tr.first != nil && slices.Equal(before, p.start) {
		tr.scorer = tr.first
	} else if tr.scorer == nil || tr.canary.Gradient == nil || p.attack.Refresh && !p.add {
		if err := tr.aim(before); err != nil {
			return err
		}
		if tr.steps == 0 && slices.Equal(before, p.start) {
			tr.first = tr.scorer
		}
	}
	tr.sum += tr.scorer.Score(tr.batch)
	tr.steps++
	return nil
}

func (tr *Tracer) aim(theta []float64) error {
	p := tr.p
	var a audit.Attack
	switch p.attack.Score {
	case ScalarProduct:
		a = audit.ScalarProduct{Reference: make([]float64, len(tr.batch))}
	case GLiR:
		a = audit.GLiR{Covariance: p.c}
	default:
		a = p.c
		if p.attack.Mixture {
			a = audit.Sampled{Attack: p.c, Rate: p.rate}
		}
	}
	target := tr.aimed(theta, p.mean)
	if p.attack.Refresh && !p.add && p.mean != nil && tr.steps > 0 {
		for j := range target {
			target[j] -= tr.mean[j] - p.mean[j]
		}
	}
	s, err := a.Aim(append([]float64(nil), target...))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	tr.scorer = s
	return nil
}

// drift moves the batch by how far the references' mean gradient has moved since θ₀, so that the
// mean of the plan is right again.
func (tr *Tracer) drift(theta []float64) {
	p := tr.p
	refs := p.attack.References
	clear(tr.mean)
	for i, x := range refs.X {
		tr.pass.Gradient(theta, x, refs.Labels[i], tr.g, nil)
		if p.t.Method == DPSGD {
			clip(tr.g, p.t.Clip)
		}
		for j := range tr.mean {
			tr.mean[j] += tr.g[p.lo+j]
		}
	}
	for j := range tr.mean {
		tr.mean[j] /= float64(len(refs.X))
		tr.batch[j] -= tr.mean[j] - p.mean[j]
	}
}

// Trace scores a run that was stored: θ_0 to θ_T.
func (p *Prepared) Trace(c Canary, iterates [][]float64) (float64, error) {
	if len(iterates) < 2 {
		return 0, fmt.Errorf("%w; there are %d", ErrNoIterates, len(iterates))
	}
	if err := c.validate(p.t.Model); err != nil {
		return 0, fmt.Errorf("train: canary: %w", err)
	}
	for i, theta := range iterates {
		if len(theta) != p.t.Model.Params() {
			return 0, fmt.Errorf("train: iterate %d has %d parameters, the model %d", i, len(theta),
				p.t.Model.Params())
		}
	}
	tr := p.Tracer(c)
	for i := 1; i < len(iterates); i++ {
		if err := tr.Step(iterates[i-1], iterates[i]); err != nil {
			return 0, err
		}
	}
	return tr.Score(), nil
}

func meanOf(points [][]float64, d int) []float64 {
	m := make([]float64, d)
	for _, p := range points {
		for j, v := range p {
			m[j] += v
		}
	}
	for j := range m {
		m[j] /= float64(len(points))
	}
	return m
}
