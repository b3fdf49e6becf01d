package paper

import (
	"context"
	"io"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
)

// around is an estimate with an interval.
func around(v, half float64) []float64 { return []float64{v, v - half, v + half} }

// powersAt are powers at two significances, with intervals.
func powersAt(p float64) (out []float64) {
	for _, alpha := range []float64{0.1, 0.3} {
		out = append(append(out, alpha), around(p, 0.01)...)
	}
	return out
}

// errorsAt are a test's errors at two significances, and what two theories say of the power.
func errorsAt(p, first, second float64) (out []float64) {
	for _, alpha := range []float64{0.1, 0.3} {
		out = append(append(append(append(out, alpha), around(alpha, 0.01)...), around(p, 0.01)...),
			first, second)
	}
	return out
}

func repeated(v float64) []float64 {
	out := make([]float64, 18)
	for i := range out {
		out[i] = v
	}
	return out
}

type numbersOf = map[string][]float64

// Each claim can hold and can fail; audits of a claim of privacy can fail and be undecided,
// and nothing else.
func TestAuditFiguresComeOutEachWay(t *testing.T) {
	view, table, continual, interactive := audit.View.String(), audit.Table.String(),
		audit.Continual.String(), audit.Interactive.String()
	ladder := func(names []string, from, step float64) numbersOf {
		n := numbersOf{}
		for i, name := range names {
			n[name] = powersAt(from - step*float64(i))
		}
		return n
	}
	near := func(names []string, p, first, second float64) numbersOf {
		n := numbersOf{}
		for _, name := range names {
			n[name] = errorsAt(p, first, second)
		}
		return n
	}
	same := func(v []float64, names ...string) numbersOf {
		n := numbersOf{}
		for _, name := range names {
			n[name] = v
		}
		return n
	}
	// powers at significance 0.1 %
	lowest := func(a string, x float64, b string, y float64) numbersOf {
		return numbersOf{a: append([]float64{0.001}, around(x, 0.01)...),
			b: append([]float64{0.001}, around(y, 0.01)...)}
	}
	pairs := func(v ...any) numbersOf {
		n := numbersOf{}
		for i := 0; i < len(v); i += 2 {
			n[v[i].(string)] = v[i+1].([]float64)
		}
		return n
	}
	mean, noisy, sampled := []string{"easy", "medium", "hard"},
		[]string{"medium", "noise 0.5", "noise 1", "noise 2"},
		[]string{"medium", "rate 0.75", "rate 0.5", "rate 0.25"}
	shares := []string{"share 0", "share 0.1", "share 0.3", "share 0.5", "share 0.8", "share 1"}
	both := func(v []float64, name string) numbersOf { return same(v, "linear "+name, "convolutional "+name) }
	canaries := func(d float64, name string) numbersOf {
		n := numbersOf{}
		for _, m := range []string{"linear ", "convolutional "} {
			for _, e := range []string{"easy ", "hard "} {
				n[m+e+name] = around(d, 0.01)
			}
		}
		return n
	}
	random := func(x float64) numbersOf { return pairs("random", []float64{30, x, x, x, x, x, 0, 30}) }
	cells := programCells()
	program := func(name string, taken, reported, wrong float64) numbersOf {
		n := numbersOf{}
		for _, c := range cells {
			for _, other := range programRules() {
				n[c.name+": "+other.name] = []float64{100, 0.01, 100, 0.01, 0, 0, 1000}
			}
			n[c.name+": "+name] = []float64{taken, 0.01, reported, 0.01, wrong, 0, 1000}
		}
		return n
	}
	for _, c := range []struct {
		figure       Figure
		claim        string
		holds, fails numbersOf
	}{
		{thesis21(), "region", pairs("slack", []float64{0, 0, -1, -1}),
			pairs("slack", []float64{-0.1, 0, -1, -1})},
		{thesis21(), "converse", pairs("slack", []float64{0, 0, -1, -1}),
			pairs("slack", []float64{0, 0, -1, 0})},
		{thesis21(), "audit", pairs("games half", []float64{1.5, 1.9}, "games sound", []float64{0.9, 1}), nil},
		{thesis21(), "attained", pairs("border", repeated(0)), pairs("border", repeated(0.1))},
		{thesis21(), "advantage", pairs("border", []float64{0, 0, 0.1, 0.1}),
			pairs("border", []float64{0, 0, -0.1, 0.1})},
		{thesis21(), "gaussian", pairs("gaussian", repeated(0.5)), pairs("gaussian", repeated(2))},
		{thesis21(), "zcdp", pairs("zcdp", repeated(0.5)), pairs("zcdp", repeated(2))},
		{thesis21(), "group", pairs("group", []float64{1, 2, 2}), pairs("group", []float64{2, 1, 2})},
		{thesis22(), "seven", pairs("seven", []float64{3}), pairs("seven", []float64{4})},
		{thesis22(), "private", nil, pairs("audit printed", []float64{1.2, 1.3, 1.33},
			"audit right", []float64{0.9, 1, 1})},
		{thesis22(), "counts", pairs("most", repeated(3), "log", repeated(3)),
			pairs("most", repeated(4), "log", repeated(3))},
		{thesis22(), "order", pairs("sd", repeated(3), "log", repeated(3)),
			pairs("sd", append(repeated(3)[1:], 30), "log", repeated(3))},
		{thesis22(), "simple", pairs("sd", repeated(1), "sd two", repeated(2), "sd one",
			repeated(3)), pairs("sd", repeated(4), "sd two", repeated(2), "sd one", repeated(3))},
		{thesis312(), "strict", pairs(view, repeated(0.1), table, repeated(0.2)),
			pairs(view, repeated(0.1), table, repeated(0.1))},
		{thesis312(), "smallest", pairs(table, repeated(0.984)), pairs(table, repeated(0.986))},
		{thesis312(), "pure", random(0), random(1)},
		{thesis312(), "table-view", random(0), random(1)},
		{thesis312(), "interactive-table", random(0), random(1)},
		{thesis312(), "continual-table", random(0), random(1)},
		{thesis312(), "conversion", random(0.5), random(2)},
		{thesis312(), "interactive-continual", pairs(interactive, repeated(0.5), continual,
			repeated(0.4), "random", repeated(0)), pairs(interactive, repeated(0.4), continual,
			repeated(0.5), "random", repeated(0))},
		{thesis62(), "targets", ladder(mean, 0.9, 0.1), ladder(mean, 0.5, -0.1)},
		{thesis62(), "noise", ladder(noisy, 0.9, 0.1), ladder(noisy, 0.5, -0.1)},
		{thesis62(), "rates", ladder(sampled, 0.9, 0.1), ladder(sampled, 0.5, -0.1)},
		{thesis62(), "rates-crossing", lowest("hard at rate 0.25", 0.2, "hard at rate 1", 0.1),
			lowest("hard at rate 0.25", 0.1, "hard at rate 1", 0.2)},
		{thesis62(), "mean-theory", near(theoryOf(mean), 0.5, 0.5, 0), near(theoryOf(mean), 0.5, 0.6, 0.5)},
		{thesis62(), "noise-theory", near(theoryOf(noisy[1:]), 0.5, 0.5, 0),
			near(theoryOf(noisy[1:]), 0.5, 0.6, 0.5)},
		{thesis62(), "rates-theory", near(theoryOf(sampled[1:]), 0.5, 0, 0.5),
			near(theoryOf(sampled[1:]), 0.5, 0.5, 0.6)},
		{thesis62(), "rates-corrected", near(theoryOf(sampled[1:]), 0.5, 0.5, 0),
			near(theoryOf(sampled[1:]), 0.5, 0.6, 0.5)},
		{thesis62(), "leakage", same(append(around(0.5, 0.01), 0.5), "advantage easy",
			"advantage medium", "advantage hard"), same(append(around(0.5, 0.01), 0.7),
			"advantage easy", "advantage medium", "advantage hard")},
		{thesis62(), "gaussian-dp", same([]float64{2, 2.1}, "mu easy", "mu medium", "mu hard"),
			same([]float64{2, 1.5}, "mu easy", "mu medium", "mu hard")},
		{thesis64(), "average", same(append(around(0.9, 0.01), 0.9), "known means"),
			same(append(around(0.9, 0.01), 0.8), "known means")},
		{thesis64(), "references", same(append(around(0.9, 0.01), 0.9), "as many references",
			"three times the references"), same(append(around(0.9, 0.01), 0.8),
			"as many references", "three times the references")},
		{thesis64(), "scalar-unequal",
			pairs("likelihood ratio, unequal variances", around(0.9, 0.01),
				"scalar product, known mean, unequal variances", around(0.8, 0.01),
				"scalar product, unequal variances", around(0.7, 0.01)),
			pairs("likelihood ratio, unequal variances", around(0.7, 0.01),
				"scalar product, known mean, unequal variances", around(0.8, 0.01),
				"scalar product, unequal variances", around(0.9, 0.01))},
		{thesis64(), "scalar-equal", same(around(0.9, 0.005), "likelihood ratio, equal variances",
			"scalar product, equal variances"),
			pairs("likelihood ratio, equal variances", around(0.9, 0.005),
				"scalar product, equal variances", around(0.8, 0.005))},
		{thesis64(), "empirical", pairs("known covariance", around(0.9, 0.01), "300 references",
			around(0.8, 0.01), "90 references", around(0.7, 0.01)),
			pairs("known covariance", around(0.9, 0.01), "300 references", around(0.8, 0.01),
				"90 references", around(0.85, 0.01))},
		{thesis67(), "theorem", same(append(around(0.5, 0.01), 0.5, 0.5, 0.5, 0, 0, 0), shares...),
			same(append(around(0.5, 0.01), 0.7, 0.5, 0.5, 0, 0, 0), shares...)},
		{thesis67(), "table", same(append(around(0.5, 0.01), 0.5, 0.5, 0.5, 0, 0, 0), shares...),
			same(append(around(0.5, 0.01), 0.5, 0.7, 0.5, 0, 0, 0), shares...)},
		{thesis67(), "suboptimal", same(append(around(0.5, 0.01), 0.5, 0.5, 0.5, 0, 0, 0),
			shares...), same(append(around(0.5, 0.01), 0.5, 0.5, 0.3, 0, 0, 0), shares...)},
		{thesis67(), "angle", same(append(around(0.5, 0.01), 0.5, 0.5, 0.5, 0, 0, 0), shares...),
			same(append(around(0.1, 0.01), 0.5, 0.5, 0.5, 0, 0, 0), shares...)},
		{thesis72(), "mahalanobis", pairs("linear easy covariance", around(0.9, 0.01),
			"linear hard covariance", around(0.6, 0.01), "convolutional easy covariance",
			around(0.9, 0.01), "convolutional hard covariance", around(0.6, 0.01)),
			pairs("linear easy covariance", around(0.5, 0.01), "linear hard covariance",
				around(0.9, 0.01), "convolutional easy covariance", around(0.5, 0.01),
				"convolutional hard covariance", around(0.9, 0.01))},
		{thesis72(), "scalar", canaries(0.2, "covariance over scalar product"),
			canaries(-0.2, "covariance over scalar product")},
		{thesis72(), "once", both(around(0.9, 0.01), "easy covariance"),
			both(around(0.4, 0.01), "easy covariance")},
		{thesis72(), "glir", canaries(0.2, "GLiR over covariance"), canaries(-0.2, "GLiR over covariance")},
		{thesis72(), "heuristics", same([]float64{1, 2, 2, 2, 1, 1, 1}, "canaries linear",
			"canaries convolutional"),
			same([]float64{1, 2, 0.5, 2, 1, 0.4, 1}, "canaries linear", "canaries convolutional")},
		{publishedProgram(), "correct", program(asProgram, 100, 100, 10), program(asProgram, 100, 100, 300)},
		{publishedProgram(), "correct-easy", program(asProgram, 100, 100, 10),
			program(asProgram, 100, 100, 300)},
		{publishedProgram(), "threshold", program(paperUnclipped, 100, 100, 10),
			program(paperUnclipped, 100, 100, 300)},
		{publishedProgram(), "clipped", program(programClipped, 100, 100, 10),
			program(programClipped, 100, 100, 300)},
		{publishedProgram(), "proved", program(asPaper, 100, 100, 10), program(asPaper, 100, 100, 300)},
		{publishedProgram(), "samples", program(asProgram, 100, 100, 0), program(asProgram, 20, 20, 0)},
		{publishedProgram(), "reported", program(asProgram, 100, 100, 0), program(asProgram, 100, 80, 0)},
	} {
		claim := claimOf(t, c.figure, c.claim)
		for want, v := range map[Answer]numbersOf{Holds: c.holds, Fails: c.fails} {
			if v == nil {
				continue
			}
			f, err := claim.Decide.Of(&Evidence{Preset: Full, Numbers: &Numbers{Values: v, Runs: 1000}})
			if err != nil || f.Answer != want {
				t.Errorf("%s/%s: %+v, %v, want %s", c.figure.ID, c.claim, f, err, want)
			}
		}
		if f, err := claim.Decide.Of(&Evidence{Preset: Quick, Numbers: &Numbers{}}); err == nil {
			t.Errorf("%s/%s without numbers: %+v", c.figure.ID, c.claim, f)
		}
	}
}

