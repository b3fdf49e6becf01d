package audit

import (
	"context"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func subject(t testing.TB, name string, horizon int, b privacy.Budget, given catalog.Params) Subject {
	t.Helper()
	e, err := catalog.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := PolicySubject(e, 2, horizon, b, given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestZZPolicies(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget privacy.Budget
		delta  float64
		given  catalog.Params
	}{
		{"adap-klucb", privacy.Pure{Epsilon: 1}, 0, nil},
		{"adac-ucb", privacy.ZCDP{Rho: 0.5}, 0.05, nil},
		{"dp-se", privacy.Pure{Epsilon: 1}, 0, nil},
		{"dp-se-2", privacy.Pure{Epsilon: 1}, 0, nil},
		{"dp-ucb", privacy.Pure{Epsilon: 1}, 0, nil},
		{"dp-ucb", privacy.Pure{Epsilon: 1}, 0, catalog.Params{"counter": 1}},
		{"dp-ucb", privacy.Pure{Epsilon: 1}, 0, catalog.Params{"counter": 2}},
		{"dp-ucb", privacy.ZCDP{Rho: 0.5}, 0.05, catalog.Params{"counter": 3}},
		{"dp-ucb", privacy.ZCDP{Rho: 0.5}, 0.05, catalog.Params{"counter": 4}},
		{"dp-klucb", privacy.Pure{Epsilon: 1}, 0, nil},
		{"lazy-dp-ts", privacy.Pure{Epsilon: 1}, 0, nil},
	} {
		for _, sees := range []Sees{Releases, Plays} {
			p := PolicyAudit{Subject: subject(t, c.name, 64, c.budget, c.given), Sees: sees, Gamma: 0.01, Delta: c.delta, Games: 20000, Key: noise.Key{Seed: 1}}
			f, err := p.Run(context.Background())
			if err != nil {
				t.Fatal(c.name, err)
			}
			t.Logf("%s %v: %+v, %.3f", c.name, sees, f, f.Tightness())
			_ = math.Pi
		}
	}
}

// BenchmarkTranscripts is of AdaP-KLUCB at T = 1000, in one goroutine.
func BenchmarkTranscripts(b *testing.B) {
	s := subject(b, "adap-klucb", 1000, privacy.Pure{Epsilon: 1}, nil)
	a := Adversaries(2, 1000, View)[0]
	w := newWorld(s, &a)
	src := noise.NewFast(1, 2)
	out := make([]float64, scores)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.game(true, &src, out); err != nil {
			b.Fatal(err)
		}
	}
}
