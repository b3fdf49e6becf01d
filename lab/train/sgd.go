package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// A Method is a way of gradient descent [Azize 2024, §7.1.1].
type Method int

const (
	Batch Method = iota // the gradient of all examples
	// examples are shuffled into batches at the start of each epoch, which are then taken in turn
	MiniBatch
	Stochastic // one example a step, uniform
	DPSGD      // Poisson samples, clipped, with noise (Abadi et al. 2016)
)

// String implements fmt.Stringer.
func (m Method) String() string {
	switch m {
	case Batch:
		return "batch"
	case MiniBatch:
		return "mini-batch"
	case Stochastic:
		return "stochastic"
	case DPSGD:
		return "DP-SGD"
	}
	return fmt.Sprintf("Method(%d)", int(m))
}

// A Flaw breaks DP-SGD on purpose: an audit must refute what a flawed run claims.
type Flaw int

const (
	Sound        Flaw = iota
	HalfNoise         // noise of half the scale
	Unclipped         // gradients of any norm, with the noise of clipped ones
	BatchClipped      // the mean of the batch is clipped, instead of each example's gradient
)

// String implements fmt.Stringer.
func (f Flaw) String() string {
	switch f {
	case Sound:
		return "sound"
	case HalfNoise:
		return "half the noise"
	case Unclipped:
		return "unclipped gradients"
	case BatchClipped:
		return "the batch clipped as a whole"
	}
	return fmt.Sprintf("Flaw(%d)", int(f))
}

// A Training is a run of gradient descent, θ_{t+1} = θ_t − η·ḡ_t.
type Training struct {
	Model  Model
	Method Method
	Steps  int     // T ≥ 1
	Rate   float64 // η > 0, the learning rate
	Size   int     // |B|, of MiniBatch

	// Of DPSGD: each example is in a step's sample with probability Sampling, its gradient is
	// clipped to norm Clip, and N(0, Noise²Clip²) is added to each coordinate of the sum, which is
	// then divided by Sampling·n. The n here is public: the data set's size without any canary that
	// is added to it. [Azize 2024, §7.1.1] prints the noise outside the mean.
	Sampling, Clip, Noise float64
	Flaw                  Flaw
}

// Validate reports the first parameter out of range.
func (t Training) Validate() error {
	if t.Model == nil {
		return errors.New("train: no model")
	}
	if v, ok := t.Model.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	if t.Model.Inputs() < 1 || t.Model.Classes() < 2 {
		return fmt.Errorf("train: a model of %d inputs and %d classes: at least 1 and 2",
			t.Model.Inputs(), t.Model.Classes())
	}
	if t.Steps < 1 {
		return fmt.Errorf("train: steps = %d: at least 1", t.Steps)
	}
	if !(t.Rate > 0) || math.IsInf(t.Rate, 0) {
		return fmt.Errorf("train: learning rate is %v, must be positive and finite", t.Rate)
	}
	switch t.Method {
	case Batch, Stochastic:
	case MiniBatch:
		if t.Size < 1 {
			return fmt.Errorf("train: batch size = %d: at least 1", t.Size)
		}
	case DPSGD:
		if !(t.Clip > 0) || math.IsInf(t.Clip, 0) {
			return fmt.Errorf("train: clipping norm is %v, must be positive and finite", t.Clip)
		}
		if t.Flaw < Sound || t.Flaw > BatchClipped {
			return fmt.Errorf("train: flaw = %d: there is none of this number", t.Flaw)
		}
		return t.accountant().Validate()
	default:
		return fmt.Errorf("train: method = %d: there is none of this number", t.Method)
	}
	if t.Flaw != Sound {
		return fmt.Errorf("train: flaw %q: only DP-SGD has flaws", t.Flaw)
	}
	return nil
}

func (t Training) accountant() SampledGaussian {
	return SampledGaussian{t.Sampling, t.Noise, t.Steps}
}

// Claim is what the run says of itself, whatever its flaw: the accountant's ε at δ for DP-SGD, and
// +Inf for the others, which promise nothing.
func (t Training) Claim(delta float64, n Neighbour) (Guarantee, error) {
	return t.Claims(n)(delta)
}

// Claims is Claim for many δ.
func (t Training) Claims(n Neighbour) func(delta float64) (Guarantee, error) {
	if t.Method != DPSGD {
		return func(delta float64) (Guarantee, error) {
			return Guarantee{math.Inf(1), delta, n, 0, "none is claimed"}, nil
		}
	}
	return t.accountant().Guarantees(n)
}

// rows is the number that a step's sum of gradients is divided by, for n examples of which any
// added canary is not counted.
func (t Training) rows(n, added int) float64 {
	switch t.Method {
	case Batch:
		return float64(n + added)
	case MiniBatch:
		return float64(t.Size)
	case Stochastic:
		return 1
	}
	return t.Sampling * float64(n)
}

// Run trains on the data and, besides, on the canaries, from theta on, which it overwrites. Observe,
// unless it is nil, is shown each step's parameters before and after; it must not keep them.
func (t Training) Run(data Dataset, canaries []Canary, theta []float64, src *noise.Fast,
	observe func(step int, before, after []float64) error) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := data.Validate(); err != nil {
		return err
	}
	if err := t.fits(data, theta); err != nil {
		return err
	}
	for i, c := range canaries {
		if err := c.validate(t.Model); err != nil {
			return fmt.Errorf("train: canary %d: %w", i, err)
		}
	}
	if t.Method == MiniBatch && t.Size > len(data.X)+len(canaries) {
		return fmt.Errorf("train: batch size = %d of %d examples", t.Size, len(data.X)+len(canaries))
	}
	use := make([]int, len(data.X))
	for i := range use {
		use[i] = i
	}
	return newRunner(t).run(data, use, canaries, theta, src, observe)
}

