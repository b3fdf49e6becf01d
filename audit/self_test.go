package audit

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

// The audits that take no time: each fault, each kind of subject. The probability that any claim is
// refuted is below 1e-6; a twin is missed with about that, too: the bounds are far from the claims.
func TestSelfAudit(t *testing.T) {
	picked := []string{
		"laplace", "laplace, half the scale", "laplace, noise shared across arms",
		"laplace, rewards counted in two releases", "laplace, no clipping",
		"gaussian, half the scale", "sqrt, half the scale",
		"aggregated secagg polya", "aggregated secagg polya, half the scale",
		"aggregated secagg polya, published scale", "clones, not shuffled",
		"shuffled-count", "shuffled-count, without cover",
		"adap-klucb, shuffle count, half the scale",
		"ledger, restarted, the journal's cap is dropped",
		"ledger, replayed, the release is made again",
		"ledger, a lie about N, every sum is sealed",
		"cap on a year, what has ended is forgotten",
		"cap on a year, a window begins with an experiment, and not with its release",
		"randomizer, shared by goroutines", "randomizer, shared by goroutines, noise repeated",
		"play, what is ahead, drawn again when the policy asks",
		"play, the last release, what was released is in it too",
		"play, joint batches", "play, joint batches, noise shared across arms",
		"adap-klucb", "adap-klucb, plays only", "adap-klucb, noise shared across arms",
		"adap-klucb, rewards counted in two releases",
		"adac-ucb, no clipping, plays only", "identify adap-tt-star, half the scale", "adac-gope",
		"adac-oful, half the scale",
	}
	if testkit.Race { // all are done by the same goroutines, and found without it
		picked = []string{"laplace, half the scale", "clones, not shuffled", "shuffled-count",
			"ledger, replayed, the release is made again", "ledger, a lie about N, every sum is sealed",
			"randomizer, shared by goroutines", "randomizer, shared by goroutines, noise repeated",
			"adap-klucb, plays only", "adac-oful, half the scale"}
	}
	if testkit.Full() { // what is claimed of ledgers takes the longest; their twins are found always
		picked = append(picked, "ledger, restarted", "ledger, replayed", "ledger, a lie about N", "cap on a year",
			"play, what is ahead", "play, the last release")
	}
	left := map[string]bool{}
	for _, n := range picked {
		left[n] = true
	}
	s := SelfAudit{Quick: true, Games: 12000, Seed: 1, Gamma: 1e-6, Only: func(n string) bool {
		return left[n]
	}}
	results, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		delete(left, r.Name)
		if !r.Good {
			t.Errorf("%v", r)
		}
	}
	for n := range left {
		t.Errorf("there is no audit of the name %q", n)
	}
}

// A broken copy that a test misses is played on with games of its own, and refuted when it shows.
func TestABrokenCopyThatIsMissedIsPlayedOn(t *testing.T) {
	testkit.RacedBefore(t)
	// So many games tell nothing: those of the first look.
	const games, silent = 2000, patience * 2000
	results, played := outside(t, games, 1e-6, silent)
	r := results[0]
	if !r.Good || r.Looks != 2 || r.Games > 200 {
		t.Errorf("%v, %d looks, %d games in the last", r, r.Looks, r.Games)
	}
	if want := int64(silent + r.Games); played != want {
		t.Errorf("%d games were played, want %d", played, want)
	}
	items, err := selfItems(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1e-6 / float64(len(items)+1) / 6; math.Abs(r.Gamma/want-1) > 1e-12 {
		t.Errorf("the second look has level %v, want %v", r.Gamma, want)
	}
}

// A copy that nothing refutes is given up, after as many looks as make that rare enough.
func TestACopyThatIsNotBrokenIsGivenUp(t *testing.T) {
	testkit.RacedBefore(t)
	results, _ := outside(t, 2000, 0.9, math.MaxInt64)
	items, err := selfItems(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	want := looks(0.9 / float64(len(items)+1))
	if r := results[0]; r.Good || r.Looks != want || want != 9 {
		t.Errorf("%v, %d looks, want %d", r, r.Looks, want)
	}
}

// outside audits a broken copy whose score is the bit itself, once so many games have been silent, and
// says how many games were played.
func outside(t *testing.T, games int, gamma float64, silent int64) ([]SelfResult, int64) {
	t.Helper()
	var played atomic.Int64
	o := Outside{Name: "a broken copy", Twin: true, Claim: privacy.Laplace{Scale: 1}.Loss(),
		Adversaries: []string{"all"}, Worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, scores []float64) error {
					scores[0] = src.Float64()
					if played.Add(1) > silent && in {
						scores[0] += 2
					}
					return nil
				}
			}
		}}
	s := SelfAudit{Quick: true, Games: games, Seed: 1, Gamma: gamma, More: []Outside{o},
		Only: func(name string) bool { return name == o.Name }}
	results, err := s.Run(context.Background())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	return results, played.Load()
}

