package play

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testneeds"
	"github.com/sotto-dp/sotto/policy"
)

// choice draws a number from 0 to n−1.
type choice func(n int, what string) int

// step does one random thing to a house.
func (h *house) step(pick choice) error {
	switch what := pick(12, "what"); what {
	case 0, 1, 2, 3:
		arm := h.live.Arm()
		if arm < 0 {
			return nil
		}
		if a := pick(h.cfg.Arms, "arm"); pick(8, "floor") == 0 && !h.live.s.Arms[a].Off {
			arm = a
		}
		return h.decide(arm)
	case 4, 5, 6:
		if len(h.tickets) == 0 {
			return nil
		}
		back := pick(min(len(h.tickets), 40), "back")
		t := h.tickets[len(h.tickets)-1-back]
		if pick(10, "withdraw") == 9 {
			return h.withdraw(t)
		}
		reward := []float64{0, 1, 0.25, -3, 7, math.NaN(), math.Inf(1)}[pick(7, "reward")]
		return h.settle(t, reward)
	case 7:
		if err := h.write(); err != nil {
			return err
		}
		if pick(4, "crash") == 0 {
			return h.crash()
		}
	case 8:
		if pick(6, "crash") == 0 {
			return h.crash()
		}
		if pick(60, "off") == 59 {
			return h.takeOff(pick(h.cfg.Arms, "arm"), pick(places, "place"))
		}
		if pick(60, "note") == 59 {
			return h.note(pick(places, "place"))
		}
	case 9, 10:
		h.now += int64(pick(6, "time"))
		if far := int64(pick(400, "far") - 200); pick(60, "jump") == 59 && (far > 0 || !h.cfg.Drop) {
			h.now += far // clocks go back, too
		}
		return h.close(pick(places, "place"))
	case 11:
		h.now++
		for range 8 { // whatever is due
			if err := h.close(nowhere); err != nil {
				return err
			}
		}
	}
	return nil
}

// play does so many random things. A panic of the watched policy is an error.
func (h *house) play(steps int, pick choice) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok || !errors.Is(e, errCaught) {
				panic(r)
			}
			err = e
		}
	}()
	for i := range steps {
		if err := h.step(pick); err != nil && !errors.Is(err, ErrStopped) {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func houseConfig(arms int) Config { return Config{Arms: arms, Default: 0.25, Window: 30, Cut: 3} }

// Whatever happens in whatever order, with crashes at every point: each accepted reward is in
// exactly one release, whose count is that of its decisions and whose sum that of accepted rewards
// and defaults, and which is handed out once.
func TestLiveIsTheModel(t *testing.T) {
	for name, p := range policies(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				h, err := newHouse(none, p, houseConfig(armsOf(p())), rapid.Uint64().Draw(t, "seed"))
				if err != nil {
					t.Fatal(err)
				}
				if err := h.play(rapid.IntRange(1, 200).Draw(t, "steps"), func(n int, what string) int {
					return rapid.IntRange(0, n-1).Draw(t, what)
				}); err != nil {
					t.Fatal(err)
				}
			})
			longer(t, p, 0, false, false)
		})
	}
}

