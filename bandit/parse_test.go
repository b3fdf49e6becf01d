package bandit

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

func TestParseLaw(t *testing.T) {
	for in, want := range map[string]string{
		"0.75":                           "bernoulli(0.75)",
		" 1 ":                            "bernoulli(1)",
		"-0":                             "bernoulli(0)",
		"bernoulli(0.75)":                "bernoulli(0.75)",
		"bernoulli( .5 )":                "bernoulli(0.5)",
		"gaussian(0.50, 1e-1)":           "gaussian(0.5,0.1)",
		"clipped-gaussian(0.5,0.1,-0,1)": "clipped-gaussian(0.5,0.1,0,1)",
		"beta(2,3)":                      "beta(2,3)",
		"uniform (0,1)":                  "uniform(0,1)",
		"table(1:0.5,0:0.5)":             "table(0:0.5,1:0.5)",
		"table( 2 : 1 )":                 "table(2:1)",
		"gaussian(1e7,1)":                "gaussian(1e+07,1)",
	} {
		l, err := ParseLaw(in)
		if err != nil || l.String() != want {
			t.Errorf("%q: %v, %v; want %s", in, l, err, want)
		}
	}
	for in, want := range map[string]string{
		"":                        "must be a number",
		"NaN":                     "p is NaN",
		"inf":                     "p is +Inf",
		"1.5":                     "p is 1.5, must be between 0 and 1",
		"0x1p-1":                  "must be a number",
		"1_0":                     "must be a number",
		"fair":                    "must be a number",
		"bernouli(0.5)":           `name is "bernouli", must be bernoulli(p), gaussian(mean,sd)`,
		"bernoulli()":             `p is "", must be a decimal number`,
		"bernoulli(0.5":           "closing bracket",
		"bernoulli(0.5))":         "closing bracket",
		"bernoulli(0.5) ...":      "closing bracket",
		"bernoulli(0.5,0.5)":      "the number of parameters is 2, must be 1 (p)",
		"gaussian(1)":             "the number of parameters is 1, must be 2 (mean,sd)",
		"gaussian(1,x)":           `sd is "x", must be a decimal number`,
		"gaussian(1,1e999)":       `sd is "1e999"`,
		"gaussian(1,inf)":         "sd is +Inf",
		"table()":                 `pair is "", must be value:probability`,
		"table(1)":                `pair is "1", must be value:probability`,
		"table(1:0.5:0.5)":        `probability is "0.5:0.5"`,
		"table(1:0.5)":            "sum to 0.5",
		"table(1:0.5,":            "closing bracket",
		"empirical(n=1,sha256=0)": "read from the CSV",
	} {
		l, err := ParseLaw(in)
		if err == nil || l != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", in, l, err, want)
		}
	}
}

// anyLaw draws any law that can be written.
func anyLaw(t *rapid.T) Law {
	x := func(name string) float64 { return rapid.Float64Range(-MaxAbs, MaxAbs).Draw(t, name) }
	sd := rapid.Float64Range(5e-324, MaxAbs).Draw(t, "sd")
	lo, hi := x("lo"), x("hi")
	if lo > hi {
		lo, hi = hi, lo
	} else if lo == hi {
		lo, hi = 0, 1
	}
	switch rapid.IntRange(0, 5).Draw(t, "law") {
	case 0:
		return testkit.Must(NewBernoulli(rapid.Float64Range(0, 1).Draw(t, "p")))
	case 1:
		return testkit.Must(NewGaussian(x("mean"), sd))
	case 2:
		return testkit.Must(NewClippedGaussian(x("mean"), sd, lo, hi))
	case 3:
		return testkit.Must(NewUniform(lo, hi))
	case 4:
		shape := rapid.Float64Range(minShape, maxShape)
		return testkit.Must(NewBeta(shape.Draw(t, "a"), shape.Draw(t, "b")))
	default:
		p := rapid.SliceOfN(rapid.Float64Range(0.01, 1), 1, 20).Draw(t, "p")
		values := make([]float64, len(p))
		var sum float64
		for i := range p {
			values[i] = float64(i) * 0.1
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return testkit.Must(NewTable(values, p))
	}
}

func TestParseIsTheInverseOfString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLaw(t)
		back, err := ParseLaw(l.String())
		if err != nil {
			t.Fatal(err)
		}
		if back.String() != l.String() || back.Mean() != l.Mean() {
			t.Fatalf("%v became %v", l, back)
		}
		sane(t, l)
	})
}

// sane holds a law to its support.
func sane(t interface{ Fatalf(string, ...any) }, l Law) {
	lo, hi := l.Support()
	if m := l.Mean(); !(lo <= m && m <= hi) {
		t.Fatalf("%v: mean %v outside [%v,%v]", l, m, lo, hi)
	}
	s := noise.NewFast(1, 2)
	for range 10 {
		if x := l.Draw(&s); !(lo <= x && x <= hi) {
			t.Fatalf("%v: %v outside [%v,%v]", l, x, lo, hi)
		}
	}
	if x := l.Sum(3, &s); x != x || x-x != 0 {
		t.Fatalf("%v: the sum is %v", l, x)
	}
}

func FuzzParseLaw(f *testing.F) {
	for _, s := range []string{"0.75", "bernoulli(0.75)", "gaussian(0.5,0.1)",
		"clipped-gaussian(0.5,0.1,0,1)", "beta(2,3)", "uniform(0,1)",
		"table(0:0.5,1:0.5)", "empirical(n=12,sha256=00)", "table(", "beta(1e-6,1e12)",
		"uniform(-1e100,1e100)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLaw(text)
		if err != nil {
			if l != nil {
				t.Fatalf("%q: a law and an error", text)
			}
			return
		}
		sane(t, l)
		back, err := ParseLaw(l.String())
		if err != nil {
			t.Fatalf("%q gave %v: %v", text, l, err)
		}
		if back.String() != l.String() || back.Mean() != l.Mean() {
			t.Fatalf("%q gave %v, then %v", text, l, back)
		}
	})
}
