package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleMechanism() {
	for _, m := range []privacy.Mechanism{privacy.Exact{}, privacy.Laplace{Scale: 2},
		privacy.Gaussian{Sigma: 2}, privacy.Tree{Scale: 8, Horizon: 8},
		privacy.Hybrid{Scale: 4}} {
		data, err := json.Marshal(m)
		fmt.Println(string(data), m.Loss(), err)
	}
	// Output:
	// {"mechanism":"exact"} none <nil>
	// {"mechanism":"laplace","scale":2} epsilon=0.5 <nil>
	// {"mechanism":"gaussian","sigma":2} rho=0.125 <nil>
	// {"mechanism":"tree","scale":8,"horizon":8} epsilon=0.5 <nil>
	// {"mechanism":"hybrid","scale":4} epsilon=0.5 <nil>
}

func ExampleUnmarshalMechanism() {
	m, err := privacy.UnmarshalMechanism([]byte(`{"mechanism":"future","bits":3}`))
	fmt.Println(m, m.Loss().Infinite(), err)
	data, _ := json.Marshal(m)
	fmt.Println(string(data))
	// Output:
	// unknown("future") true <nil>
	// {"mechanism":"future","bits":3}
}

func anyMechanism() *rapid.Generator[privacy.Mechanism] {
	return rapid.Custom(func(t *rapid.T) privacy.Mechanism {
		scale := math.Exp(rapid.Float64Range(-8, 12).Draw(t, "log scale"))
		if rapid.IntRange(0, 20).Draw(t, "none") == 0 {
			scale = 0
		}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return privacy.Exact{}
		case 1:
			return privacy.Gaussian{Sigma: scale}
		case 2:
			return privacy.Tree{Scale: scale, Horizon: rapid.IntRange(4,
				min(1<<40, math.MaxInt/4)).Draw(t, "horizon")}
		case 3:
			return privacy.Hybrid{Scale: scale}
		case 4:
			return privacy.VectorGaussian{Sigma: scale}
		case 5:
			return privacy.Sums{Sigma: scale}
		}
		return privacy.Laplace{Scale: scale}
	})
}

func TestMechanismsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMechanism().Draw(t, "mechanism")
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
			t.Fatalf("%s reads back as %v, %v", data, got, err)
		}
	})
}

func TestBadMechanisms(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		m       privacy.Mechanism
		mention string
	}{
		{privacy.Laplace{Scale: nan}, "scale is NaN"},
		{privacy.Laplace{Scale: inf}, "scale is +Inf"},
		{privacy.Gaussian{Sigma: -1}, "sigma is -1"},
		{privacy.Tree{Scale: -1, Horizon: 1}, "scale is -1"},
		{privacy.Tree{Scale: 1}, "horizon is 0"},
		{privacy.Hybrid{Scale: inf}, "scale is +Inf"},
		{privacy.VectorGaussian{Sigma: nan}, "mechanism vector-gaussian: sigma is NaN"},
		{privacy.Sums{Sigma: -2}, "mechanism sums: sigma is -2"},
	} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%#v: %v", c.m, err)
		}
		if !c.m.Loss().Infinite() {
			t.Errorf("%#v has a finite loss", c.m)
		}
	}
	for _, m := range []privacy.Mechanism{privacy.Laplace{}, privacy.Gaussian{},
		privacy.Tree{Horizon: 8}, privacy.Hybrid{}, privacy.Laplace{Scale: 1e-320},
		privacy.Gaussian{Sigma: 1e-320}, privacy.Hybrid{Scale: 1e-320}, privacy.VectorGaussian{},
		privacy.Sums{}, privacy.Sums{Sigma: 1e-320}} {
		if !m.Loss().Infinite() {
			t.Errorf("%v has a finite loss", m)
		}
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{``, `null`, `{}`, `"laplace"`, `{"mechanism":null}`,
		`{"mechanism":"laplace"}`, `{"mechanism":"laplace","scale":-1}`,
		`{"mechanism":"laplace","scale":1,"sensitivity":9}`,
		`{"mechanism":"laplace","scale":1,"sigma":1}`, `{"mechanism":"tree","scale":1}`,
		`{"mechanism":"tree","scale":1,"horizon":0}`,
		`{"mechanism":"tree","scale":1,"horizon":2.5}`, `{"mechanism":"exact","scale":1}`,
		`{"mechanism":"sums"}`, `{"mechanism":"sums","scale":1}`,
		`{"mechanism":"vector-gaussian","sigma":1,"horizon":3}`, `{"mechanism":"elliptic"}`} {
		if m, err := privacy.UnmarshalMechanism([]byte(s)); err == nil {
			t.Errorf("UnmarshalMechanism(%s) = %v", s, m)
		}
	}
}

