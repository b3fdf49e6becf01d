package train_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/noise"
)

func models() []train.Model {
	return []train.Model{
		train.Logistic{Features: 50, Labels: 3},
		train.Conv{Height: 5, Width: 5, Channels: 2, Filters: []int{3}, Labels: 3},
		train.Conv{Height: 5, Width: 5, Channels: 2, Filters: []int{2, 3}, Labels: 3},
	}
}

// Gradients against central differences of the loss, for every parameter and every feature.
func TestGradients(t *testing.T) {
	src := noise.NewFast(1, 1)
	d := train.Images(3, 5, 5, 2, 3, &src)
	for _, m := range models() {
		theta := make([]float64, m.Params())
		m.Init(theta, &src)
		for i := range theta {
			theta[i] += 0.1 * src.Normal()
		}
		p := m.NewPass()
		grad, input, none := make([]float64, m.Params()), make([]float64, m.Inputs()),
			make([]float64, m.Params())
		for i, x := range d.X {
			p.Gradient(theta, x, d.Labels[i], grad, input)
			check := func(what string, at []float64, want []float64) {
				for j := range at {
					const h = 1e-5
					v := at[j]
					at[j] = v + h
					up := p.Gradient(theta, x, d.Labels[i], none, nil)
					at[j] = v - h
					down := p.Gradient(theta, x, d.Labels[i], none, nil)
					at[j] = v
					if got := (up - down) / (2 * h); math.Abs(got-want[j]) > 1e-8 {
						t.Fatalf("%+v, %s %d: %v by differences, %v", m, what, j, got, want[j])
					}
				}
			}
			check("parameter", theta, grad)
			check("feature", x, input)
		}
	}
}

// Each method learns: far better than a guess among three.
func TestTrainingLearns(t *testing.T) {
	src := noise.NewFast(2, 2)
	d := train.Images(240, 6, 6, 1, 3, &src)
	fit, rest := d.Slice(0, 160), d.Slice(160, 240)
	for _, m := range []train.Model{train.Logistic{Features: 36, Labels: 3},
		train.Conv{Height: 6, Width: 6, Channels: 1, Filters: []int{4}, Labels: 3}} {
		for _, r := range []train.Training{
			{Method: train.Batch, Steps: 60, Rate: 1},
			{Method: train.MiniBatch, Size: 16, Steps: 120, Rate: 0.5},
			{Method: train.Stochastic, Steps: 800, Rate: 0.1},
			{Method: train.DPSGD, Sampling: 0.2, Clip: 1, Noise: 1, Steps: 120, Rate: 0.5},
		} {
			r.Model = m
			all, err := r.Iterates(fit, nil, &src)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != r.Steps+1 {
				t.Fatalf("%d iterates of %d steps", len(all), r.Steps)
			}
			if a := accuracy(m, all[r.Steps], rest); a < 0.75 {
				t.Errorf("%T, %v: accuracy %v", m, r.Method, a)
			} else {
				t.Logf("%T, %v: accuracy %v", m, r.Method, a)
			}
		}
	}
}

// The iterates of a batch run, against the definition by plain loops; and DP-SGD's mean and
// variance of a step against theirs.
func TestStepAgainstDefinition(t *testing.T) {
	src := noise.NewFast(3, 3)
	d := train.Images(20, 3, 3, 1, 2, &src)
	m := train.Logistic{Features: 9, Labels: 2}
	theta := make([]float64, m.Params())
	for i := range theta {
		theta[i] = src.Normal()
	}
	gradient := func(i int, c float64) []float64 {
		g := make([]float64, m.Params())
		z := make([]float64, 2)
		for k := range z {
			z[k] = theta[18+k]
			for j, v := range d.X[i] {
				z[k] += theta[k*9+j] * v
			}
		}
		p := 1 / (1 + math.Exp(z[0]-z[1]))
		var norm float64
		for k, delta := range []float64{1 - p, p} {
			if k == d.Labels[i] {
				delta--
			}
			for j, v := range d.X[i] {
				g[k*9+j] = delta * v
				norm += delta * v * delta * v
			}
			g[18+k] = delta
			norm += delta * delta
		}
		for j := range g {
			g[j] *= min(1, c/math.Sqrt(norm))
		}
		return g
	}
	step := func(r train.Training) []float64 {
		r.Model, r.Steps, r.Rate = m, 1, 0.5
		at := append([]float64(nil), theta...)
		if err := r.Run(d, nil, at, &src, nil); err != nil {
			t.Fatal(err)
		}
		for j := range at {
			at[j] = (theta[j] - at[j]) / 0.5
		}
		return at
	}
	got := step(train.Training{Method: train.Batch})
	for j := range got {
		var want float64
		for i := range d.X {
			want += gradient(i, math.Inf(1))[j] / 20
		}
		if math.Abs(got[j]-want) > 1e-12 {
			t.Errorf("batch, parameter %d: %v, want %v", j, got[j], want)
		}
	}
	// Poisson: the sum's mean is q Σ g_i and its variance q(1−q) Σ g_i² + σ²C². With 20000 steps a
	// mean strays 5.3 standard errors with probability 1.2e-7, 20 coordinates; a variance is within
	// 7 %, with probability of failure below 1e-10.
	const c, q, sigma, runs = 0.3, 0.3, 0.7, 20000
	dp := train.Training{Method: train.DPSGD, Sampling: q, Clip: c, Noise: sigma}
	sum, squares := make([]float64, m.Params()), make([]float64, m.Params())
	for range runs {
		for j, v := range step(dp) {
			v *= q * 20
			sum[j] += v
			squares[j] += v * v
		}
	}
	for j := range sum {
		var mean, variance float64
		for i := range d.X {
			g := gradient(i, c)[j]
			mean += q * g
			variance += q * (1 - q) * g * g
		}
		variance += sigma * sigma * c * c
		a := sum[j] / runs
		if math.Abs(a-mean) > 5.3*math.Sqrt(variance/runs) {
			t.Errorf("DP-SGD, parameter %d: mean %v, want %v", j, a, mean)
		}
		if v := squares[j]/runs - a*a; math.Abs(v/variance-1) > 0.07 {
			t.Errorf("DP-SGD, parameter %d: variance %v, want %v", j, v, variance)
		}
	}
}

