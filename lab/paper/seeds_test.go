package paper

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// coin is a claim that hangs on its seed: heads, whatever the interval would say.
func coin(seed uint64) float64 { return rand.New(rand.NewPCG(seed, 1)).Float64() }

func seedFigures() []Figure {
	figures := testFigures()[:1]
	return append(figures, Figure{
		ID: "thesis-9.3", Source: "000", Where: "Theorem 9.3", Title: "A coin",
		Compute: func(_ context.Context, _ Preset, n *Numbers) {
			n.set("coin", coin(n.seed(7)))
			n.set("pi", 3.14)
		},
		Claims: []Claim{
			{ID: "coin", Text: "Heads", Decide: judged("coin", func(x float64) (float64, bool, string) {
				return x, x < 0.5, ""
			})},
			{ID: "own", Text: "Heads again", Own: true, Decide: judged("coin",
				func(x float64) (float64, bool, string) { return x, x < 0.25, "" })},
			{ID: "pi", Text: "π is above 3", Decide: judged("pi", func(x float64) (float64, bool, string) {
				return x, x > 3, ""
			})},
		},
	})
}

// Verdicts that move are counted, claims that are exact are not among them, and a replay that was
// stopped goes on to the same file.
func TestSeeds(t *testing.T) {
	const seeds = 6
	dir := t.TempDir() + "/whole"
	r, err := reproduce(t, t.Context(), dir, seedFigures(), Options{Seeds: seeds})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Replayed{}
	for _, x := range r.Replays {
		got[x.ID] = x
	}
	moved := func(below float64) (n int) {
		for k := 1; k <= seeds; k++ {
			if (coin(7+uint64(k)<<32) < below) != (coin(7) < below) {
				n++
			}
		}
		return n
	}
	if moved(0.5) == 0 || moved(0.5) == seeds {
		t.Fatal("the coins show nothing: choose another seed")
	}
	for id, want := range map[string]int{"thesis-9.3/coin": moved(0.5), "thesis-9.3/own": moved(0.25),
		"thesis-9.10/dearer": 0, "thesis-9.10/dearer-by-far": 0} {
		if x, ok := got[id]; !ok || x.Seeds != seeds || x.Moved != want {
			t.Errorf("%s: %+v, want %d of %d moved", id, x, want, seeds)
		}
	}
	for _, id := range []string{"thesis-9.3/pi", "thesis-9.10/open", "thesis-9.10/broken"} {
		if x, ok := got[id]; ok {
			t.Errorf("%s hangs on no seed: %+v", id, x)
		}
	}
	want := read(t, dir, seedsFile)
	back, err := ReadSeeds(strings.NewReader(want))
	if err != nil || len(back) != len(r.Replays) {
		t.Errorf("read back: %d claims, %v", len(back), err)
	}

	ctx, stop := context.WithCancel(t.Context())
	dir = t.TempDir() + "/stopped"
	o := Options{Seeds: seeds, Progress: func(e Event) {
		if e.Replay == 2 {
			stop()
		}
	}}
	if _, err := reproduce(t, ctx, dir, seedFigures(), o); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	if read(t, dir, seedsFile) == want {
		t.Fatal("it was not stopped")
	}
	if _, err := reproduce(t, t.Context(), dir, seedFigures(), Options{Seeds: seeds}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, seedsFile); got != want {
		t.Errorf("after a stop:\n%s\nwant\n%s", got, want)
	}
	// Figures that are not asked for again stay in the file.
	if _, err := reproduce(t, t.Context(), dir, seedFigures()[:1], Options{Seeds: 1}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, seedsFile); got != want {
		t.Errorf("after fewer figures and seeds:\n%s\nwant\n%s", got, want)
	}
}

// A policy that no claim looks at is not played again; one that a claim looks at is.
func TestDeciding(t *testing.T) {
	dir := t.TempDir() + "/out"
	figures := testFigures()[:1]
	compare := figures[0].Claims[0]
	figures[0].Claims = []Claim{compare, {ID: "one", Text: "One of them", Decide: func(e *Evidence) Finding {
		c := need(e.Cell("pair", "pair", "ucb", "none"))
		return Above(c.FinalRegret[0], 0, 2, 1, 1, "")
	}}}
	r, err := reproduce(t, t.Context(), dir, figures, Options{Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Results[0].Decides["pair"]; !slices.Equal(got, []string{"adap-ucb", "ucb"}) {
		t.Errorf("with both claims %q decide", got)
	}
	figures[0].Claims = figures[0].Claims[1:]
	if r, err = reproduce(t, t.Context(), dir, figures, Options{Seeds: 1}); err != nil {
		t.Fatal(err)
	}
	if got := r.Results[0].Decides["pair"]; !slices.Equal(got, []string{"ucb"}) {
		t.Errorf("with one claim %q decide", got)
	}
}

func TestReadSeedsRefuses(t *testing.T) {
	const head = "id,preset,found,seeds,moved,to\n"
	for _, text := range []string{"a,b\n", head + "x,paper,reproduces,0,0,\n",
		head + "x,paper,reproduces,2,3,not tested\n", head + "x,paper,reproduces,two,0,\n",
		head + "x,paper,reproduces,2,-1,\n"} {
		if _, err := ReadSeeds(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// The page has the rate that is recorded.
func TestSeedsOnPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reproduction.md")
	if err != nil {
		t.Fatal(err)
	}
	of, err := ReadSeeds(bytes.NewReader(recorded))
	if err != nil || len(of) == 0 {
		t.Fatalf("%d claims are recorded, %v", len(of), err)
	}
	for _, line := range seedsText(of, len(All())) {
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("reproduction.md does not say: %s", line)
		}
	}
	// One verdict more that moved is another page.
	of[0].Moved++
	if line := seedsText(of, len(All()))[0]; strings.Contains(string(page), line+"\n") {
		t.Errorf("reproduction.md says: %s", line)
	}
}
