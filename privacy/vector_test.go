package privacy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleLedger_ReleaseVector() {
	l := privacy.NewLedger()
	r, err := l.ReleaseVector(0, privacy.VectorGaussian{Sigma: 4},
		&privacy.Vector{N: 7, Value: []float64{1.5, -0.25}})
	fmt.Println(r.Len(), r.N(), r.At(1), err)
	e := l.Entries()[0]
	fmt.Println(e.Mechanism, e.Sensitivity, e.Norm, e.Loss)
	// Output:
	// 2 7 -0.25 <nil>
	// vector-gaussian(sigma=4) 2 ℓ2 rho=0.125
}

func vector(x ...float64) *privacy.Vector { return &privacy.Vector{N: 3, Value: x} }

func releaseVector(t testing.TB, l *privacy.Ledger, slot int, m privacy.Mechanism) {
	t.Helper()
	if r, err := l.ReleaseVector(slot, m, vector(1, 2)); err != nil || r.Len() != 2 {
		t.Fatal(r, err)
	}
}

// Of a slot losses add up, over slots the worst counts; a vector is charged once, however many
// coordinates it has.
func TestVectorTotals(t *testing.T) {
	l := privacy.NewLedger()
	e := elliptic(t, 1, [][]float64{{1, 0}, {0, 1}}, []int{4, 9}) // g² = 1/4: ρ = 1/2
	releaseVector(t, l, 0, e)
	releaseVector(t, l, 1, privacy.Sums{Sigma: 4})           // 1/8
	releaseVector(t, l, 2, privacy.VectorGaussian{Sigma: 2}) // 1/2
	near(t, "worst slot", l.Total().ZCDP(), 0.5, 1e-12)
	releaseVector(t, l, 1, e)
	near(t, "two releases of one slot", l.Total().ZCDP(), 0.625, 1e-12)
	releaseVector(t, l, 2, privacy.VectorGaussian{Sigma: 2})
	near(t, "twice through one mechanism", l.Total().ZCDP(), 1, 1e-12)
	near(t, "slot 1", l.Slot(1).ZCDP(), 0.625, 1e-12)
	if _, err := l.Account(privacy.Sums{Sigma: 4}).ReleaseVector(3, vector(1)); err != nil {
		t.Error(err)
	}
	near(t, "slot 3", l.Slot(3).ZCDP(), 0.125, 1e-12)
	if _, err := (l.Release(3, privacy.Laplace{Scale: 1},
		&privacy.Values{N: []int{1}, Sum: []float64{1}})); err != nil {
		t.Error(err)
	}
	near(t, "a sum and a vector of one slot", l.Slot(3).ZCDP(), 0.125+privacy.PureToZCDP(1), 1e-9)
}

func TestVectorEntries(t *testing.T) {
	l := privacy.NewLedger()
	releaseVector(t, l, 0, elliptic(t, 3, [][]float64{{1, 0}, {0.5, 0}}, []int{4, 8}))
	releaseVector(t, l, 1, privacy.Sums{Sigma: 4})
	releaseVector(t, l, 2, privacy.VectorGaussian{Sigma: 5})
	e := l.Entries()
	near(t, "sensitivity", e[0].Sensitivity, 2/math.Sqrt(6), 1e-12)
	if e[0].Norm != "V⁺" || len(e[0].Matrix) != 2 || e[0].Matrix[0][0] != 6 ||
		e[0].Matrix[1][1] != 0 || e[0].Scale != 3 || e[0].Protects != "" {
		t.Errorf("%+v", e[0])
	}
	near(t, "rho is sensitivity²/2σ²", e[0].Loss.ZCDP(), e[0].Sensitivity*e[0].Sensitivity/(2*3*3), 1e-12)
	for i, scale := range []float64{4, 5} {
		if x := e[i+1]; x.Norm != "ℓ2" || x.Matrix != nil || x.Sensitivity != 2 ||
			x.Scale != scale || x.Releases != 1 {
			t.Errorf("%+v", x)
		}
		near(t, "rho", e[i+1].Loss.ZCDP(), 2/scale/scale, 1e-12)
	}
}

// Pretends to know better what it costs.
type cheap struct{ privacy.Elliptic }

func (cheap) Loss() privacy.Loss { return privacy.Loss{} }