// A tree costs what the nodes that hold one reward cost: counted here on the tree itself.
func TestTreeLevels(t *testing.T) {
	for horizon := 1; horizon <= 300; horizon++ {
		nodes := 0 // dyadic blocks [k·2^j, (k+1)·2^j) that end by the horizon and hold the reward 0
		for width := 1; width <= horizon; width *= 2 {
			nodes++
		}
		m := privacy.Tree{Scale: 3, Horizon: horizon}
		if m.Levels() != nodes {
			t.Fatalf("horizon %d: %d levels, want %d", horizon, m.Levels(), nodes)
		}
		near(t, "epsilon", m.Loss().Pure(), float64(nodes)/3, 1e-15)
	}
}

// The broken twin with half the noise loses at least twice as much: exactly, in ε; four times, in
// the ρ of a Gaussian.
func TestHalfTheNoiseIsPricedTwice(t *testing.T) {
	const s = 3.7
	for _, c := range []struct{ full, half privacy.Mechanism }{
		{privacy.Laplace{Scale: s}, privacy.Laplace{Scale: s / 2}},
		{privacy.Tree{Scale: s, Horizon: 1000}, privacy.Tree{Scale: s / 2, Horizon: 1000}},
		{privacy.Hybrid{Scale: s}, privacy.Hybrid{Scale: s / 2}},
		{privacy.Aggregated{Trust: "secagg", Noise: "polya", G: 3, Users: 5, Invited: 5,
			Modulus: 99, Num: 37, Den: 1},
			privacy.Aggregated{Trust: "secagg", Noise: "polya", G: 3, Users: 5, Invited: 5,
				Modulus: 99, Num: 37, Den: 2}},
		{privacy.Aggregated{Trust: "local", Noise: "laplace", G: 3, Users: 5, Invited: 5,
			Modulus: 99, Num: 37, Den: 1},
			privacy.Aggregated{Trust: "local", Noise: "laplace", G: 3, Users: 5, Invited: 5,
				Modulus: 99, Num: 37, Den: 2}},
	} {
		near(t, c.full.Kind(), c.half.Loss().Pure(), 2*c.full.Loss().Pure(), 1e-15)
		if c.half.Loss().Within(privacy.Pure{Epsilon: c.full.Loss().Pure()}) {
			t.Errorf("%v passes for %v", c.half, c.full)
		}
	}
	for _, noise := range []privacy.NoiseName{"skellam", "gaussian"} {
		m := privacy.Aggregated{Trust: "secagg", Noise: noise, G: 3, Users: 50, Invited: 50,
			Modulus: 999, Num: 400, Den: 1}
		half := m
		half.Den = 4
		if got := half.Loss().Renyi(2) / m.Loss().Renyi(2); !(got > 3.999) {
			t.Errorf("%v: half the noise costs %v times as much", m, got)
		}
	}
	near(t, "gaussian", privacy.Gaussian{Sigma: s / 2}.Loss().ZCDP(),
		4*privacy.Gaussian{Sigma: s}.Loss().ZCDP(), 1e-15)
}

func TestGaussianLossIsExact(t *testing.T) {
	l := privacy.Gaussian{Sigma: 2}.Loss()
	for _, a := range []float64{1.001, 1.5, 2, 2.6, 17, 1000, 1e9} {
		near(t, fmt.Sprintf("Renyi(%g)", a), l.Renyi(a), a/8, 1e-14)
	}
	// four of σ = 2 are one of σ = 1
	near(t, "Approx", l.Times(4).Approx(1e-6), privacy.GaussianEpsilon(1, 1e-6), 1e-12)
	if !math.IsInf(l.Pure(), 1) {
		t.Errorf("Gaussian noise has pure loss %v", l.Pure())
	}
}

