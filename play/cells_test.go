package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// celledRun is of an A/B test with real noise whose cells have from 1 to 4 decisions of every eight, and a
// metric, to its end.
func celledRun(t *testing.T, curator func(release.Config) (release.Curator, error)) (lines [][]byte, l *Live) {
	t.Helper()
	cfg := celledConfig()
	cfg.Curator = curator
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		k, err := l.Decide(Decision{Arm: n % 2, Cell: []int{0, 0, 0, 1, 0, 1, 2, 3}[n%8]}, int64(n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.SettleAll(k, 1, []float64{0.5}, int64(n)); err != nil {
			t.Fatal(err)
		}
	}
	l.Finish()
	for {
		c, err := l.Close(1000)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			return lines, l
		}
		lines = append(lines, c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
}

type eights struct{ fours }

func (p *eights) Mechanism() privacy.Mechanism          { return privacy.Laplace{Scale: 2} }
func (p *eights) JointEnd(n int) int                    { return n + 8 }
func (p *eights) Next(r privacy.Released) *policy.Batch { return p.fours.Next(r) }

func celledConfig() Config {
	return Config{Policy: &eights{}, Arms: 2, Window: 100, Epoch: Epoch{1}, Cells: Cells{Count: 4, Least: 2},
		Metrics: []Metric{{Name: "basket", Mechanism: privacy.Laplace{Scale: 4}}}}
}

// A reward costs what it costs without cells, of either arm and of any cell; the total of an arm is the sum of
// its cells and of all their noises; and a replay finds this and takes no line of which it is not true.
func TestCells(t *testing.T) {
	lines, l := celledRun(t, nil)
	if got := l.Ledger().Total().Pure(); math.Abs(got-0.75) > 1e-6 {
		t.Errorf("a reward and its metric cost %v, must cost 0.75", got)
	}
	got, err := Replay(celledConfig(), each(lines))
	if err != nil {
		t.Fatal(err)
	}
	if total := got.Ledger.Total().Pure(); math.Abs(total-0.75) > 1e-6 || got.Lines != 5 {
		t.Errorf("a replay of %d lines finds %v", got.Lines, total)
	}
	// cell 2 has one decision of eight, and joins the last, which arm 0 has none of else
	for arm, want := range [][]int{{15, 0, 0, 5}, {5, 10, 0, 5}} {
		var n []int
		sum, metric, noises := 0.0, 0.0, 0
		for _, c := range got.Cells[arm] {
			n, sum, metric, noises = append(n, c.N), sum+c.Sum, metric+c.Metrics[0], noises+c.Releases
		}
		if !slices.Equal(n, want) || math.Abs(sum-got.Sums[arm]) > 1e-9 || math.Abs(metric-got.Metrics[0][arm]) > 1e-9 ||
			got.Released[arm] != 20 || got.Releases[arm] != 5 || noises != 5*(2+arm) {
			t.Errorf("arm %d: %v with %d noises, %+v", arm, n, noises, got)
		}
	}

	type text = map[string]any
	first := func(of text) text { return of["plays"].([]any)[0].(text) }
	for name, c := range map[string]struct {
		change func(line text)
		want   string
	}{
		"a cell with too few": {func(of text) { first(of)["cells"] = []int{0, 2} }, "releases cell 2 with 1 decisions"},
		"no cells":            {func(of text) { delete(first(of), "cells") }, "its cells are []"},
		"a total beside them": {func(of text) { first(of)["cells"] = []int{0, 3, 4} }, "its cells are [0 3 4]"},
		"one twice":           {func(of text) { first(of)["cells"] = []int{0, 0} }, "its cells are [0 0]"},
		"one is missing":      {func(of text) { first(of)["cells"] = []int{3} }, "releases 5 sums, and must release 4"},
	} {
		var line struct {
			Plays   json.RawMessage   `json:"plays"`
			Release json.RawMessage   `json:"release"`
			Metrics []json.RawMessage `json:"metrics"`
		}
		var plays []play
		if err := errors.Join(json.Unmarshal(lines[0], &line), json.Unmarshal(line.Plays, &plays)); err != nil {
			t.Fatal(err)
		}
		of := text{"plays": []any{text{}}}
		c.change(of)
		cells, _ := first(of)["cells"].([]int)
		plays[0].Cells = cells
		line.Plays, _ = json.Marshal(plays)
		bad, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Replay(celledConfig(), each([][]byte{bad})); !errors.Is(err, ErrState) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := celledConfig()
	plain.Cells = Cells{}
	if _, err := Replay(plain, each(lines)); !errors.Is(err, ErrState) {
		t.Errorf("they were released without cells: %v", err)
	}
}

// leaky releases the total of the arm beside its cells: what a hasty reader would build. It books what it does.
type leaky struct{ release.StepCurator }

func (c leaky) AddSteps(slot, n int, steps int64) error {
	return c.StepCurator.AddSteps(slot, n, steps)
}

func (c leaky) Release(slots []int) (privacy.Released, error) {
	r, err := c.StepCurator.Release(slots)
	if err != nil {
		return r, err
	}
	booked := c.Ledger().Entries()
	for _, e := range booked[len(booked)-len(slots):] {
		err = errors.Join(err, c.Ledger().Record(e.Slot, e.Mechanism))
	}
	return r, err
}

// A broken copy that releases totals beside cells, each at the whole ε, costs twice as much: the ledger says so, and
// under the declared cap it refuses.
func TestTotalBesideCells(t *testing.T) {
	broken := func(cfg release.Config) (release.Curator, error) {
		c, err := release.Real(cfg)
		if err != nil {
			return nil, err
		}
		return leaky{c.(release.StepCurator)}, nil
	}
	_, l := celledRun(t, broken)
	if got := l.Ledger().Total().Pure(); math.Abs(got-1.25) > 1e-6 {
		t.Errorf("with a total beside its cell a reward costs %v, must cost 1.25", got)
	}
	cfg := celledConfig()
	cfg.Curator, cfg.Ledger = broken, []privacy.Option{privacy.WithCap(privacy.Pure{Epsilon: 0.75})}
	capped, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		if _, err := capped.Decide(Decision{Arm: n % 2}, int64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := capped.Close(1000); c != nil || !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("under a cap: %v, %v", c, err)
	}
}

// A state has each decision in one cell.
func TestCellsOfStates(t *testing.T) {
	cfg := celledConfig()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Decide(Decision{Cell: 4}, 0); err == nil || !strings.Contains(err.Error(), "cell is 4") {
		t.Errorf("%v", err)
	}
	for n := range 5 {
		if _, err := l.Decide(Decision{Cell: n % 2}, 0); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Epoch = Epoch{2}
	for name, change := range map[string]func(s *Segment){
		"":                    func(*Segment) {},
		"without cells":       func(s *Segment) { s.Cells = nil },
		"with one in none":    func(s *Segment) { s.Cells[0][0] &^= 1 },
		"with one in two":     func(s *Segment) { s.Cells[1][0] |= 1 },
		"with one beyond":     func(s *Segment) { s.Cells[2] = Set{1 << 9} },
		"with an empty end":   func(s *Segment) { s.Cells[2] = Set{0} },
		"with sums of others": func(s *Segment) { s.More = make([]int64, 1) },
	} {
		s := l.State()
		change(&s.Arms[0].Segments[0])
		cfg.Policy = &eights{}
		if _, err := Restore(cfg, each(nil), s); (name == "") != (err == nil) || err != nil && !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []Cells{{Count: 1, Least: 1}, {Count: maxCells + 1, Least: 1}, {Count: 2}, {Least: 3}} {
		cfg.Cells = bad
		if _, err := New(cfg); err == nil || !bytes.Contains([]byte(err.Error()), []byte("cell")) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
