package lease

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The hashes are those of GrowthBook's cases.json and of MurmurHash3's users.
func TestOtherVectors(t *testing.T) {
	for text, want := range map[string]int{"seeda": 505, "seedb": 2696, "fooab": 2575, "foodef": 2019,
		"89123klj8952klfjas09ujkasdf": 1240, "90850943850283058242805123": 7516, `()**(%$##$%#$#___)((*":&`: 128,
		"josé": 1315, "用户123": 3071, "😀": 4971, "expérience123": 9001} {
		if got := growthBook(text); got != want {
			t.Errorf("growthbook: %q: %d, must be %d", text, got, want)
		}
	}
	for text, want := range map[string]uint32{"": 0, "test": 0xba6bd213, "Hello, world!": 0xc0363e43,
		"The quick brown fox jumps over the lazy dog": 0x2e4ff723} {
		if got := murmur3(text); got != want {
			t.Errorf("flagd: %q: %x, must be %x", text, got, want)
		}
	}
}

// What their own code computes of a plan's units, @growthbook/growthbook 1.8.0 and imurmurhash 0.1.4.
func TestDecideBy(t *testing.T) {
	s := reference()
	for unit, want := range map[string][2]int{"a": {2641, 343}, "visitor-1": {972, 2072}, "Zoë": {1500, -1},
		"😀 smile": {6722, -1}, strings.Repeat("x", 4096): {6042, 2044}} {
		for i, hash := range []string{GrowthBook, Flagd} {
			b := want[i]
			for _, p := range []Plan{plan(b, 1, Buckets-b-1), plan(max(0, b-1), 1, Buckets-max(0, b-1)-1)} {
				arm := p.At(b)
				if b < 0 {
					arm = -1
				}
				p.Salt = s
				if got := p.DecideBy(hash, unit); got != arm {
					t.Errorf("%s: %.10q: arm %d of %v, must be %d", hash, unit, got, p.Arms, arm)
				}
				if b < 0 {
					break
				}
			}
		}
		p := plan(1, 0, 4999, 5000)
		if a, b, c := p.DecideBy("", unit), p.DecideBy(SipHash, unit), p.DecideBy("md5", unit); a != p.Decide(unit) ||
			b != a || c != -1 {
			t.Errorf("%.10q: %d, %d and %d", unit, a, b, c)
		}
	}
}

// Each hash gives each arm its share of names, a new salt moves them independently, and so does another
// hash: of 10⁵ names a count leaves seven standard deviations with a probability below 10⁻¹¹.
func TestSharesBy(t *testing.T) {
	const n = 100_000
	p, q := plan(500, 2500, 0, 7000), plan(500, 2500, 0, 7000)
	q.Salt[15]++
	for _, hash := range []string{GrowthBook, Flagd} {
		counts, same, alike := make([]int, 4), 0, 0
		for i := range n {
			unit := fmt.Sprint("unit-", i)
			a := p.DecideBy(hash, unit)
			counts[a]++
			if a == q.DecideBy(hash, unit) {
				same++
			}
			if a == p.Decide(unit) {
				alike++
			}
		}
		within := func(what string, got int, p float64) {
			if d := math.Abs(float64(got) - n*p); d > 7*math.Sqrt(n*p*(1-p)) {
				t.Errorf("%s: %s: %d of %d, must be %v of them", hash, what, got, n, p)
			}
		}
		for i, s := range p.Arms {
			within(s.Arm, counts[i], s.Propensity())
		}
		within("the same under another salt", same, .05*.05+.25*.25+.7*.7)
		within("the same by SipHash", alike, .05*.05+.25*.25+.7*.7)
	}
}
