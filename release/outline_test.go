package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"pgregory.net/rapid"
)

// Whatever is played and released, an Outline says of every release what the curator's ledger
// writes of it, sums apart.
func TestOutlineIsTheCurators(t *testing.T) {
	mechanisms := []privacy.Mechanism{privacy.Exact{}, privacy.Laplace{}, privacy.Laplace{Scale: 3},
		privacy.Gaussian{Sigma: 1.5}, privacy.Tree{Scale: 4, Horizon: 1000},
		privacy.Hybrid{Scale: 2}, privacy.NewKAry(1, 3, 1000), privacy.Laplace{Scale: 1e-9}}
	rapid.Check(t, func(t *rapid.T) {
		real, arms := rapid.Bool().Draw(t, "real"), rapid.IntRange(1, 3).Draw(t, "arms")
		m := rapid.SampledFrom(mechanisms).Draw(t, "mechanism")
		var text bytes.Buffer
		cfg := Config{Arms: arms, Lo: -1, Hi: 3, Mechanism: m,
			Ledger: privacy.NewLedger(privacy.WithTranscript(&text))}
		var cur Curator
		var err error
		if real {
			cur, err = Real(cfg)
		} else {
			cur, err = Simulated(cfg, &noise.Fast{})
		}
		if err != nil {
			t.Fatal(err)
		}
		o, err := NewOutline(cfg, real)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 10).Draw(t, "batches") {
			var ready []int
			for a := range arms {
				n := rapid.IntRange(0, 5).Draw(t, "plays")
				for range n {
					if err := cur.Add(a, 1); err != nil {
						t.Fatal(err)
					}
				}
				if err := o.Play(a, n); err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "release") {
					ready = append(ready, a)
				}
			}
			text.Reset()
			_, failed := cur.Release(ready)
			form, err := o.Release(ready)
			if (failed == nil) != (err == nil) {
				t.Fatalf("the curator says %v, the outline %v", failed, err)
			}
			if err != nil {
				continue
			}
			var line struct {
				Slots, N  []int
				Mechanism json.RawMessage
				Tail      privacy.Tail
			}
			if err := json.Unmarshal(text.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			m, err := privacy.UnmarshalMechanism(line.Mechanism)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(line.Slots, form.Slots) || !slices.Equal(line.N, form.N) ||
				m != form.Mechanism || line.Tail != form.Tail {
				t.Fatalf("%+v, and the ledger wrote %s", form, text.String())
			}
		}
	})
}

func TestOutlineRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		cfg  Config
	}{
		{"sparse", Config{Arms: 1, Mechanism: privacy.Sparse{Questions: privacy.Questions{Threshold: 1,
			Query: 1}, Scale: 1}}},
		{"trust is secagg", Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1},
			Trust: &Trust{Model: privacy.TrustSecAgg, P: 0.1}}},
		{"arms is 0", Config{Mechanism: privacy.Laplace{Scale: 1}}},
		{"lo is NaN", Config{Arms: 1, Lo: math.NaN(), Hi: 1, Mechanism: privacy.Laplace{Scale: 1}}},
		{"mechanism is missing", Config{Arms: 1}},
	} {
		for _, real := range []bool{false, true} {
			if _, err := NewOutline(c.cfg, real); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("real %v: %v, want %s", real, fmt.Sprint(err), c.want)
			}
		}
	}
}
