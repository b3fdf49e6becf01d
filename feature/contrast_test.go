package feature_test

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/feature"
)

// A model that was made by hand has the effects that it was made of: each value against the first, each
// number from end to end, and of crosses what comes on top. They are products of vectors that the map makes.
func TestContrasts(t *testing.T) {
	m := shop()
	p := compiled(t, m)
	all, n := p.Contrasts()
	if len(all) != n {
		t.Fatalf("%d of %d", len(all), n)
	}
	score := func(theta []float64, context, action string) float64 {
		x, err := p.Vectors(nil, object(t, context), []feature.Action{{ID: "a", Features: object(t, action)}})
		if err != nil {
			t.Fatal(err)
		}
		return product(theta, x)
	}
	theta := make([]float64, p.Dim())
	for i := range theta {
		theta[i] = math.Sin(float64(i)) // whatever it is
	}
	base := `{"device": "phone", "user": {"age": 0}}`
	of := func(context, action string) float64 { return score(theta, context, action) }
	plain, tablet := `{"topic": "news", "length": -10}`, `{"device": "tablet", "user": {"age": 0}}`
	sport := `{"topic": "sport", "length": -10}`
	want := map[string]float64{
		"device=tablet":               of(tablet, plain) - of(base, plain),
		"user.age=100":                of(`{"device": "phone", "user": {"age": 100}}`, plain) - of(base, plain),
		"length=10":                   of(base, `{"topic": "news", "length": 10}`) - of(base, plain),
		"topic=sport":                 of(base, sport) - of(base, plain),
		"device=tablet × topic=sport": of(tablet, sport) - of(tablet, plain) - of(base, sport) + of(base, plain),
	}
	for _, c := range all {
		if w, ok := want[c.Name]; ok {
			if got := product(theta, c.X); math.Abs(got-w) > 1e-9 {
				t.Errorf("%s against %q: %v, want %v", c.Name, c.Against, got, w)
			}
			delete(want, c.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no %v", want)
	}
	// device 2, age, topic 1, length, device × topic 2, age × topic 1; an id and a city that are hashed have none
	if n != 8 {
		t.Errorf("%d contrasts, must be 8: %+v", n, all)
	}
	many := feature.Map{Context: []feature.Feature{{Name: "x", Values: values(200)}}}
	if some, n := compiled(t, many).Contrasts(); len(some) != feature.MostContrasts || n != 199 {
		t.Errorf("%d of %d", len(some), n)
	}
}

func product(x, y []float64) (out float64) {
	for i := range x {
		out += x[i] * y[i]
	}
	return out
}

func values(n int) (out []string) {
	for i := range n {
		out = append(out, string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	return out
}
