package serve

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A decision is in the cell of its context, for good and over restarts, whatever is reported: what is released of a
// cell is of its decisions, the total is what its cells add up to, and a replay finds all of it.
func TestCells(t *testing.T) {
	for _, c := range []struct{ policy, more string }{
		{"dp-klucb-j, first: 20", "floor: 0.3"}, {"split", "effect: 0.5"}, {"split", "effect: 0.5\nexposure: retract"},
	} {
		t.Run(c.policy+c.more, func(t *testing.T) {
			now := newClock()
			cfg := Config{Store: store.NewMemory().Open, Clock: now.Now}
			e := open(t, cfg)
			begin(t, e, "name: shop\narms: [red, blue]\npolicy: {policy: "+c.policy+"}\nbudget: {epsilon: 1}\n"+
				"unit: {of: visit}\nwindow: 1m\nmetrics: [{name: basket, range: [0, 50], budget: {epsilon: 0.5}}]\n"+
				"by: {device: [phone, 3, true]}\ncell_minimum: 5\n"+c.more+"\n")
			contexts := []map[string]any{{"device": "phone"}, {"device": 3.0}, {"device": true}, {"device": "tv"}, nil}
			released := 0
			for i := range 400 {
				if i == 150 {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = open(t, cfg)
				}
				d, err := e.DecideFor(t.Context(), "shop", Ask{Unit: fmt.Sprint(i), Context: contexts[i%5]})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
					t.Fatal(err)
				}
				settle(t, e, now, time.Second, 1)
			}
			if err := e.Stop(t.Context(), "shop", decl.KeepLeader); err != nil {
				t.Fatal(err)
			}
			settle(t, e, now, 2*time.Second, 100)
			info, err := e.Get(t.Context(), "shop")
			if err != nil || info.State != Stopped {
				t.Fatal(info.State, info.Reason, err)
			}
			n := make([]int, 4)
			for a, arm := range info.Arms {
				of, sum, noises, metric := 0, 0.0, 0, 0.0
				for c, cell := range info.Cells {
					n[c] += cell.Arms[a].Released
					of, sum, noises = of+cell.Arms[a].Released, sum+cell.Arms[a].Sum, noises+cell.Arms[a].Releases
					metric += cell.Metrics[0][a]
				}
				released += of
				if of != arm.Released || math.Abs(sum-arm.Sum) > 1e-9 || noises != arm.Releases ||
					math.Abs(metric-info.Metrics[0][a]) > 1e-9 || noises < len(info.Cells) {
					t.Errorf("arm %d is %+v, its cells have %d, %v with %d noises, and %v", a, arm, of, sum, noises, metric)
				}
			}
			// what was released of a cell is of its decisions; few of them are in the last one
			if n[0] > 80 || n[1] > 80 || n[2] > 80 || n[3] < 160 || released != 400 {
				t.Errorf("%v were released, of 80 decisions of each value and 160 of none", n)
			}
			if got := info.Spent.Pure(); math.Abs(got-1.5) > 1e-6 {
				t.Errorf("a decision costs %v, must cost 1.5", got)
			}
			by := info.ByCell()
			if by.By != "device" || by.Minimum != 5 || len(by.Each) != 8 || by.Each[0].Verdict == nil ||
				by.Each[1].Name != "basket" || by.Each[2].Cell != "3" || by.Each[6].Cell != decl.OtherCell {
				t.Errorf("%+v", by)
			}
			var text bytes.Buffer
			lines, err := e.Transcript(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			for line, err := range lines {
				if err != nil {
					t.Fatal(err)
				}
				text.Write(line)
			}
			again, err := Replay(&text, catalog.Catalog{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(fmt.Sprint(again.Spent), "1.5") || !reflect.DeepEqual(again.ByCell(), by) {
				t.Errorf("a replay finds %+v, must find %+v", again.ByCell(), by)
			}
		})
	}
}

// Intervals of cells share the risk; that of a cell against the first is what the two leave.
func TestByCell(t *testing.T) {
	x := parse(t, strings.Replace(with("by: {device: [phone, desktop]}\nfallback: red"), "dp-klucb,", "dp-klucb-j,", 1))
	cells := newCells(&x)
	for c := range cells {
		cells[c].Arms[0] = ArmInfo{Released: 3000, Releases: 4, Sum: 900}
		cells[c].Arms[1] = ArmInfo{Released: 3000, Releases: 4, Sum: 900 + 600*float64(c)}
	}
	arms := make([]ArmInfo, 2)
	got := measuredBy(&x, arms, cells)
	arms[1].Off = true // it leads nowhere, whatever was released of it
	if of := measuredBy(&x, arms, cells).Each[1].Verdict; of.Leader != "red" {
		t.Errorf("%s leads, and is off", of.Leader)
	}
	table := x.Table()
	table.Cells = 3
	for c, m := range got.Each {
		blue := m.Arms[1]
		want := table.Difference(cells[c].Arms[1].Sums(), cells[c].Arms[0].Sums())
		if !reflect.DeepEqual(blue.DifferenceInterval, want) || m.Arms[0].DifferenceInterval != nil {
			t.Errorf("%s: %+v, must be %v", m.Cell, blue, want)
		}
		if (blue.Apart == nil) != (c == 0) {
			t.Errorf("%s: %v", m.Cell, blue.Apart)
		}
		if word := map[int]interval.Word{0: interval.Ahead, 1: interval.Conclusive, 2: interval.Conclusive}[c]; m.Verdict.Word != word {
			t.Errorf("%s: %+v", m.Cell, m.Verdict)
		}
	}
	here, there := got.Each[1].Arms[1].DifferenceInterval, got.Each[0].Arms[1].DifferenceInterval
	if apart := got.Each[1].Arms[1].Apart; apart[0] != here[0]-there[1] || apart[1] != here[1]-there[0] || apart[0] <= 0 {
		t.Errorf("%v of %v and %v", apart, here, there)
	}
}
