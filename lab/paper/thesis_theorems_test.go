package paper

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// eachWay decides claims of a figure from numbers by which they hold, and from others by
// which they fail.
func eachWay(t *testing.T, figure Figure, cases map[string][2]numbersOf) {
	t.Helper()
	for id, c := range cases {
		claim := claimOf(t, figure, id)
		for i, want := range []Answer{Holds, Fails} {
			if c[i] == nil {
				continue
			}
			f, err := claim.Decide.Of(&Evidence{Preset: Full, Numbers: &Numbers{Values: c[i], Runs: 1000}})
			if err != nil || f.Answer != want {
				t.Errorf("%s/%s: %+v, %v, want %s", figure.ID, id, f, err, want)
			}
		}
		if f, err := claim.Decide.Of(&Evidence{Preset: Quick, Numbers: &Numbers{}}); err == nil {
			t.Errorf("%s/%s without numbers: %+v", figure.ID, id, f)
		}
	}
	for _, c := range figure.Claims {
		if _, ok := cases[c.ID]; !ok {
			t.Errorf("%s/%s is not tried", figure.ID, c.ID)
		}
	}
}

// one is a number, and where it came out.
func one(name string, value float64) numbersOf { return numbersOf{name: {value, 1, 1, 1, 1, 1}} }

// playsTheorems computes a figure at quick and decides all its claims: they hold but for those named.
func playsTheorems(t *testing.T, figure Figure, fail ...string) {
	t.Helper()
	n, err := figure.Compute.Of(context.Background(), Quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range n.Figures {
		if err := f.WriteSVG(io.Discard); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
	}
	for _, claim := range figure.Claims {
		want := Holds
		if slices.Contains(fail, claim.ID) {
			want = Fails
		}
		f, err := claim.Decide.Of(&Evidence{Preset: Quick, Numbers: n})
		t.Logf("%s: %s %.6g, %s", claim.ID, f.Answer, f.Value, f.Detail)
		if err != nil || f.Answer != want {
			t.Errorf("%s/%s: %+v, %v, want %s", figure.ID, claim.ID, f, err, want)
		}
	}
}

func TestChapter2ComesOutEachWay(t *testing.T) {
	eachWay(t, theoremsOfChapter2(), map[string][2]numbersOf{
		"post-processing": {one("post", 0.9), one("post", 1.1)},
		"simple":          {one("simple", 1), one("simple", 1.01)},
		"simple-attained": {one("attained", 1), one("attained", 0.9)},
		"advanced":        {one("advanced", 0.4), one("advanced", 1.1)},
		"parallel":        {one("parallel", 0), one("parallel", 0.1)},
	})
}

func TestChapter2Plays(t *testing.T) { playsTheorems(t, theoremsOfChapter2()) }

// What only looks like post-processing, and parts that overlap, are told.
func TestBrokenCompositionsAreTold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		c := randomChannel(r, 2, 3, 5, 0.1)
		peeks := c.then(func(d, o int) []float64 { // a function that has seen a bit of the data
			if d&1 == 1 {
				return []float64{0.9, 0.1}
			}
			return []float64{0.1, 0.9}
		})
		if more := moreAfter(c, peeks); more < 2 {
			t.Errorf("a function that looks at the data tells only %v times as much", more)
		}
		a, b := randomChannel(r, 4, 7, 3, 1), randomChannel(r, 4, 14, 3, 1)
		if apart := apartFromParts(a.beside(b), []channel{a, b}); apart < 1e-3 {
			t.Errorf("parts that overlap are apart by %v", apart)
		}
	}
}

// Randomised response by hand: δ = tanh(ε₀/2) at ε = 0, 0 at ε₀; ε₀ by itself; of two about the
// same bit twice that.
func TestChannelsByHand(t *testing.T) {
	c := response(1, 1)
	p := 1 / (1 + math.Exp(-1))
	for name, x := range map[string][2]float64{
		"δ(0)": {c.delta(0), math.Tanh(0.5)}, "δ(1)": {c.delta(1), 0}, "ε": {c.pure(), 1},
		"ε of two":   {c.beside(c).pure(), 2},
		"KL below ρ": {min(c.zcdp(), math.Tanh(0.5)), math.Tanh(0.5)},
		"two, δ(½)":  {c.beside(c).delta(0.5), p*p - math.Exp(0.5)*(1-p)*(1-p)},
		"formula":    {responsesDelta(2, 1, 0.5), p*p - math.Exp(0.5)*(1-p)*(1-p)},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
}

func TestSharpest(t *testing.T) {
	var with, without sharpest
	for i, x := range []float64{-3, -1, -2} {
		with.take(x, float64(i))
		without.take(x)
	}
	if got := with.numbers(); !slices.Equal(got, []float64{-1, 1}) || without.value != -1 {
		t.Errorf("%v and %v", got, without.value)
	}
	if with.take(math.NaN(), 7); !math.IsNaN(with.value) || with.where[0] != 7 {
		t.Errorf("%+v", with)
	}
	if with.take(5, 8); !math.IsNaN(with.value) {
		t.Errorf("a NaN is forgotten: %+v", with)
	}
}

// A computation stops when it is told to.
func TestTheoremsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range thesisTheorems() {
		if f.Compute == nil {
			continue
		}
		if _, err := f.Compute.Of(ctx, Quick); err == nil {
			t.Errorf("%s: computed although cancelled", f.ID)
		}
	}
}