// A small play of what is cheap, drawn and decided.
func TestAuditFiguresPlay(t *testing.T) {
	for _, c := range []struct {
		figure Figure
		fails  []string
	}{{thesis21(), []string{"gaussian", "group"}}, {thesis22(), []string{"private"}}} {
		n, err := c.figure.Compute.Of(context.Background(), Quick)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range n.Figures {
			if err := f.WriteSVG(io.Discard); err != nil {
				t.Errorf("%s: %v", f.ID, err)
			}
		}
		for _, claim := range c.figure.Claims {
			want := Holds
			for _, id := range c.fails {
				if id == claim.ID {
					want = Fails
				}
			}
			f, err := claim.Decide.Of(&Evidence{Preset: Quick, Numbers: n})
			if err != nil || f.Answer != want {
				t.Errorf("%s/%s: %+v, %v, want %s", c.figure.ID, claim.ID, f, err, want)
			}
		}
	}
}

// A figure's computation stops when it is told to.
func TestAuditFiguresStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range append(thesisAudits(), publishedProgram()) {
		if f.Compute == nil {
			continue
		}
		if _, err := f.Compute.Of(ctx, Quick); err == nil {
			t.Errorf("%s: computed although cancelled", f.ID)
		}
	}
}

// Figure C.1 on few runs: the noise in each sum costs regret where phases allow for it, and the
// claims can fail.
func TestVariantClaims(t *testing.T) {
	cell := func(policy string, rho, regret float64) experiment.CellResult {
		c := experiment.CellResult{CellInfo: experiment.CellInfo{Instance: "sphere", Policy: policy,
			Budget: budget("rho", rho)}}
		for i := range 50 {
			c.FinalRegret = append(c.FinalRegret, regret+float64(i%5))
		}
		return c
	}
	for want, factor := range map[Answer][2]float64{Holds: {2, 1.5}, Fails: {0.5, 0.8}} {
		r := &experiment.Results{}
		for _, rho := range []float64{0.001, 0.01, 0.1, 1} {
			f, same := factor[1], 1000.0
			if rho == 0.001 {
				f = factor[0]
			}
			if want == Fails {
				same *= f
			}
			r.Cells = append(r.Cells, cell("adac-gope", rho, 1000),
				cell("adac-gope-var, own phases", rho, 1000*f), cell("adac-gope-var, same phases", rho, same))
		}
		for _, c := range thesisC1().Claims {
			f, err := c.Decide.Of(&Evidence{Preset: Full,
				Experiments: map[string]*experiment.Results{"var": r}})
			if err != nil || f.Answer != want {
				t.Errorf("%s: %+v, %v, want %s", c.ID, f, err, want)
			}
		}
	}
}

