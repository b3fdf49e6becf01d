package feature_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/rows"
)

func word(name string, n int) feature.Feature {
	f := feature.Feature{Name: name}
	for i := range n {
		f.Values = append(f.Values, fmt.Sprint(name, i))
	}
	return f
}

// Whatever is decided has a vector that is among the rows, and with every combination each row comes: words,
// buckets, ids, crosses of all kinds, what is missing, and what is not known where that is ignored.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i, m := range []feature.Map{
		{Context: []feature.Feature{word("d", 3)}, Action: []feature.Feature{word("t", 4)},
			Cross: []feature.Cross{{Of: []string{"d", "t"}}}},
		{Context: []feature.Feature{word("d", 2), {Name: "c", Buckets: 3}}, ID: word("", 2), Ignore: true,
			Cross: []feature.Cross{{Of: []string{"c", "id"}}, {Of: []string{"d", "id"}, Buckets: 3, Seed: 5}}},
		{Action: []feature.Feature{{Name: "t", Values: []string{"x", "y"}, CrossOnly: true}, word("u", 2)},
			ID: feature.Feature{Buckets: 2}, Cross: []feature.Cross{{Of: []string{"t", "u"}, Buckets: 2}}},
	} {
		p, err := feature.New(m)
		if err != nil {
			t.Fatal(err)
		}
		flat, err := p.Rows()
		if err != nil {
			t.Fatal(err)
		}
		table, err := rows.New(p.Dim(), flat) // which refuses one that is there twice
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && table.Len() != 4*5 {
			t.Errorf("there are %d rows, want 20", table.Len())
		}
		seen := map[int]bool{}
		of := func(features []feature.Feature) map[string]any {
			out := map[string]any{}
			for _, f := range features {
				switch n := len(f.Values); {
				case rng.IntN(4) == 0 && m.Ignore:
					out[f.Name] = "unheard"
				case rng.IntN(4) == 0:
				case n > 0:
					out[f.Name] = f.Values[rng.IntN(n)]
				default:
					out[f.Name] = fmt.Sprint(rng.IntN(100))
				}
			}
			return out
		}
		for range 3000 {
			id := fmt.Sprint("any", rng.IntN(100))
			if n := len(m.ID.Values); n > 0 && rng.IntN(3) > 0 {
				id = m.ID.Values[rng.IntN(n)]
			}
			v, err := p.Vectors(nil, of(m.Context), []feature.Action{{ID: id, Features: of(m.Action)}})
			if err != nil {
				t.Fatal(err)
			}
			at := table.Find(v)
			if at < 0 {
				t.Fatalf("map %d: %v is no row", i, v)
			}
			seen[at] = true
		}
		if len(seen) != table.Len() {
			t.Errorf("map %d: %d of %d rows come", i, len(seen), table.Len())
		}
	}
}

func TestRowsErrors(t *testing.T) {
	for mention, m := range map[string]feature.Map{
		"context.age: is a number": {Context: []feature.Feature{{Name: "age", Hi: 9}}, ID: word("", 2)},
		"action.city: is any word": {Action: []feature.Feature{{Name: "city", CrossOnly: true}}, ID: word("", 2),
			Cross: []feature.Cross{{Of: []string{"city", "id"}, Buckets: 8}}},
		"id: is any word": {Context: []feature.Feature{word("d", 2)},
			Cross: []feature.Cross{{Of: []string{"d", "id"}, Buckets: 8}}},
		"context.b: makes more than 16384 combinations": {Context: []feature.Feature{word("a", 200), word("b", 200)},
			ID: word("", 2)},
		"more than 4096 vectors": {Context: []feature.Feature{word("a", 99), word("b", 99)}, ID: feature.Feature{Buckets: 0},
			Action: nil},
	} {
		p, err := feature.New(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Rows(); !errors.Is(err, feature.ErrMap) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v", mention, err)
		}
	}
}