// A mini-batch epoch takes each example once.
func TestEpochs(t *testing.T) {
	src := noise.NewFast(4, 4)
	d := train.Images(12, 2, 2, 1, 2, &src)
	m := train.Logistic{Features: 4, Labels: 2}
	// Gradients at a θ that hardly moves add up over an epoch to those of the whole set.
	r := train.Training{Model: m, Method: train.MiniBatch, Size: 4, Steps: 6, Rate: 1e-9}
	whole := make([]float64, m.Params())
	b := r
	b.Method, b.Steps = train.Batch, 1
	if err := b.Run(d, nil, whole, &src, nil); err != nil {
		t.Fatal(err)
	}
	theta, err := r.Iterates(d, nil, &src)
	if err != nil {
		t.Fatal(err)
	}
	for e := 1; e <= 2; e++ {
		for j, v := range theta[3*e] {
			if want := 3 * float64(e) * whole[j]; math.Abs(v-want) > 1e-7*math.Abs(want)+1e-17 {
				t.Errorf("epoch %d, parameter %d: moved %v, want %v", e, j, v, want)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	src := noise.NewFast(5, 5)
	d := train.Images(12, 2, 2, 1, 2, &src)
	m := train.Logistic{Features: 4, Labels: 2}
	good := train.Training{Model: m, Method: train.DPSGD, Steps: 2, Rate: 1, Sampling: 0.5, Clip: 1, Noise: 1}
	for name, change := range map[string]func(*train.Training){
		"model": func(r *train.Training) { r.Model = nil },
		"empty": func(r *train.Training) {
			r.Model = train.Conv{Height: 1, Width: 4, Channels: 1, Filters: []int{1}, Labels: 2}
		},
		"steps":  func(r *train.Training) { r.Steps = 0 },
		"rate":   func(r *train.Training) { r.Rate = math.NaN() },
		"clip":   func(r *train.Training) { r.Clip = math.Inf(1) },
		"noise":  func(r *train.Training) { r.Noise = 0 },
		"sample": func(r *train.Training) { r.Sampling = 1.5 },
		"size":   func(r *train.Training) { r.Method, r.Size = train.MiniBatch, 13 },
		"method": func(r *train.Training) { r.Method = 9 },
		"flaw":   func(r *train.Training) { r.Method, r.Flaw = train.Batch, train.HalfNoise },
		"inputs": func(r *train.Training) { r.Model = train.Logistic{Features: 5, Labels: 2} },
	} {
		r := good
		change(&r)
		if _, err := r.Iterates(d, nil, &src); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	fast := good
	fast.Method, fast.Rate, fast.Steps = train.Batch, 1e308, 20
	fast.Model = train.Logistic{Features: 4, Labels: 2}
	if _, err := fast.Iterates(d, []train.Canary{{Gradient: []float64{1e300, 1, 1, 1, 1, 1, 1, 1, 1,
		1}}}, &src); err == nil {
		t.Error("a run that overflows was accepted")
	}
	plan, err := (train.Attack{References: d}).Plan(good, make([]float64, 10), 12, train.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Trace(train.Blank(d, 0), [][]float64{make([]float64, 10)}); !errors.Is(err,
		train.ErrNoIterates) {
		t.Errorf("one iterate: %v", err)
	}
	if _, err := plan.Trace(train.Blank(d, 5),
		[][]float64{make([]float64, 10), make([]float64, 10)}); err == nil {
		t.Error("a label out of range was accepted")
	}
	if _, _, err := train.Select(plan, nil); err == nil {
		t.Error("no candidates were accepted")
	}
}

// accuracy is the share of points whose largest logit is that of their label.
func accuracy(m train.Model, theta []float64, d train.Dataset) float64 {
	p := m.NewPass()
	var right int
	for i, x := range d.X {
		best, l := 0, p.Logits(theta, x)
		for c, v := range l {
			if v > l[best] {
				best = c
			}
		}
		if best == d.Labels[i] {
			right++
		}
	}
	return float64(right) / float64(max(1, len(d.X)))
}
