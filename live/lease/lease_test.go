package lease

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dchest/siphash"
)

// reference is the key 00 01 … 0f of the reference implementation's vectors.
func reference() (s Salt) {
	for i := range s {
		s[i] = byte(i)
	}
	return s
}

func plan(buckets ...int) Plan {
	p := Plan{Experiment: "shop", Epoch: 3, Salt: reference(), From: time.UnixMilli(0).UTC(),
		Until: time.UnixMilli(600_000).UTC()}
	for i, b := range buckets {
		p.Arms = append(p.Arms, Share{Arm: string(rune('a' + i)), Value: json.RawMessage(`{"x":1}`), Buckets: b})
	}
	return p
}

// The hash is SipHash-2-4: of the vectors of its authors, of the message 00 01 … of n bytes.
func TestReferenceVectors(t *testing.T) {
	message := make([]byte, 64)
	for i := range message {
		message[i] = byte(i)
	}
	s := reference()
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137,
		8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5, 63: 0x958a324ceb064572} {
		if got := siphash.Hash(0x0706050403020100, 0x0f0e0d0c0b0a0908, message[:n]); got != want {
			t.Errorf("%d bytes: %x, must be %x", n, got, want)
		}
		if got, want := s.Bucket(string(message[:n])), int(uint64(uint32(want>>32))*10000>>32); got != want {
			t.Errorf("%d bytes: bucket %d, must be %d", n, got, want)
		}
	}
}

// What other languages have to compute: the bucket and the arm of names under one salt.
func TestVectors(t *testing.T) {
	p := plan(1, 0, 4999, 5000)
	for unit, want := range map[string][2]int{"": {4470, 2}, "a": {1704, 2}, "visitor-1": {2143, 2},
		"Zoë": {6112, 3}, strings.Repeat("x", 4096): {2763, 2}} {
		if got := [2]int{p.Salt.Bucket(unit), p.Decide(unit)}; got != want {
			t.Errorf("%.10q: %v, must be %v", unit, got, want)
		}
	}
}

// Each arm gets its share of names, and a new salt moves them independently. Of 10⁵ names an arm's
// count leaves seven standard deviations with a probability below 10⁻¹¹.
func TestShares(t *testing.T) {
	const n = 100_000
	p, q := plan(500, 2500, 0, 7000), plan(500, 2500, 0, 7000)
	q.Salt[3]++
	counts, same := make([]int, 4), 0
	for i := range n {
		unit := fmt.Sprint("unit-", i)
		counts[p.Decide(unit)]++
		if p.Decide(unit) == q.Decide(unit) {
			same++
		}
	}
	within := func(what string, got int, p float64) {
		if d := math.Abs(float64(got) - n*p); d > 7*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s: %d of %d, must be %v of them", what, got, n, p)
		}
	}
	for i, s := range p.Arms {
		within(s.Arm, counts[i], s.Propensity())
	}
	within("the same arm", same, .05*.05+.25*.25+.7*.7)
}

func TestDecideAllocatesNothing(t *testing.T) {
	p, unit := plan(2500, 2500, 2500, 2500), strings.Repeat("unit", 100)
	if n := testing.AllocsPerRun(100, func() { p.Decide(unit) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestApportion(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		want    []int
	}{
		{[]float64{1, 1, 1}, []int{3334, 3333, 3333}},
		{[]float64{1, 0, 3}, []int{2500, 0, 7500}},
		{[]float64{1e-9, 1}, []int{1, 9999}},
		{[]float64{0, 0}, nil},
		{nil, nil},
		{make([]float64, 3), nil},
		{[]float64{math.Inf(1), 1}, nil},
		{[]float64{math.NaN(), 1}, []int{0, 10000}},
	} {
		if got := Apportion(c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, must be %v", c.weights, got, c.want)
		}
	}
}

func FuzzApportion(f *testing.F) {
	f.Add(1., 2., 3., 1e-12)
	f.Fuzz(func(t *testing.T, a, b, c, d float64) {
		w := []float64{a, b, c, d}
		got := Apportion(w)
		if got == nil {
			return
		}
		sum, total := 0, 0.
		for i, n := range got {
			sum += n
			total += max(0, w[i])
			if w[i] > 0 != (n > 0) {
				t.Errorf("%v: %v", w, got)
			}
		}
		if sum != Buckets {
			t.Errorf("%v: %v has %d buckets", w, got, sum)
		}
		for i, n := range got { // off by the buckets that small arms have, and one
			if share := w[i] / total * Buckets; w[i] > 0 && math.Abs(float64(n)-share) > 5 {
				t.Errorf("%v: %d buckets of arm %d, must be near %v", w, n, i, share)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	p := plan(4000, 6000)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"experiment":"shop","epoch":3,"salt":"000102030405060708090a0b0c0d0e0f","from":"1970-01-01T00:00:00Z",` +
		`"until":"1970-01-01T00:10:00Z","arms":[{"arm":"a","value":{"x":1},"buckets":4000},{"arm":"b","value":{"x":1},` +
		`"buckets":6000}]}`
	if string(text) != want {
		t.Errorf("%s, must be\n%s", text, want)
	}
	back, err := Parse(text)
	if again, _ := json.Marshal(back); err != nil || string(again) != want {
		t.Errorf("%s, %v", again, err)
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := json.Marshal(plan(4000, 6000))
	if err != nil {
		t.Fatal(err)
	}
	for was, is := range map[string][2]string{
		`"shop"`:   {`""`, "experiment is missing"},
		`:3,`:      {`:0,`, "epoch is 0"},
		`0001`:     {`01`, "salt has 30 characters"},
		`0e0f`:     {`0e0g`, "must be hexadecimal"},
		`:10:`:     {`:00:`, "must be after from"},
		`"b"`:      {`"a"`, "which is there before"},
		`6000`:     {`6001`, "are 10001, must be 10000"},
		`4000`:     {`-4000`, "must be from 0 to 10000"},
		`"arm":"a`: {`"arm":"`, "arms[0].arm is missing"},
		`{"exp`:    {`["exp`, "plan"},
	} {
		bad := strings.Replace(string(good), was, is[0], 1)
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), is[1]) {
			t.Errorf("%s for %s: %v, must have %q", is[0], was, err, is[1])
		}
	}
}

func FuzzParse(f *testing.F) {
	good, _ := json.Marshal(plan(4000, 6000))
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			return
		}
		if a := p.Decide("unit"); a < 0 || a >= len(p.Arms) || p.Arms[a].Buckets == 0 {
			t.Errorf("arm %d of %+v", a, p.Arms)
		}
	})
}

func BenchmarkLease(b *testing.B) {
	p, unit := plan(2500, 2500, 2500, 2500), "visitor-0123456789abcdef"
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(unit)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
