package serve

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// tallied is clinic by counts of words, without a horizon and without a policy's name but for its first segment.
var tallied = strings.NewReplacer(", length: {range: [0, 8]}", "", "actions: 8", "actions: 8\n  unknown: ignore",
	"lin-ucb, leaf: 10, greed: 1", "histogram-ts, first: 10", "horizon: 1000\n", "").Replace(clinic)

// Over restarts each line has the counts of its own segment, of every decision once, with noise of σ = √(1/1e5) in each
// bin, and nothing else of a vector; nothing of the curator's is kept, and the lines play again, model and all.
func TestCounted(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, tallied)
	var all []newsDecision
	const decisions = 190 // segments end after 10, 15, 23, 35, 53, 80, 120, 180
	for i := range decisions {
		settle(t, e, c, 100*time.Millisecond, 1)
		d := decideNews(t, e, newsAsk(i))
		sum := 0.0
		for _, a := range d.ranking.Ranked {
			sum += a.Probability
		}
		if math.Abs(sum-1) > 1e-9 || !(d.ranking.Propensity >= 0.05) {
			t.Fatalf("%+v", d.ranking)
		}
		if i%3 == 0 {
			for range 1 + i%2 { // the first counts
				if s, err := e.RewardEvent(t.Context(), "news", d.ranking.Event, 0.75); s != Accepted || err != nil {
					t.Fatal(s, err)
				}
			}
			d.steps = 3 << 18
		}
		if all = append(all, d); i%37 == 36 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
	}
	settle(t, e, c, time.Second, 12)
	info, err := e.Get(t.Context(), "news")
	if in := info.Contextual; err != nil || info.State != Running || in.Decisions != decisions || in.Released != 180 ||
		in.Releases != 8 || math.Abs(info.Spent.ZCDP()/1e5-1) > 1e-3 {
		t.Fatalf("%s, %s, %+v, %v, %v", info.State, info.Reason, in, info.Spent, err)
	}
	mapper, err := mustFind(t, e, "news").decl.Mapper()
	if err != nil {
		t.Fatal(err)
	}
	flat, err := mapper.Rows()
	if err != nil || len(flat) != 9*mapper.Dim() { // two devices and topics, each of which may be missing
		t.Fatal(len(flat), err)
	}
	at, lines := 0, newsTranscript(t, e)
	for _, line := range lines[1:] {
		var in struct {
			N       int
			Release struct {
				N, Slot int
				Vector  []float64
			}
		}
		if err := json.Unmarshal([]byte(line), &in); err != nil || in.N != in.Release.N {
			t.Fatal(line, err)
		}
		want := make([]float64, 2*9)
		for _, d := range all[at : at+in.N] {
			row := 0
			for !slices.Equal(flat[row*mapper.Dim():][:mapper.Dim()], d.vector) {
				row++
			}
			y := float64(d.steps) / (1 << 20)
			want[2*row] += 1 - y
			want[2*row+1] += y
		}
		at += in.N
		for i, x := range in.Release.Vector { // 8 standard deviations: a record more or less is a quarter at least
			if math.Abs(x-want[i]) > 8*math.Sqrt(1e-5)+8*16./(1<<20) {
				t.Errorf("after %d decisions bin %d has %v, must have %v", at, i, x, want[i])
			}
		}
		for _, word := range []string{`gram":[`, "weights", "phone", `"a1"`} {
			if strings.Contains(line, word) {
				t.Errorf("the transcript tells %s: %s", word, line)
			}
		}
	}
	r, err := Replay(strings.NewReader(strings.Join(lines, "\n")+"\n"), catalog.Catalog{})
	if err != nil || r.Contextual.Released != 180 || r.Spent.String() != info.Spent.String() {
		t.Fatalf("replayed: %+v, %v", r, err)
	}
	of, err := e.Model(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Model()
	if err != nil || !slices.Equal(of.Theta, again.Theta) {
		t.Errorf("the model is %v, and of the lines %v, %v", of.Theta, again, err)
	}
	for old, other := range map[string]string{`"n":12`: `"n":13`, `"slot":3`: `"slot":4`, `"sigma":0.00316`: `"sigma":0.00416`} {
		text := strings.Join(lines, "\n") + "\n"
		if bad := strings.Replace(text, old, other, 1); bad == text {
			t.Errorf("%s is in no line", old)
		} else if _, err := Replay(strings.NewReader(bad), catalog.Catalog{}); err == nil {
			t.Errorf("%s for %s is taken", other, old)
		}
	}
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := keptPlan(t, mem.Open); len(p.Kept) > 0 {
		t.Errorf("the plan has %d bytes of the curator's", len(p.Kept))
	}
}