// Iterates is Run from the model's own start; it returns θ_0 to θ_T.
func (t Training) Iterates(data Dataset, canaries []Canary, src *noise.Fast) ([][]float64, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	theta := make([]float64, t.Model.Params())
	t.Model.Init(theta, src)
	all := [][]float64{append([]float64(nil), theta...)}
	err := t.Run(data, canaries, theta, src, func(_ int, _, after []float64) error {
		all = append(all, append([]float64(nil), after...))
		return nil
	})
	return all, err
}

func (t Training) fits(data Dataset, theta []float64) error {
	if len(data.X) == 0 {
		return errors.New("train: no data")
	}
	if data.Inputs() != t.Model.Inputs() || data.Classes != t.Model.Classes() {
		return fmt.Errorf("train: data of %d features and %d classes, a model of %d and %d",
			data.Inputs(), data.Classes, t.Model.Inputs(), t.Model.Classes())
	}
	if len(theta) != t.Model.Params() {
		return fmt.Errorf("train: θ₀ has %d parameters, the model %d", len(theta), t.Model.Params())
	}
	return checkFinite("parameter", theta)
}

// clip scales g down to norm c (ClipNorm of [Azize 2024, §7.1.1]).
func clip(g []float64, c float64) {
	var s float64
	for _, v := range g {
		s += float64(v * v)
	}
	if s <= c*c {
		return
	}
	f := c / math.Sqrt(s)
	for i := range g {
		g[i] *= f
	}
}

// runner is one worker's scratch space.
type runner struct {
	t               Training
	pass            Pass
	g, sum, before  []float64
	sample, shuffle []int
	public          int // n of the divisor; 0 is that of the data in use
}

func newRunner(t Training) *runner {
	d := t.Model.Params()
	return &runner{t: t, pass: t.Model.NewPass(), g: make([]float64, d), sum: make([]float64, d),
		before: make([]float64, d)}
}

// gradient writes a record's gradient to r.g, clipped as the run clips it.
func (r *runner) gradient(data Dataset, use []int, canaries []Canary, theta []float64, record int) {
	if record < len(use) {
		i := use[record]
		r.pass.Gradient(theta, data.X[i], data.Labels[i], r.g, nil)
	} else {
		canaries[record-len(use)].gradient(r.pass, theta, r.g)
	}
	if r.t.Method == DPSGD && (r.t.Flaw == Sound || r.t.Flaw == HalfNoise) {
		clip(r.g, r.t.Clip)
	}
}

func (r *runner) run(data Dataset, use []int, canaries []Canary, theta []float64, src *noise.Fast,
	observe func(int, []float64, []float64) error) error {
	t := r.t
	n := len(use) + len(canaries)
	rows := t.rows(len(use), len(canaries))
	if t.Method == DPSGD && r.public > 0 {
		rows = t.rows(r.public, 0)
	}
	next := 0
	r.shuffle = r.shuffle[:0]
	for step := range t.Steps {
		r.sample = r.sample[:0]
		switch t.Method {
		case Batch:
			for i := range n {
				r.sample = append(r.sample, i)
			}
		case Stochastic:
			r.sample = append(r.sample, below(n, src))
		case MiniBatch:
			if len(r.shuffle) == 0 || next+t.Size > n {
				r.shuffle, next = permute(r.shuffle[:0], n, src), 0
			}
			r.sample = append(r.sample, r.shuffle[next:next+t.Size]...)
			next += t.Size
		case DPSGD:
			for i := range n {
				if t.Sampling == 1 || src.Bernoulli(t.Sampling) {
					r.sample = append(r.sample, i)
				}
			}
		}
		clear(r.sum)
		for _, i := range r.sample {
			r.gradient(data, use, canaries, theta, i)
			for j, v := range r.g {
				r.sum[j] += v
			}
		}
		if t.Method == DPSGD {
			sd := t.Noise * t.Clip
			switch t.Flaw {
			case HalfNoise:
				sd /= 2
			case BatchClipped:
				clip(r.sum, t.Clip*rows)
			}
			for j := range r.sum {
				r.sum[j] += float64(sd * src.Normal())
			}
		}
		copy(r.before, theta)
		for j, s := range r.sum {
			theta[j] -= float64(t.Rate * (s / rows))
			if v := theta[j]; v-v != 0 {
				return fmt.Errorf("train: step %d: parameter %d = %v: training diverged; the "+
					"learning rate is %v", step, j, v, t.Rate)
			}
		}
		if observe != nil {
			if err := observe(step, r.before, theta); err != nil {
				return err
			}
		}
	}
	return nil
}

// below is uniform in [0, n), n far below 2⁵³.
func below(n int, src *noise.Fast) int { return min(n-1, int(src.Float64()*float64(n))) }

// permute appends a random order of 0 to n−1.
func permute(dst []int, n int, src *noise.Fast) []int {
	for i := range n {
		dst = append(dst, i)
	}
	for i := n - 1; i > 0; i-- {
		j := below(i+1, src)
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}
