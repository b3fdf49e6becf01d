package play

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// celled is a house whose decisions are in three cells.
func celled(build func() house) func() house {
	return func() house {
		h := build()
		h.cfg.Cells = Cells{Count: 3, Least: 2}
		return h
	}
}

// growing is a house to which arms are added.
func growing(build func() house) func() house {
	return func() house {
		h := build()
		h.grows = true
		return h
	}
}

// Whatever happens in whatever order, with crashes at every point: each accepted reward is in
// exactly one release, after the deadlines of all its decisions, whose count is that of its decisions
// and whose sums those of accepted rewards and defaults, and which is handed out once. A metric is
// released with the rewards, of the same decisions, as it was reported first, and where rewards that
// do not come are dropped, releases are of those that came. In the end the rest is released in the same
// way, of all arms, and no decision is left.
//
// With contexts segments end where det V says, and what is played follows from the lines alone. Under
// joint privacy batches end by count, each line has all records up to its batch and the noise of its
// nodes, each of which was drawn once, a restart later too, and it costs the budget. Noise is that of
// its law, but for one run in a million.
func TestLiveIsTheModel(t *testing.T) {
	of, whole := policies(t), t
	arms := func(name string, take Take, drop, metric bool) func() house {
		return func() house {
			cfg := houseConfig(armsOf(of[name]()))
			if cfg.Take, cfg.Drop = take, drop; metric {
				cfg = withMetric(cfg)
			}
			return ofArms(of[name], cfg)
		}
	}
	for name, c := range map[string]struct {
		build              func() house
		least, full, lines int // seeds, and lines of each on average
		rapid, sole        bool
	}{
		"dp-klucb":                  {build: arms("dp-klucb", 0, false, false), rapid: true},
		"adap-klucb":                {build: arms("adap-klucb", 0, false, false), rapid: true},
		"batch-se":                  {build: arms("batch-se", 0, false, false), rapid: true},
		"lazy-dp-ts":                {build: arms("lazy-dp-ts", 0, false, false), rapid: true},
		"dp-ts":                     {build: arms("dp-ts", 0, false, false), rapid: true},
		"dp-window-klucb":           {build: arms("dp-window-klucb", 0, false, false)},
		"at least":                  {build: arms("dp-klucb", AtLeast, false, false)},
		"drop":                      {build: arms("dp-klucb", AtLeast, true, false)},
		"joint":                     {build: arms("joint", Jointly, false, false), lines: 40, rapid: true},
		"joint, drop":               {build: arms("joint", Jointly, true, false), lines: 40},
		"joint, metric":             {build: arms("joint", Jointly, false, true), lines: 40, sole: true},
		"metric":                    {build: arms("dp-klucb", AtLeast, false, true), sole: true},
		"metric of lazy-dp-ts":      {build: arms("lazy-dp-ts", 0, false, true), sole: true},
		"metric, drop":              {build: arms("dp-klucb", AtLeast, true, true), sole: true},
		"cells":                     {build: celled(arms("dp-klucb", AtLeast, false, false)), rapid: true},
		"cells, exactly":            {build: celled(arms("adap-klucb", 0, false, false))},
		"cells, joint":              {build: celled(arms("joint", Jointly, false, false)), lines: 40},
		"cells, metric":             {build: celled(arms("dp-klucb", AtLeast, false, true)), sole: true},
		"cells, joint, metric":      {build: celled(arms("joint", Jointly, false, true)), lines: 40, sole: true},
		"an arm more":               {build: growing(arms("dp-klucb", 0, false, false)), rapid: true},
		"an arm more, dp-ts":        {build: growing(arms("dp-ts", 0, false, false))},
		"an arm more, drop":         {build: growing(arms("dp-klucb", AtLeast, true, false))},
		"an arm more, cells":        {build: growing(celled(arms("dp-klucb", AtLeast, false, true))), sole: true},
		"an arm more, joint":        {build: growing(arms("joining", Jointly, false, false)), lines: 40, rapid: true},
		"an arm more, joint, drop":  {build: growing(arms("joining", Jointly, true, false)), lines: 40},
		"an arm more, joint, cells": {build: growing(celled(arms("joining", Jointly, false, true))), lines: 40, sole: true},
		"contexts":                  {build: ofContexts, least: 3, full: 30, lines: 5, rapid: true},
		"contexts, joint privacy":   {build: ofClinic, least: 2, full: 20, lines: 15, rapid: true},
		"contexts, segments":        {build: ofSegments, least: 2, full: 20, lines: 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.rapid && !whole.Failed() {
				rapid.Check(t, func(t *rapid.T) {
					h, err := newHouse(none, c.build(), rapid.Uint64().Draw(t, "seed"))
					if err != nil {
						t.Fatal(err)
					}
					pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
					if err := h.play(rapid.IntRange(1, 200).Draw(t, "steps"), pick); err != nil {
						t.Fatal(err)
					}
					if err := h.stop(pick); err != nil {
						t.Fatal(err)
					}
				})
			}
			if c.sole {
				testkit.OneGoroutine(t)
			}
			if c.least == 0 {
				c.least, c.full, c.lines = 8, 20, max(3, c.lines)
			}
			longer(t, whole, c.build, testkit.Size(c.least, c.full), c.lines)
		})
	}
}