func TestTails(t *testing.T) {
	if got := (privacy.Laplace{Scale: 3}).Tail(); got != (privacy.Tail{H: 3}) {
		t.Errorf("Laplace: %v", got)
	}
	if got := (privacy.Gaussian{Sigma: 3}).Tail(); got != (privacy.Tail{Sigma: 3}) {
		t.Errorf("Gaussian: %v", got)
	}
	if got := (privacy.Exact{}).Tail(); got != (privacy.Tail{}) {
		t.Errorf("Exact: %v", got)
	}
	// 2b√(mx) + bx for m = 4 levels, b = 3: σ√(2x) with σ = 3√8.
	if got := (privacy.Tree{Scale: 3,
		Horizon: 15}).Tail(); math.Abs(got.Sigma-3*math.Sqrt(8)) > 1e-14 || got.H != 3 || got.Log != 0 {
		t.Errorf("Tree: %v", got)
	}
}

func FuzzUnmarshalMechanism(f *testing.F) {
	for _, s := range []string{`{"mechanism":"exact"}`, `{"mechanism":"laplace","scale":1}`,
		`{"mechanism":"gaussian","sigma":0}`,
		`{"mechanism":"tree","scale":1,"horizon":8}`, `{"mechanism":"hybrid","scale":1e300}`,
		`{"mechanism":"x", "y":[1, 2]}`,
		`{"mechanism":"kary","scale":5,"base":19,"horizon":1000000}`,
		`{"mechanism":"sqrt","sigma":2,"horizon":1000}`,
		`{"mechanism":"blt","sigma":2,"horizon":1000,"decay":[0.99,0.5],"weight":[0.1,0.3]}`,
		`{"mechanism":"sums","sigma":1}`, `{"mechanism":"vector-gaussian","sigma":2}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":10,"users":100,"invited":100,"modulus":1107,"tau":53,"num":10,"den":1}`,
		`{"mechanism":"shuffled-count","epsilon":1,"num":2,"den":1,"users":1000,"invited":1000,"beta":0.001}`,
		`{"mechanism":"clones","inner":{"mechanism":"aggregated","trust":"local","noise":"laplace","g":1,"users":9,"invited":9,"modulus":10,"tau":0,"num":1,"den":1},"delta":0.1}`,
		`{"mechanism":"split-mix","inner":{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":19,"invited":19,"modulus":20,"tau":0,"num":1,"den":1},"shares":9}`,
		`{"mechanism":"gram-tree","sigma":2,"horizon":9}`,
		`{"mechanism":"gram-blt","sigma":2,"horizon":9,"decay":[0.99],"weight":[0.1]}`,
		`{"mechanism":"gram-wishart","scale":2,"horizon":9,"dim":3,"degrees":50,"delta":1e-6}`,
		`{"mechanism":"vector-tree","scale":1e300,"horizon":9,"dim":3}`,
		`{"mechanism":"gaussian-vector-tree","sigma":2,"horizon":9}`,
		`{"mechanism":"elliptic","sigma":1,"of":3,"played":[0,2],"counts":[5,7],"actions":[[1,0],[0,1e-5]]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := privacy.UnmarshalMechanism(data)
		if err != nil {
			return
		}
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := privacy.UnmarshalMechanism(out)
		if err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		twice, err := json.Marshal(again)
		if err != nil || string(twice) != string(out) {
			t.Fatalf("%s became %s, then %s: %v", data, out, twice, err)
		}
	})
}

// A tail's bounds for both sides: Both is at least the tail at x+log 2, and Laplace is above Both
// everywhere and equal to it at x0.
func TestTailBounds(t *testing.T) {
	if got := (privacy.Tail{H: 2, Log: 0.5}).Both(3); got != 7 {
		t.Errorf("Both is %v, want 7", got)
	}
	if got, want := (privacy.Tail{Sigma: 1}).Both(3), math.Sqrt(2*(3+math.Ln2)); math.Abs(got-want) > 1e-15 {
		t.Errorf("Both is %v, want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		tail := privacy.Tail{Sigma: rapid.Float64Range(0, 100).Draw(t, "sigma"),
			H: rapid.Float64Range(0, 100).Draw(t, "h"), Log: rapid.Float64Range(0, 5).Draw(t, "log")}
		x0, x := rapid.Float64Range(0.01, 100).Draw(t, "x0"), rapid.Float64Range(0, 1000).Draw(t, "x")
		l := tail.Laplace(x0)
		if l.Sigma != 0 || l.Both(x) < tail.Both(x)*(1-1e-12) ||
			math.Abs(l.Both(x0)-tail.Both(x0)) > 1e-12*tail.Both(x0)+1e-300 {
			t.Fatalf("%+v.Laplace(%v) is %+v: at %v %v, want at least %v; at x0 %v, want %v", tail,
				x0, l, x, l.Both(x), tail.Both(x), l.Both(x0), tail.Both(x0))
		}
	})
}
