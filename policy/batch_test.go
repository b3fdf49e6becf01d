package policy

import (
	"testing"

	"pgregory.net/rapid"
)

// order is the definition of a batch's order, one round at a time.
func order(b *Batch, m int) []int {
	k := make([]int, len(b.Plays))
	for range m {
		next := -1
		for i, p := range b.Plays {
			// (k+½)/n compared as fractions
			if k[i] < p.Rounds && (next < 0 || (2*k[i]+1)*b.Plays[next].Rounds < (2*k[next]+1)*p.Rounds) {
				next = i
			}
		}
		k[next]++
	}
	return k
}

func TestCountsFollowTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Batch{}
		n := rapid.IntRange(1, 6).Draw(t, "plays")
		equal := rapid.Bool().Draw(t, "equal")
		total := 0
		for i := range n {
			r := rapid.IntRange(1, 40).Draw(t, "rounds")
			if equal && i > 0 {
				r = b.Plays[0].Rounds
			}
			b.Plays = append(b.Plays, Play{Arm: i, Rounds: r})
			total += r
		}
		k := make([]int, n)
		for m := 0; m <= total; m++ {
			b.Counts(m, k)
			want := order(b, m)
			for i := range k {
				if k[i] != want[i] {
					t.Fatalf("Counts(%d) of %v = %v, the order gives %v", m, b.Plays, k, want)
				}
			}
		}
	})
}

func TestEqualPlaysTakeTurns(t *testing.T) {
	b := &Batch{Plays: []Play{{Arm: 0, Rounds: 3}, {Arm: 1, Rounds: 3}}}
	k := make([]int, 2)
	for m, want := range [][2]int{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}} {
		if b.Counts(m, k); [2]int(k) != want {
			t.Errorf("after %d rounds: %v, want %v", m, k, want)
		}
	}
}

func TestCountsOfLongBatches(t *testing.T) {
	// Products of counts leave 64 bits here.
	const n = min(1<<50, Forever/8+1)
	b := &Batch{Plays: []Play{{Rounds: n}, {Rounds: 3 * n}}}
	k := make([]int, 2)
	if b.Counts(2*n, k); k[0] != n/2 || k[1] != 3*n/2 {
		t.Errorf("half of %v is %v", b.Plays, k)
	}
}

func TestRoundsSaturate(t *testing.T) {
	b := &Batch{Plays: []Play{{Rounds: Forever - 1}, {Rounds: 5}}}
	if got := b.Rounds(); got != Forever {
		t.Errorf("Rounds() = %d, want Forever", got)
	}
}

// Plays whose sum leaves the integers are cut as any others.
func TestCountsOfEndlessBatches(t *testing.T) {
	for _, v := range []struct{ a, b, m, ka, kb int }{
		{Forever, Forever - 1, 1000, 500, 500},
		{Forever, Forever - 1, 1001, 501, 500},
		{Forever, Forever/2 + 1, 3000, 2000, 1000},
		{Forever - 2, 2, min(1<<40, Forever/2), min(1<<40, Forever/2), 0},
		{Forever - 2, 2, Forever, Forever - 2, 2},
	} {
		b := &Batch{Plays: []Play{{Rounds: v.a}, {Rounds: v.b}}}
		k := make([]int, 2)
		if b.Counts(v.m, k); k[0] != v.ka || k[1] != v.kb {
			t.Errorf("Counts(%d) of %v is %v, want [%d %d]", v.m, b.Plays, k, v.ka, v.kb)
		}
	}
}