// A trial of the audit may have its answer before its rows run out: noise makes it so in about one of
// a million games. That is an outcome like any other.
func TestATrialThatAnswersIsRecorded(t *testing.T) {
	rule, err := trial.NewRule("dp-tt", 2, 0.05, privacy.Pure{Epsilon: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{24, 4000} { // too few for an answer, but for the noise; and many
		log := logged.Log{Summary: logged.Summary{Names: []string{"a", "b"}},
			Rewards: [][]float64{slices.Repeat([]float64{1}, rows), make([]float64, rows)}}
		text, spent, err := record(rule, log)
		if err != nil || spent.Pure() != 1 {
			t.Fatalf("%d rows: ε = %v spent, %v", rows, spent.Pure(), err)
		}
		seen, err := trial.Replay(text)
		if err != nil || rows == 4000 && seen.End != "answer" {
			t.Errorf("%d rows: %+v, %v", rows, seen, err)
		}
	}
}

// A sound program fails with probability at most 10⁻⁶, if nothing else is asked for: the levels of
// true claims, and as many looks at each broken copy as all miss it with an audit's share, add up.
func TestASoundProgramFailsWithProbabilityAtMostGamma(t *testing.T) {
	testkit.RacedBefore(t)
	items, err := selfItems(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	for given, gamma := range map[float64]float64{0: 1e-6, 1e-6: 1e-6, 1e-9: 1e-9, 0.05: 0.05} {
		n, err := SelfAudit{Gamma: given}.Looks()
		if err != nil {
			t.Fatal(err)
		}
		share, fails := gamma/float64(len(items)), 0.0
		for _, i := range items {
			var levels []float64
			i.run = func(_ context.Context, e effort) (Finding, error) {
				levels = append(levels, e.gamma)
				return Finding{}, nil
			}
			_, look, err := i.test(context.Background(), effort{gamma: share, games: 1})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, l := range levels {
				sum += l
			}
			if sum > share || look != len(levels) || !i.twin && (look != 1 || sum != share) || i.twin && look != n {
				t.Fatalf("%s: %d looks at levels %v, its share is %v", i.name, look, levels, share)
			}
			if i.twin {
				fails += math.Exp2(float64(-look))
			} else {
				fails += sum
			}
		}
		if !(fails <= gamma*(1+1e-12)) {
			t.Errorf("γ = %v: a sound program fails with probability up to %v", gamma, fails)
		}
	}
	if _, err := (SelfAudit{Gamma: 1}).Looks(); !errors.Is(err, ErrConfidence) {
		t.Errorf("γ = 1: %v", err)
	}
}

// All of it, when asked for: SOTTO_AUDIT_SELF=quick or =full, or part of a name.
func TestSelfAuditInFull(t *testing.T) {
	what := os.Getenv("SOTTO_AUDIT_SELF")
	if what == "" {
		t.Skip("SOTTO_AUDIT_SELF is not set")
	}
	s := SelfAudit{Quick: what != "full", Seed: 1, Report: func(done, all int, r SelfResult) {
		t.Logf("%d/%d %v", done, all, r)
		if !r.Good {
			t.Errorf("WRONG: %s", r.Name)
		}
	}}
	if what != "full" && what != "quick" {
		s.Only = func(n string) bool { return strings.Contains(n, what) }
	}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestSelfAuditHasEveryPrivatePolicyAndItsTwin(t *testing.T) {
	items, err := selfItems(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	seen, own, twins := map[string]bool{}, 0, 0
	for _, i := range items {
		if seen[i.name] {
			t.Errorf("two audits have the name %q", i.name)
		}
		seen[i.name] = true
		if i.twin {
			twins++
			continue
		}
		own++
		found := false
		base := strings.TrimSuffix(strings.TrimSuffix(i.name, ", plays only"), ", real")
		for _, j := range items {
			found = found || j.twin && strings.HasPrefix(j.name, base+", ")
		}
		if !found {
			t.Errorf("%s has no broken twin", i.name)
		}
	}
	if own < 60 || twins < 50 {
		t.Errorf("%d audits of what is claimed and %d of twins", own, twins)
	}
}