// longer plays more steps than rapid draws, as long as nothing of the whole test has failed.
func longer(t, whole *testing.T, build func() house, seeds, least int) {
	lines, gone, cut, early, rests, added, drops := 0, 0, 0, 0, 0, 0, build().cfg.Take != 0
	var noises []float64
	for seed := range uint64(seeds) {
		if whole.Failed() {
			return
		}
		h, err := run(none, build(), seed, 1500)
		if err == nil {
			err = h.stop(seeded(seed, 3))
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		lines, cut, early = lines+len(h.lines), cut+h.cut, early+h.early
		gone += bytes.Count(bytes.Join(h.lines, nil), []byte(`"gone"`))
		rests += bytes.Count(bytes.Join(h.lines, nil), []byte(`{"rest":[`))
		noises = append(noises, h.noises...)
		added += len(h.live.s.Arms) - h.cfg.Arms
	}
	if build().grows && added < 2*seeds {
		t.Errorf("%d arms were added: nothing was tested", added)
	}
	if drops && gone < seeds {
		t.Errorf("%d releases in all of what does not all count: nothing was tested", gone)
	}
	if drops && cut == 0 {
		t.Error("no sum was cut to its count: nothing was tested")
	}
	if g, ok := build().game.(*armsGame); ok {
		if _, scheduled := g.policy().(Exact); scheduled && (early == 0) != build().cfg.Drop {
			t.Errorf("%d releases were ahead", early)
		}
	}
	if h := build(); h.cfg.Arms > 0 && rests < seeds/2 {
		t.Errorf("the rest was released %d times: nothing was tested", rests)
	}
	if lines < least*seeds {
		t.Errorf("%d batches in all: nothing was tested", lines)
	}
	if len(noises) > 0 && !loud(noises) {
		t.Errorf("%d noises are not those that are charged", len(noises))
	}
}

// Each broken twin is found by the same play, within a few seeds, by the model, by the machine
// itself, which survives them all when it is whole, or by its noise.
func TestBrokenTwinsAreCaught(t *testing.T) {
	p := policies(t)["dp-klucb"]
	plain := func() house { return ofArms(p, houseConfig(3)) }
	for name, c := range map[string]struct {
		f     fault
		build func() house
		seeds uint64
		loud  bool // its noise is not that of its law
	}{
		"none":        {none, plain, 60, false},
		"hands out":   {handsOut, plain, 60, false},
		"draws again": {drawsAgain, plain, 60, false},

		"contexts: hands out":               {handsOut, ofContexts, 20, false},
		"contexts: draws again":             {drawsAgain, ofContexts, 20, false},
		"contexts: a weight is not clipped": {unclipped, ofContexts, 20, false},
		"contexts: looks ahead":             {looksAhead, ofContexts, 20, false},
		"contexts: half the noise":          {halfNoise, ofContexts, 3, true},

		"joint: half the noise":            {halfNoise, ofClinic, 2, true},
		"joint: noise drawn again":         {redraws, ofClinic, 2, true},
		"joint: its state put back a line": {keptBack, ofClinic, 2, true},
		"joint: a record in two leaves":    {twoLeaves, ofClinic, 2, true},
		"segments: half the noise":         {halfNoise, ofSegments, 2, true},
		"segments: the tree's drawn again": {redraws, ofSegments, 2, true},
		"segments: the tree's put back":    {keptBack, ofSegments, 2, true},
		"segments: a record in two":        {twoLeaves, ofSegments, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var noises []float64
			for seed := range c.seeds {
				h, err := run(c.f, c.build(), seed, 1500)
				if c.f == none && err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
				noises = append(noises, h.noises...)
			}
			if c.f != none && !(c.loud && len(noises) >= 200 && !loud(noises)) {
				t.Errorf("not caught, by %d noises", len(noises))
			}
		})
	}
}

// A rule without noise is seen.
func TestSilentRuleIsCaught(t *testing.T) {
	h, err := run(silentRule, ofContexts(), 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range h.quiet {
		if math.Abs(x) > 1e-6 {
			t.Fatal("the twin is not one")
		}
	}
	whole, err := run(none, ofContexts(), 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	still := 0
	for _, x := range whole.quiet {
		if math.Abs(x) < 1e-4 { // of Lap(5) and N(0,9) with probability below 3e-5 each
			still++
		}
	}
	if len(whole.quiet) < 20 || still > 2 {
		t.Errorf("%d of %d sums of rules have no noise", still, len(whole.quiet))
	}
}
