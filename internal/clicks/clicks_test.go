package clicks_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clicks"
	"github.com/sotto-dp/sotto/noise"
)

// Worlds are what they are said to be: means in their range, with the gap between best choices and
// uniform ones, vectors in the unit ball, whatever the map.
func TestGenerate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5)
		values := func(name string, n int) feature.Feature {
			f := feature.Feature{Name: name}
			for i := range n {
				f.Values = append(f.Values, fmt.Sprint(name, i))
			}
			return f
		}
		m := feature.Map{
			Context: []feature.Feature{values("c", n.Draw(rt, "c")), {Name: "age", Lo: 18, Hi: 99},
				{Name: "city", CrossOnly: true}},
			Action: []feature.Feature{values("a", n.Draw(rt, "a")), {Name: "price", Lo: -1, Hi: 3},
				{Name: "brand", Buckets: 7}},
			Cross: []feature.Cross{{Of: []string{"c", "a"}},
				{Of: []string{"city", "id"}, Buckets: 16}, {Of: []string{"age", "price"}}},
		}
		mean, gap := rapid.Float64Range(0.1, 0.5).Draw(rt, "mean"),
			rapid.Float64Range(0.01, 0.1).Draw(rt, "gap")
		actions := rapid.IntRange(4, 20).Draw(rt, "actions")
		s := noise.Key{Seed: rapid.Uint64().Draw(rt, "seed"), Role: noise.RoleInstance}.Fast(1)
		c := clicks.World{Map: m, Actions: actions, Mean: mean, Gap: gap, Logistic: rapid.Bool().Draw(rt, "logistic"),
			Visitors: 64, Every: 7, Turns: rapid.IntRange(0, 1).Draw(rt, "turns")}
		w, err := c.Generate(&s[0])
		if err != nil {
			rt.Fatal(err)
		}
		if d := m.Dim(); w.Dim != d || len(w.Of) != 64 || len(w.Later) != c.Turns || w.Every != 7 {
			rt.Fatalf("d = %d, of %d, %d visitors, %d turns, every %d", w.Dim, d, len(w.Of), len(w.Later), w.Every)
		}
		for _, means := range append([][][]float64{w.Means}, w.Later...) {
			w.Means = means
			best, uniform := w.Earns()
			if math.Abs((uniform+1)/2-mean) > 0.01*gap || math.Abs((best-uniform)/2-gap) > 0.01*gap {
				rt.Fatalf("visitors earn %v and %v", best, uniform)
			}
			for i := range w.Actions {
				if len(means[i]) != actions {
					rt.Fatalf("%d actions of %d", len(means[i]), actions)
				}
				for _, x := range means[i] {
					if !(x >= -1 && x <= 1) {
						rt.Fatalf("a mean is %v", x)
					}
				}
			}
		}
		for _, set := range w.Actions {
			for ; len(set) > 0; set = set[w.Dim:] {
				q := 0.0
				for _, x := range set[:w.Dim] {
					q += x * x
				}
				if q > 1 {
					rt.Fatalf("a vector has the squared norm %v", q)
				}
			}
		}
	})
	same := feature.Map{Action: []feature.Feature{{Name: "a", Values: []string{"x"}}}}
	s := noise.Key{Seed: 1, Role: noise.RoleInstance}.Fast(1)
	c := clicks.World{Map: same, Actions: 3, Mean: 0.2, Gap: 0.1}
	if _, err := c.Generate(&s[0]); !errors.Is(err, clicks.ErrWorld) {
		t.Errorf("actions that are all the same: %v", err)
	}
}