// longer plays more steps than rapid draws.
func longer(t *testing.T, p func() policy.Policy, take Take, drop, metric bool) {
	lines, gone, cut, seeds := 0, 0, 0, testneeds.Size(8, 20)
	for seed := range uint64(seeds) {
		src := rand.New(rand.NewPCG(seed, 1))
		cfg := houseConfig(armsOf(p()))
		cfg.Take, cfg.Drop = take, drop
		if metric {
			cfg = withMetric(cfg)
		}
		h, err := newHouse(none, p, cfg, seed)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.play(1500, func(n int, _ string) int { return src.IntN(n) }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		lines, cut = lines+len(h.lines), cut+h.cut
		gone += bytes.Count(bytes.Join(h.lines, nil), []byte(`"gone"`))
	}
	if take == AtLeast && gone < seeds {
		t.Errorf("%d releases in all of what does not all count: nothing was tested", gone)
	}
	if take == AtLeast && cut == 0 {
		t.Error("no sum was cut to its count: nothing was tested")
	}
	if lines < 3*seeds {
		t.Errorf("%d batches in all: nothing was tested", lines)
	}
}

// At least, too, where a policy may have it either way.
func TestLiveIsTheModelAtLeast(t *testing.T) {
	longer(t, policies(t)["dp-klucb"], AtLeast, false, false)
}

// Where rewards that do not come are dropped, releases are of those that came.
func TestLiveIsTheModelDrop(t *testing.T) { longer(t, policies(t)["dp-klucb"], AtLeast, true, false) }

// A metric is released with the rewards, of the same decisions, as it was reported first.
func TestLiveIsTheModelMetric(t *testing.T) {
	testneeds.OneGoroutine(t)
	longer(t, policies(t)["dp-klucb"], AtLeast, false, true)
	longer(t, policies(t)["lazy-dp-ts"], 0, false, true)
	longer(t, policies(t)["dp-klucb"], AtLeast, true, true)
}

// Each broken twin is found by the same play, within a few seeds, by the model or by the machine
// itself, which survives them all when it is whole.
func TestBrokenTwinsAreCaught(t *testing.T) {
	p := policies(t)["dp-klucb"]
	for f, name := range map[fault]string{none: "none", countsTwice: "counts twice",
		countsCame: "counts what came", closesEarly: "closes early",
		handsOut: "hands out", drawsAgain: "draws again", sameEpoch: "same epoch",
		countsLate: "counts late", keepsSegment: "keeps the segment",
		heedsRewards: "heeds rewards", countsGone: "counts who is gone",
		metricTwice: "counts a metric twice", takesOthers: "takes others' rewards out"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				src := rand.New(rand.NewPCG(seed, 2))
				cfg := houseConfig(3)
				if f == metricTwice {
					cfg = withMetric(cfg)
				}
				if f == heedsRewards || f == countsGone || f == takesOthers {
					cfg.Take = AtLeast
				}
				if f == countsCame {
					cfg.Default = 0 // so that its sums are possible ones
				}
				h, err := newHouse(f, p, cfg, seed)
				if err != nil {
					t.Fatal(err)
				}
				err = h.play(1500, func(n int, _ string) int { return src.IntN(n) })
				if f == none && err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if f == none || err == nil {
					continue
				}
				t.Logf("seed %d: %v", seed, err)
				return
			}
			if f != none {
				t.Error("not caught")
			}
		})
	}
}

// A crash at each step of the same traffic, and at each place of each release, changes nothing that
// is promised.
func TestCrashAtEveryInstant(t *testing.T) {
	const steps = 120
	every := testneeds.Size(5, 1) // prime to places
	traffic := func(crash int) func(h *house, i int) error {
		return func(h *house, i int) error {
			h.now++
			var err error
			if arm := h.live.Arm(); arm >= 0 {
				err = h.decide(arm)
			}
			if n := len(h.tickets); err == nil && n > 3 {
				err = h.settle(h.tickets[n-1-i%3], float64(i%2))
			}
			if err == nil && i%7 == 0 {
				err = h.write()
			}
			place := nowhere
			if i == crash/places {
				place = crash % places
			}
			if err == nil {
				err = h.close(place)
			}
			if err == nil && place == nowhere && i == crash/places {
				err = h.crash()
			}
			return err
		}
	}
	for name, p := range policies(t) {
		whole := 0
		for crash := 0; crash < steps*places; crash += every {
			cfg := houseConfig(armsOf(p()))
			cfg.Window = 8
			h, err := newHouse(none, p, cfg, 5)
			if err != nil {
				t.Fatal(err)
			}
			step := traffic(crash)
			for i := range steps {
				if err := step(h, i); err != nil {
					t.Fatalf("%s: a crash at step %d, place %d: step %d: %v", name, crash/places,
						crash%places, i, err)
				}
			}
			whole = max(whole, len(h.lines))
		}
		if whole < 4 {
			t.Errorf("%s: %d batches: nothing was tested", name, whole)
		}
	}
}
