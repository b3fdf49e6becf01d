package secagg

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whoever vanishes and whenever: the result is the exact sum of the survivors' messages or a named
// refusal, and it is a sum if no more vanish than the session allows for.
func TestSumOrRefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testSession("property", 3)
		binary.BigEndian.PutUint64(s.ID[:], rapid.Uint64().Draw(t, "id"))
		n := rapid.IntRange(3, 12).Draw(t, "n")
		if rapid.IntRange(0, 19).Draw(t, "sparse") == 0 {
			n = rapid.IntRange(50, 56).Draw(t, "sparse n")
		}
		s.Enrolled = n
		s.Mode = rapid.SampledFrom([]Mode{SemiHonest, Malicious}).Draw(t, "mode")
		s.Modulus = rapid.OneOf(rapid.SampledFrom([]uint64{0, 2, 1<<63 + 1, 1<<64 - 1}),
			rapid.Uint64Range(2, 1<<64-1)).Draw(t, "m")
		s.Length = rapid.IntRange(1, 3).Draw(t, "length")
		s.NMin = rapid.IntRange(2, n).Draw(t, "n_min")
		s.Gamma = rapid.Float64Range(0, .3).Draw(t, "gamma")
		s.Delta = rapid.Float64Range(0, .3).Draw(t, "delta")
		messages := map[uint32][]uint64{}
		gone := map[uint32]Kind{}
		most := n
		if rapid.Bool().Draw(t, "few") {
			most = floorOf(s.Delta, n)
		}
		for i := range n {
			id := rapid.Uint32().Filter(func(id uint32) bool { return messages[id] == nil }).Draw(t, "client")
			v := make([]uint64, s.Length)
			for j := range v {
				v[j] = rapid.Uint64Range(0, s.Modulus-1).Draw(t, "value")
			}
			messages[id] = v
			if i < most && rapid.IntRange(0, 2).Draw(t, "vanishes") == 0 {
				gone[id] = Kind(rapid.IntRange(1, 9).Draw(t, "in"))
			}
		}
		sum, in, err := Local{Rand: seeded(string(s.ID[:])), Fault: func(f Frame) [][]byte {
			if k, ok := gone[f.Client]; ok && f.Kind >= k {
				return nil
			}
			return [][]byte{f.Message}
		}}.Sum(context.Background(), s, messages)
		if err != nil {
			if strings.HasPrefix(kindOf(err), "UNNAMED") {
				t.Fatal(err)
			}
			_, infeasible := s.Graph(n)
			if n < completeBelow && len(gone) <= floorOf(s.Delta, n) && n-len(gone) >= s.NMin &&
				infeasible == nil && !errors.Is(err, ErrInfeasible) {
				// A graph on fewer clients may be infeasible, when some vanish before it is drawn:
				// nothing else is an excuse.
				early := slices.ContainsFunc(slices.Collect(maps.Values(gone)), func(k Kind) bool {
					return k == KindAdvertise
				})
				if !early {
					t.Fatalf("n=%d, %d vanish, %+v: %v", n, len(gone), s, err)
				}
			}
			return
		}
		if len(in) < s.NMin {
			t.Fatalf("a sum of %d, n_min is %d", len(in), s.NMin)
		}
		want := make([]uint64, s.Length)
		for id, v := range messages {
			if k, ok := gone[id]; ok && k <= KindMasked {
				if slices.Contains(in, id) {
					t.Fatalf("client %d survives, though it vanished with %v", id, k)
				}
				continue
			}
			if !slices.Contains(in, id) {
				t.Fatalf("client %d is not in the sum", id)
			}
			for j := range v {
				want[j] = addMod(want[j], v[j], s.Modulus)
			}
		}
		if !slices.Equal(sum, want) {
			t.Fatalf("sum %v, want %v", sum, want)
		}
	})
}