// What is priced for a single sum costs ∞ for a vector, and the other way round where it
// would be too cheap.
func TestMechanismsThatDoNotFitCostInfinity(t *testing.T) {
	e := elliptic(t, 1, [][]float64{{1, 0}, {0, 1}}, []int{400, 900})
	for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: 1}, privacy.Gaussian{Sigma: 1},
		privacy.Tree{Scale: 1, Horizon: 8},
		privacy.SquareRoot{Sigma: 1, Horizon: 8}, privacy.Exact{}, nil, &e, cheap{e},
		privacy.Elliptic{}, privacy.VectorGaussian{}, privacy.Sums{Sigma: math.NaN()},
		privacy.Unknown{Name: "unclipped elliptic"}} {
		l := privacy.NewLedger()
		releaseVector(t, l, 0, m)
		if !l.Total().Infinite() {
			t.Errorf("%v: a vector costs %v", m, l.Total())
		}
		l = privacy.NewLedger()
		if _, err := l.Account(m).ReleaseVector(0, vector(1)); err != nil || !l.Total().Infinite() {
			t.Errorf("%v: a vector through an account costs %v; %v", m, l.Total(), err)
		}
	}
	one := &privacy.Values{N: []int{1}, Sum: []float64{1}}
	l := privacy.NewLedger()
	if _, err := l.Release(0, e, one); err != nil || !l.Total().Infinite() {
		t.Errorf("a sum through %v costs %v; %v", e, l.Total(), err)
	}
	l = privacy.NewLedger()
	if _, err := l.ReleaseAll([]int{0}, e, one); err != nil || !l.Total().Infinite() {
		t.Errorf("sums through %v cost %v; %v", e, l.Total(), err)
	}
}

func TestVectorRefusals(t *testing.T) {
	m := privacy.VectorGaussian{Sigma: 2} // ρ = 1/2
	l := privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 0.6}))
	for _, v := range []*privacy.Vector{nil, {}, {N: 3}} {
		if r, err := l.ReleaseVector(0, m, v); err == nil || r.Len() != 0 {
			t.Errorf("%v: %v", v, err)
		}
	}
	if r, err := l.ReleaseVector(-1, m, vector(1)); err == nil || r.Len() != 0 {
		t.Error(err)
	}
	if len(l.Entries()) != 0 {
		t.Error("charged for nothing")
	}
	releaseVector(t, l, 0, m)
	releaseVector(t, l, 1, m)
	for _, bad := range []privacy.Mechanism{m, privacy.Gaussian{Sigma: 1e9}} {
		if r, err := l.ReleaseVector(0, bad, vector(1)); !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 {
			t.Errorf("%v over the cap: %v", bad, err)
		}
	}
	near(t, "after a refusal", l.Total().ZCDP(), 0.5, 1e-12)
	for _, x := range []float64{math.NaN(), math.Inf(-1)} {
		l := privacy.NewLedger()
		if r, err := l.ReleaseVector(0, m, vector(1, x)); !errors.Is(err, privacy.ErrValues) ||
			r.Len() != 0 || !strings.Contains(err.Error(), "coordinate 1") {
			t.Errorf("%v: %v", x, err)
		}
		near(t, "it stays charged", l.Total().ZCDP(), 0.5, 1e-12)
	}
	// An account that a Reset has let go.
	l = privacy.NewLedger()
	a := l.Account(m)
	for i := range 300 {
		releaseVector(t, l, i, privacy.Sums{Sigma: float64(i + 1)})
	}
	l.Reset()
	if _, err := a.ReleaseVector(0, vector(1)); err == nil {
		t.Error("a stale account released")
	}
}

