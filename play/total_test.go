package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// A said is one report of the decision.
type said struct {
	name   uint64
	reward float64
	metric float64
}

// addable is a Live whose reward and metric have an aggregate, and a decision of it.
func addable(t testing.TB, how Aggregate, drop bool) (*Live, Ticket, Config) {
	t.Helper()
	cfg := Config{Policy: asks(9), Arms: 2, Lo: -1, Hi: 3, Default: 0.5, Aggregate: how, Window: 10, Drop: drop,
		Epoch: Epoch{1}, Metrics: []Metric{{Name: "orders", Hi: 7, Default: 2, Aggregate: CountUp,
			Mechanism: privacy.Laplace{Scale: 1}}}}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := l.Decide(Decision{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l, k, cfg
}

// worth is what reports make of the decision, in steps of the reward and of the metric.
func worth(t testing.TB, how Aggregate, all []said) [2]int64 {
	t.Helper()
	l, k, _ := addable(t, how, false)
	for _, r := range all {
		if s, err := l.Add(k, r.name, r.reward, []float64{r.metric}, 1); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
	return worthOf(l, k)
}

// worthOf is what a release of the decision alone would be of.
func worthOf(l *Live, k Ticket) [2]int64 {
	q := l.s.Arms[k.Arm].clone()
	q.Segments[0].End = q.Issued
	_, sums := q.take(1, l.missing)
	return [2]int64(sums)
}

// draw is a list of reports in which some are sent twice, some are beyond the range, and some take away.
func draw(src *rand.Rand) (all []said) {
	for i := range src.IntN(7) {
		r := said{uint64(i + 1), src.NormFloat64() * math.Pow(10, float64(src.IntN(4))), 1}
		switch src.IntN(8) {
		case 0:
			r.reward = math.Inf(1 - 2*src.IntN(2))
		case 1:
			r.reward = math.NaN() // it is of the metric alone
		case 2:
			r.metric = math.NaN()
		case 3:
			r.reward = math.MaxFloat64
		}
		if all = append(all, r); src.IntN(3) == 0 {
			all = append(all, r)
		}
	}
	return all
}

// Whatever the order of reports and however often one is sent, a decision is worth the same: what its
// definition says, clipped as a whole.
func TestTotalsByDefinition(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		how := []Aggregate{AddUp, CountUp, TakeMost}[src.IntN(3)]
		all := draw(src)
		got := worth(t, how, all)
		again := slices.Clone(all)
		src.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		if other := worth(t, how, again); other != got {
			t.Fatalf("%s of %v is worth %v, and in another order %v", how, all, got, other)
		}
		sum, most, rewards, metrics, seen := 0.0, math.Inf(-1), 0, 0, map[uint64]bool{}
		for _, r := range all {
			if seen[r.name] {
				continue
			}
			if seen[r.name] = true; !math.IsNaN(r.metric) {
				metrics++
			}
			if !math.IsNaN(r.reward) {
				sum, most, rewards = sum+max(-1e20, min(r.reward, 1e20)), max(most, r.reward), rewards+1
			}
		}
		want := map[Aggregate]float64{AddUp: sum, CountUp: float64(rewards), TakeMost: most}[how]
		if rewards == 0 {
			want = 0.5
		}
		orders := float64(metrics)
		if metrics == 0 {
			orders = 2
		}
		share := func(x, lo, hi float64) float64 { return (max(lo, min(x, hi)) - lo) / (hi - lo) * (1 << 20) }
		// beside wide numbers a float64 loses what they cancel to; a grid of 2^-30 rounds each report
		wide := slices.ContainsFunc(all, func(r said) bool { return math.Abs(r.reward) > 1e9 })
		if !wide || how != AddUp {
			if math.Abs(float64(got[0])-share(want, -1, 3)) > 1 {
				t.Fatalf("%s of %v is worth %d steps, must be %v", how, all, got[0], share(want, -1, 3))
			}
		}
		if math.Abs(float64(got[1])-share(orders, 0, 7)) > 1 {
			t.Fatalf("%v are %d steps of orders, must be %v", all, got[1], share(orders, 0, 7))
		}
	}
}

// Two worlds: whatever one decision reports, or nothing, a release of it moves by at most the range. Copies
// that clip each report by itself, or on the way, and one that forgets names, are caught by one of the two.
func TestTotalsOfTwoWorlds(t *testing.T) {
	type worthBy func(all []said) [2]int64
	moves := func(by worthBy) (broken string) {
		src := rand.New(rand.NewPCG(3, 4))
		for range 2000 {
			all := draw(src)
			here, there := by(all), by(nil)
			for j := range here {
				if d := here[j] - there[j]; d > oneStep || d < -oneStep {
					return fmt.Sprintf("%v moves sum %d by %d steps", all, j, d)
				}
			}
			twice := slices.Concat(all, all)
			src.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
			if again := by(twice); again != here {
				return fmt.Sprintf("%v is worth %v, and sent again in another order %v", all, here, again)
			}
		}
		return ""
	}
	for _, how := range []Aggregate{AddUp, CountUp, TakeMost} {
		if broken := moves(func(all []said) [2]int64 { return worth(t, how, all) }); broken != "" {
			t.Errorf("%s: %s", how, broken)
		}
	}
	for name, twin := range map[string]worthBy{
		"clips each report": func(all []said) (out [2]int64) {
			for _, r := range all {
				one := worth(t, AddUp, []said{r})
				out[0], out[1] = out[0]+one[0], out[1]+one[1]
			}
			return out
		},
		"clips on the way": func(all []said) [2]int64 {
			total, seen := 0.0, map[uint64]bool{}
			for _, r := range all {
				if !math.IsNaN(r.reward) && !seen[r.name] {
					total = max(-1, min(total+r.reward, 3))
				}
				seen[r.name] = true
			}
			return [2]int64{int64((total + 1) / 4 * (1 << 20)), 0}
		},
		"forgets names": func(all []said) [2]int64 {
			nameless := slices.Clone(all)
			for i := range nameless {
				nameless[i].name = 0
			}
			return worth(t, AddUp, nameless)
		},
	} {
		if moves(twin) == "" {
			t.Errorf("a copy that %s is not caught", name)
		}
	}
}

// A state has the totals, goes on with them, and is refused where they are missing or are no totals.
func TestTotalsRestored(t *testing.T) {
	l, k, cfg := addable(t, AddUp, false)
	for i := range 3 {
		if _, err := l.Add(k, uint64(i+1), 0.75, nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(l.State())
	if err != nil {
		t.Fatal(err)
	}
	restore := func(text string) (*Live, error) {
		var s State
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, err
		}
		cfg.Policy, cfg.Epoch = asks(9), Epoch{2}
		return Restore(cfg, each(nil), s)
	}
	again, err := restore(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Live{l, again} {
		for _, name := range []uint64{3, 4} { // the first was there before
			if _, err := one.Add(k, name, 0.5, nil, 2); err != nil {
				t.Fatal(err)
			}
		}
		if got := worthOf(one, k)[0]; got != 15*oneStep/16 {
			t.Errorf("it is worth %d", got)
		}
	}
	const totals = `"Totals":{"0":`
	for what, broken := range map[string]string{
		"missing":           strings.Replace(string(text), totals, `"Totals":{"1":`, 1),
		"negative":          strings.Replace(string(text), `"Up":`, `"Up":-`, 1),
		"of too few sums":   strings.Replace(string(text), `{"Has":true,"Up"`, `{"Has":true,"Up":1},{"Has":true,"Up"`, 1),
		"with a name twice": strings.Replace(string(text), `"Names":[1,`, `"Names":[1,1,`, 1),
	} {
		if broken == string(text) {
			t.Fatalf("%s: nothing was changed in %s", what, text)
		}
		if _, err := restore(broken); !errors.Is(err, ErrState) {
			t.Errorf("totals that are %s are restored: %v", what, err)
		}
	}
	cfg.Aggregate = TakeMost
	if _, err := restore(string(text)); !errors.Is(err, ErrState) {
		t.Errorf("another aggregate goes on: %v", err)
	}
	for _, bad := range []Config{{Aggregate: "mean"}, {Metrics: []Metric{{Name: "m", Aggregate: "last",
		Mechanism: privacy.Laplace{Scale: 1}}}}} {
		bad.Policy, bad.Arms, bad.Window, bad.Epoch = asks(9), 2, 10, Epoch{1}
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "must be sum, count or max") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What is sealed keeps what it was worth and takes nothing more, also after a restart, whether or not
// anything came; a report beyond MaxReports counts nowhere; nor does one that is late, or of a retracted decision.
func TestTotalsEnd(t *testing.T) {
	for _, came := range []bool{false, true} {
		l, k, cfg := addable(t, AddUp, false)
		if came {
			_, _ = l.Add(k, 1, 2, nil, 1)
		}
		was := worthOf(l, k)
		l.Seal(k.Arm, k.Number)
		l.Seal(k.Arm, k.Number+1) // of nobody
		l.Seal(7, 0)
		cfg.Policy, cfg.Epoch = asks(9), Epoch{2}
		again, err := Restore(cfg, each(nil), l.State())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []*Live{l, again} {
			if s, err := one.Add(k, 2, -2, []float64{1}, 1); s != Accepted || err != nil || worthOf(one, k) != was {
				t.Errorf("came %v: %v, %v, worth %v, was %v", came, s, err, worthOf(one, k), was)
			}
			if text, _ := json.Marshal(one.State()); strings.Contains(string(text), "Names") {
				t.Errorf("a sealed decision is kept: %s", text)
			}
		}
	}
	l, k, _ := addable(t, CountUp, true)
	for i := range MaxReports + 50 {
		if s, err := l.Add(k, uint64(i+1), 1, nil, 9); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
	if n := len(l.s.Arms[0].Segments[0].Totals[0].Names); n != MaxReports {
		t.Errorf("%d reports count", n)
	}
	if s, _ := l.Add(k, 5000, 1, nil, 10); s != Late {
		t.Errorf("a late report is %v", s)
	}
	l, k, _ = addable(t, TakeMost, false)
	_, _ = l.Withdraw(k, 1)
	if s, _ := l.Add(k, 1, 3, nil, 2); s != Accepted || l.s.Arms[0].Segments[0].Sum != 0 {
		t.Error("a report of a retracted decision counts")
	}
}

// A decision counts of one number at most what it counts of the one that it is held to, whatever the order of its
// reports, where all of them count and where the first does; so does one of which nothing comes. A copy that holds each
// report to that by itself depends on the order.
func TestRatiosHold(t *testing.T) {
	src := rand.New(rand.NewPCG(5, 6))
	declared := func(how Aggregate, missing float64) (*Live, error) {
		return New(Config{Policy: asks(9), Arms: 1, Default: missing, Aggregate: how, Window: 10, Epoch: Epoch{1},
			Metrics: []Metric{{Name: "orders", Hi: 4, Default: 2, Aggregate: how, Mechanism: privacy.Laplace{Scale: 1}}},
			Ratios:  []Ratio{{Of: 0, Per: 1}}})
	}
	if _, err := declared(First, 0.75); err == nil || !strings.Contains(err.Error(), "a default above its share") {
		t.Errorf("a default of three quarters for a half: %v", err)
	}
	begin := func(how Aggregate) (*Live, Ticket) {
		l, err := declared(how, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Decide(Decision{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return l, k
	}
	apart := false // the copy
	for range 2000 {
		how := []Aggregate{First, AddUp, TakeMost}[src.IntN(3)]
		var all []said
		for i := range src.IntN(4) {
			all = append(all, said{uint64(i + 1), src.Float64(), float64(src.IntN(3))})
			if how != First && src.IntN(2) == 0 {
				all[i].metric = math.NaN()
			}
		}
		worth := func(each bool) [2]int64 {
			l, k := begin(how)
			for _, r := range all {
				if each {
					if math.IsNaN(r.metric) {
						r.reward = 0
					}
					r.reward = min(r.reward, r.metric/4)
				}
				if _, err := l.Add(k, r.name, r.reward, []float64{r.metric}, 1); err != nil {
					t.Fatal(err)
				}
			}
			return worthOf(l, k)
		}
		got, copied := worth(false), worth(true)
		if got[0] > got[1] || len(all) == 0 && got != [2]int64{oneStep / 2, oneStep / 2} {
			t.Fatalf("%s of %v counts %v", how, all, got)
		}
		if how == First {
			continue
		}
		src.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if again := worth(false); again != got {
			t.Fatalf("%s of %v counts %v, and in another order %v", how, all, again, got)
		}
		apart = apart || copied != got
	}
	if !apart {
		t.Error("a copy that holds each report is not caught")
	}
	for _, bad := range [][]Ratio{{{0, 0}}, {{0, 2}}, {{-1, 0}}, {{0, 1}, {1, 0}}} {
		_, err := New(Config{Policy: asks(9), Arms: 1, Window: 10, Epoch: Epoch{1}, Ratios: bad,
			Metrics: []Metric{{Name: "m", Mechanism: privacy.Laplace{Scale: 1}}}})
		if err == nil || !strings.Contains(err.Error(), "must be two of 2 sums") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Of numbers that are reported apart the first report of each counts, in any order and over a restart, and a
// state of another way to count is refused.
func TestApart(t *testing.T) {
	cfg := Config{Policy: asks(9), Arms: 2, Lo: -1, Hi: 3, Default: 0.5, Window: 10, Apart: true, Epoch: Epoch{1},
		Metrics: []Metric{{Name: "orders", Hi: 7, Default: 2, Mechanism: privacy.Laplace{Scale: 1}}}}
	none := math.NaN()
	for _, c := range []struct {
		all            []said
		reward, orders float64
	}{
		{nil, 0.5, 2}, {[]said{{0, 1, none}, {0, none, 3}}, 1, 3}, {[]said{{0, none, 3}, {0, 1, 4}, {0, 2, 5}}, 1, 3},
		{[]said{{0, none, 9}, {0, none, 1}}, 0.5, 7}, {[]said{{0, none, none}, {0, -1, none}}, -1, 2},
	} {
		cfg.Policy = asks(9)
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		k, err := l.Decide(Decision{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range c.all {
			if s, err := l.Add(k, r.name, r.reward, []float64{r.metric}, 1); s != Accepted || err != nil {
				t.Fatal(s, err)
			}
			if i > 0 {
				continue
			}
			again := cfg
			again.Policy, again.Epoch = asks(9), Epoch{2}
			if l, err = Restore(again, each(nil), l.State()); err != nil {
				t.Fatal(err)
			}
			again.Apart, again.Policy = false, asks(9)
			if _, err := Restore(again, each(nil), l.State()); !errors.Is(err, ErrState) {
				t.Errorf("another way to count: %v", err)
			}
		}
		want := [2]int64{int64((c.reward + 1) / 4 * (1 << 20)), int64(math.Round(c.orders / 7 * (1 << 20)))}
		if got := worthOf(l, k); got != want {
			t.Errorf("%v: %v, must be %v", c.all, got, want)
		}
	}
}
