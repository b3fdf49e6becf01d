package play

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// metricRun plays 16 lines with real noise and a metric of budget 1/4 that is what the reward is,
// with a restart after each, and gives what was written.
func metricRun(t *testing.T, limit float64, curator func(release.Config) (release.Curator, error)) (*Live, [][]byte, error) {
	t.Helper()
	var lines [][]byte
	start := func(epoch byte) Config {
		return Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Curator: curator, Epoch: Epoch{epoch},
			Metrics: []Metric{{Name: "basket", Mechanism: privacy.Laplace{Scale: 4}}},
			Ledger:  []privacy.Option{privacy.WithCap(privacy.Pure{Epsilon: limit})}}
	}
	l, err := New(start(1))
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(0); len(lines) < 16; now++ {
		k, err := l.Decide(Decision{Arm: l.Arm()}, now)
		if err == nil {
			_, err = l.SettleAll(k, float64(k.Number%2), []float64{float64(k.Number % 2)}, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Close(now)
		if err != nil {
			return l, lines, err
		}
		if c == nil {
			continue
		}
		lines = append(lines, c.Line)
		if l, err = Restore(start(byte(len(lines)+1)), each(lines), l.State()); err != nil {
			t.Fatal(err)
		}
	}
	return l, lines, nil
}

func each(lines [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// alike is in how many of the sums the noise of the reward is that of the metric, which have the same
// true sums: as a share of the scale.
func alike(t *testing.T, lines [][]byte) (same, all int) {
	t.Helper()
	for _, text := range lines {
		var in struct {
			Release struct{ Sum []float64 }
			Metrics []struct{ Sum []float64 }
		}
		if err := json.Unmarshal(text, &in); err != nil || len(in.Metrics) != min(1, len(in.Release.Sum)) {
			t.Fatalf("%s: %v", text, err)
		}
		for i, sum := range in.Release.Sum {
			all++
			// of one draw at scales 1 and 4: x and 4x beside a whole sum
			a, b := math.Mod(sum, 1), math.Mod(in.Metrics[0].Sum[i], 1)
			if math.Abs(math.Remainder(4*a-b, 1)) < 1e-5 {
				same++
			}
		}
	}
	return same, all
}

// A metric has noise of its own, and is paid for by the ledger of the rewards, in the same line, also
// after restarts; it is replayed.
func TestMetrics(t *testing.T) {
	l, lines, err := metricRun(t, 1.25, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Ledger().Total().Pure(); math.Abs(got-1.25) > 1e-6 {
		t.Errorf("a unit has lost %v, must be 1.25", got)
	}
	// One is alike by chance with a probability of 2e-5, two of 24 with one below 2e-7.
	if same, all := alike(t, lines); same > 1 || all < 14 {
		t.Errorf("%d of %d have the noise of the reward", same, all)
	}
	// a broken twin, whose curators draw from one stream, is found
	shared := func(c release.Config) (release.Curator, error) {
		s := noise.NewFast(1, 2)
		return release.Simulated(c, &s)
	}
	if _, lines, err := metricRun(t, 1.25, shared); err != nil {
		t.Error(err)
	} else if same, all := alike(t, lines); same < all/2 {
		t.Errorf("shared noise is not found: %d of %d", same, all)
	}
	// a cap that forgot the metric refuses it
	if _, lines, err := metricRun(t, 1, nil); !errors.Is(err, privacy.ErrBudget) || len(lines) > 0 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	cfg := Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5,
		Metrics: []Metric{{Name: "basket", Mechanism: privacy.Laplace{Scale: 4}}}}
	if r, err := Replay(cfg, each(lines)); err != nil || math.Abs(r.Ledger.Total().Pure()-1.25) > 1e-6 {
		t.Errorf("replayed: %+v, %v", r, err)
	}
	for name, bad := range map[string]func(string) string{
		"not paid for": func(s string) string { i := strings.Index(s, `,"metrics"`); return s[:i] + "}\n" },
		"of another slot": func(s string) string {
			i := strings.Index(s, `,"metrics"`)
			return s[:i] + strings.Replace(s[i:], `"slots":[0,`, `"slots":[7,`, 1)
		},
		"of another number": func(s string) string {
			i := strings.Index(s, `,"metrics"`)
			return s[:i] + strings.Replace(s[i:], `"n":[2,`, `"n":[3,`, 1)
		},
		"with less noise": func(s string) string { return strings.Replace(s, `"scale":4`, `"scale":2`, 1) },
	} {
		text := bad(string(lines[0]))
		if text == string(lines[0]) {
			t.Fatalf("%s: nothing was changed in %s", name, text)
		}
		cfg.Policy = policies(t)["dp-klucb"]()
		if _, err := Replay(cfg, each([][]byte{[]byte(text)})); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is wrong with a metric is said.
func TestMetricErrors(t *testing.T) {
	good := Metric{Name: "basket", Mechanism: privacy.Laplace{Scale: 4}}
	for want, change := range map[string]func(*Metric){
		"metrics[1]: name":                        func(*Metric) {},
		"metrics[1]: mechanism is":                func(m *Metric) { m.Mechanism = privacy.Tree{} },
		"metrics[1]: mechanism is <nil>":          func(m *Metric) { m.Mechanism = nil },
		"metrics[1]: default is 2":                func(m *Metric) { m.Name, m.Default = "x", 2 },
		"metrics[1]: default is NaN":              func(m *Metric) { m.Name, m.Default = "x", math.NaN() },
		"metrics[1]: ":                            func(m *Metric) { m.Lo, m.Hi = 2, 1 },
		"metrics[1]: name is \"\", must be one o": func(m *Metric) { m.Name = "" },
	} {
		bad := good
		change(&bad)
		if _, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{1},
			Metrics: []Metric{good, bad}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{1},
		Metrics: []Metric{good}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 5, Epoch: Epoch{2}},
		each(nil), l.State()); !errors.Is(err, ErrState) {
		t.Errorf("restored without its metric: %v", err)
	}
}