// The paired interval of a difference of areas: by hand, and its coverage for two attacks that see
// the same noise, 400 times at 99 %. More than 18 misses have a probability below 1e-6.
func TestAreaDifference(t *testing.T) {
	a := audit.Scores{In: []float64{2, 3, 5}, Out: []float64{1, 2, 4}}
	b := audit.Scores{In: []float64{1, 1, 1}, Out: []float64{1, 1, 1}}
	// a wins 1.5 + 2 + 3 of 9, b half of them.
	if d, _, _ := areaDifference(a, b, 1); math.Abs(d-(6.5/9-0.5)) > 1e-15 {
		t.Errorf("difference %v", d)
	}
	src := noise.NewFast(1, 2)
	misses, spread := 0, 0.0
	for range 400 {
		var x, y audit.Scores
		for range 200 {
			u, v := src.Normal(), src.Normal()
			x.In, y.In = append(x.In, 1+u), append(y.In, 0.5+u)
			x.Out, y.Out = append(x.Out, v), append(y.Out, v)
		}
		// Areas are Φ(1/√2) and Φ(½/√2).
		want := normalTail(0.5/math.Sqrt2) - normalTail(1/math.Sqrt2)
		d, lo, hi := areaDifference(x, y, 1)
		if want < lo || want > hi {
			misses++
		}
		spread += (d - want) * (d - want) / (hi - lo) / (hi - lo)
	}
	// The interval is 2 × 2.60 standard errors wide; the mean of 400 squares is within ½ of what it
	// should be but with probability below 1e-6.
	z := spread / 400 * (2 * 2.6008) * (2 * 2.6008)
	t.Logf("%d of 400, squared error over variance %.3f", misses, z)
	if math.Abs(z-1) > 0.5 {
		t.Errorf("squared error over variance is %v", z)
	}
	if misses > 18 {
		t.Errorf("%d of 400 intervals miss", misses)
	}
}
