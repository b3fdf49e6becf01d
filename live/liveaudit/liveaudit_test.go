package liveaudit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// The service is not refuted, by arm or by cell, and its twins are, with half the noise and with totals told beside
// cells: those that tell by themselves are
// found below, and by sotto audit self. The probability that the service is refuted although its
// claim is true is below 1e-6; that the twin is missed, about that: its bound is far from the claim.
func TestAudits(t *testing.T) {
	if !testkit.Full() {
		t.Skip("it is for the full size; sotto audit self does it too")
	}
	found := map[string]bool{}
	s := audit.SelfAudit{Games: 100 * 3000, Seed: 1, Gamma: 1e-6, More: Audits(),
		Only: func(name string) bool {
			return strings.HasPrefix(name, "service over HTTP") && (!strings.Contains(name, ", says") &&
				!strings.Contains(name, ", closes") && !strings.Contains(name, ", counts the rewards") || name == contexts.name || name == contexts.name+string(half))
		}}
	results, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		found[r.Name] = true
		t.Log(r)
		if !r.Good {
			t.Errorf("%v", r)
		}
	}
	if len(found) != 6+4+2*len(learners()) {
		t.Errorf("only %v were done", found)
	}
}

// What is gathered keeps its claim, and each twin is refuted. The probability that a true claim is
// refuted is below 1e-6; that a twin is missed, about that.
func TestHidden(t *testing.T) {
	if testkit.Race {
		t.Skip("it is 100 000 draws, by goroutines that share nothing")
	}
	done := 0
	s := audit.SelfAudit{Games: 12000, Seed: 1, Gamma: 1e-6, More: hidden(), Only: func(name string) bool {
		return slices.ContainsFunc(hidden(), func(o audit.Outside) bool { return o.Name == name })
	}}
	results, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		done++
		if t.Log(r); !r.Good {
			t.Errorf("%v", r)
		}
	}
	if done != len(hidden()) {
		t.Errorf("%d of %d audits were done", done, len(hidden()))
	}
}

// What is released has the noise that is booked, and of the twin with half of it that is told. The
// sum of n absolute values of Laplace noise of scale 1 has the law Gamma(n, 1): of 300 it is below
// 210 or above 400 with probability 8e-8, and of half the noise above 210 with probability 3e-10.
func TestNoise(t *testing.T) {
	if testing.Short() || testkit.Race {
		t.Skip("it is 600 lives")
	}
	src := noise.NewFast(5, 6)
	for _, f := range []fault{sound, half} {
		total := 0.0
		for range 300 {
			_, sum, err := arms.live(f, 0, true, &src)
			if err != nil {
				t.Fatal(err)
			}
			total += math.Abs(sum - 1) // their report
		}
		t.Logf("%q: %v", f, total)
		if good := total > 210 && total < 400; good != (f == sound) {
			t.Errorf("%q: the noise of 300 lives adds up to %v, must be in (210, 400) for the "+
				"service, and not "+
				"for its twin", f, total)
		}
	}
}

// The same with contexts: the sum of squares of 200 normal numbers over their variance, 1, is below
// 110 with probability 4e-8, and above 320 with 2e-7; of half the noise it is above 110 with 5e-20.
func TestVectorNoise(t *testing.T) {
	if testing.Short() || testkit.Race {
		t.Skip("it is 400 lives")
	}
	src := noise.NewFast(5, 7)
	for _, f := range []fault{sound, half} {
		total := 0.0
		for range 200 {
			_, sum, err := contexts.live(f, 0, true, &src)
			if err != nil {
				t.Fatal(err)
			}
			total += (sum - 1) * (sum - 1) * 2 * rho // their report
		}
		t.Logf("%q: %v", f, total)
		if good := total > 110 && total < 320; good != (f == sound) {
			t.Errorf("%q: the squares of 200 lives add up to %v, must be in (110, 320) for the service, and "+
				"not for its twin", f, total)
		}
	}
}

// Two worlds through the handler: with the same noise every byte before the release is the same,
// whether they report or not; of each twin that tells it is not.
func TestTwoWorlds(t *testing.T) {
	for _, x := range append(learners(), arms, contexts) {
		for _, f := range []fault{sound, half, early, duplicate, counted} {
			var seen [2]string
			var sums [2]float64
			for i := range seen {
				src := noise.NewFast(3, 4)
				var err error
				if seen[i], sums[i], err = x.live(f, 0, i == 1, &src); err != nil {
					t.Fatal(f, err)
				}
			}
			if same := seen[0] == seen[1]; same != (f == sound || f == half) || len(seen[0]) < 1000 {
				t.Errorf("%s%s: the same is %v:\n%s\n%s", x.name, f, same, seen[0], seen[1])
			}
			if d := sums[1] - sums[0]; d < 0.999 || d > 1.001 {
				t.Errorf("%s%s: their report moves the release by %v", x.name, f, d)
			}
		}
	}
}

// The same where clients decide by plans; of each client that is exposed by what comes of it, it is not the same.
func TestTwoWorldsOfLeases(t *testing.T) {
	for _, f := range []fault{sound, onSuccess, recounted, forged} {
		var seen [2]string
		var sums [2]float64
		for i := range seen {
			src := noise.NewFast(3, 4)
			var err error
			if seen[i], sums[i], err = leases.live(f, 0, i == 1, &src); err != nil {
				t.Fatal(f, err)
			}
		}
		if same := seen[0] == seen[1]; same != (f == sound) || len(seen[0]) < 1000 {
			t.Errorf("%s: the same is %v:\n%s\n%s", f, same, seen[0], seen[1])
		}
		if d := sums[1] - sums[0]; f == sound && (d < 0.999 || d > 1.001) {
			t.Errorf("their report moves the release by %v", d)
		}
	}
}