func TestVectorTranscript(t *testing.T) {
	var b bytes.Buffer
	l := privacy.NewLedger(privacy.WithTranscript(&b))
	actions := [][]float64{{1.0 / 3, 0}, {0, 1}}
	e := elliptic(t, 0.1, actions, []int{4, 9})
	if _, err := l.ReleaseVector(0, e, vector(0.1, -1e-300)); err != nil {
		t.Fatal(err)
	}
	releaseVector(t, l, 1, privacy.Sums{Sigma: 2})
	releaseVector(t, l, 1, privacy.VectorGaussian{Sigma: 2})
	releaseVector(t, l, 2, privacy.Unknown{Name: "unclipped sums"})
	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	back := privacy.NewLedger()
	for i, text := range lines {
		r, err := back.RestoreVector([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && (r.Len() != 2 || r.N() != 3 || r.At(0) != 0.1 || r.At(1) != -1e-300) {
			t.Errorf("restored %v", r)
		}
		if _, err := privacy.NewLedger().Restore([]byte(text)); err == nil {
			t.Error("a vector was restored as a sum")
		}
		if i == 2 {
			for slot := range 2 {
				if got, want := back.Slot(slot).ZCDP(), l.Slot(slot).ZCDP(); got != want {
					t.Errorf("slot %d restored at %v, was %v", slot, got, want)
				}
			}
		}
	}
	if !back.Total().Infinite() {
		t.Errorf("restored total %v", back.Total())
	}
	capped := privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 0.1}))
	if _, err := capped.RestoreVector([]byte(lines[1])); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("over the cap: %v", err)
	}

	good := `{"slot":0,"mechanism":{"mechanism":"sums","sigma":1},"n":1,"vector":[1]}`
	if _, err := privacy.NewLedger().RestoreVector([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"slot":0,`, ``}, {`"slot":0`, `"slot":-1`}, {`"n":1`, `"n":-1`}, {`[1]`, `[]`},
		{`[1]`, `[1e999]`}, {`[1]`, `[1],"tail":1`}, {`"sigma":1`, `"sigma":-1`},
		{`}`, `} x`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if r, err := privacy.NewLedger().RestoreVector([]byte(bad)); err == nil || r.Len() != 0 {
			t.Errorf("%s: restored %v", bad, r)
		}
	}
	l = privacy.NewLedger(privacy.WithTranscript(full{}))
	if r, err := l.ReleaseVector(0, privacy.Sums{Sigma: 2}, vector(1)); err == nil ||
		r.Len() != 0 || l.Total().ZCDP() != 0.5 {
		t.Errorf("a transcript that cannot be written: %v, %v, %v", r, err, l.Total())
	}
}

func TestJournalWithVectors(t *testing.T) {
	l := privacy.NewLedger()
	releaseVector(t, l, 0, elliptic(t, 0.7, [][]float64{{1, 0}, {0.6, 0.8}, {0, 1}}, []int{4, 9, 0}))
	releaseVector(t, l, 1, privacy.Sums{Sigma: 3})
	releaseVector(t, l, 1, privacy.VectorGaussian{Sigma: 3})
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back privacy.Ledger
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if got, want := back.Total().ZCDP(), l.Total().ZCDP(); got != want || len(back.Entries()) != 3 {
		t.Errorf("total %v, was %v", got, want)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(data) {
		t.Errorf("%s became %s, %v", data, again, err)
	}
}

func FuzzRestoreVector(f *testing.F) {
	f.Add([]byte(`{"slot":0,"mechanism":{"mechanism":"sums","sigma":1},"n":1,"vector":[1]}`))
	f.Add([]byte(`{"slot":3,"mechanism":{"mechanism":"vector-gaussian","sigma":0},"n":0,"vector":[1,2]}`))
	f.Add([]byte(`{"slot":3,"mechanism":{"mechanism":"elliptic","sigma":1,"of":3,"played":[0,2],"counts":[5,7],"actions":[[1,0],[0,1]]},"n":12,"vector":[1,2]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := privacy.NewLedger()
		r, err := l.RestoreVector(text)
		if err != nil {
			return
		}
		if r.Len() == 0 || r.N() < 0 || l.Total().ZCDP() == 0 {
			t.Errorf("%s: restored %d coordinates, %d rewards for %v", text, r.Len(), r.N(), l.Total())
		}
		for i := range r.Len() {
			if x := r.At(i); x-x != 0 {
				t.Errorf("%s: restored %v", text, x)
			}
		}
	})
}

// BenchmarkReleaseVector is what the ledger costs a release of a policy that releases often, by the
// ledger and by an account.
func BenchmarkReleaseVector(b *testing.B) {
	m, v := privacy.VectorGaussian{Sigma: 2}, vector(1, 2, 3)
	for name, release := range map[string]func(l *privacy.Ledger) func(slot int) error{
		"ledger": func(l *privacy.Ledger) func(int) error {
			var m privacy.Mechanism = m
			return func(slot int) error { _, err := l.ReleaseVector(slot, m, v); return err }
		},
		"account": func(l *privacy.Ledger) func(int) error {
			a := l.Account(m)
			return func(slot int) error { _, err := a.ReleaseVector(slot, v); return err }
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := privacy.NewLedger()
			f, slot := release(l), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := f(slot); err != nil {
					b.Fatal(err)
				}
				if slot++; slot == 100 {
					l.Reset()
					slot = 0
				}
			}
		})
	}
}
