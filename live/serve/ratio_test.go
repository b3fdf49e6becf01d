package serve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A constant is coins that always fall on one side.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// A split that is as decided is found so, whatever the policy plays and however many who were offered an
// arm do not meet it, as long as that does not go by the arm. Coins that ignore the floor, and activations
// that are lost with one arm, are found. All of it is the same after a restart.
func TestSampleRatio(t *testing.T) {
	testkit.RacedBefore(t)
	src := rand.New(rand.NewPCG(1, 2))
	half := func(string) bool { return src.IntN(2) == 0 }
	less := func(arm string) bool { return arm == "red" || half(arm) }
	for _, c := range []struct {
		name, more string
		met        func(arm string) bool // nil: all that are decided count
		twin       bool
		alarm      bool
	}{
		{"sound", "", nil, false, false},
		{"three arms", "three", nil, false, false},
		{"no floor in the coins", "", nil, true, true},
		{"activated", "exposure: activate", half, false, false},
		{"activated of three", "three\nexposure: activate", half, false, false},
		{"lost with one arm", "exposure: activate", less, false, true},
		{"lost with one arm of three", "three\nexposure: activate", less, false, true},
		{"not drawn", "floor: 0", nil, false, false},
		{"shares", "split", nil, false, false},
		{"shares that are not those of the coins", "split", nil, true, true},
		{"shares, activated", "split\nexposure: activate", half, false, false},
		{"shares, lost with one arm", "split\nexposure: activate", less, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: now.Now, random: rand.NewChaCha8([32]byte{9})}
			e := open(t, cfg)
			text := shop
			if rest, ok := strings.CutPrefix(c.more, "three"); ok {
				text, c.more = strings.Replace(text, "{name: red,", "green, {name: red,", 1), rest
			}
			if rest, ok := strings.CutPrefix(c.more, "split"); ok {
				text = strings.NewReplacer("{policy: dp-klucb, first: 20}", "split\nshares: {red: 0.3, blue: 0.7}",
					"floor: 0.1", "").Replace(text)
				c.more = rest
			}
			if c.more == "floor: 0" {
				text, c.more = strings.Replace(text, "floor: 0.1", c.more, 1), ""
			}
			begin(t, e, strings.Replace(text, "window: 1m", "window: 1m\n"+c.more, 1))
			said := func() *SampleRatio {
				info, err := e.Get(t.Context(), "shop")
				if err != nil {
					t.Fatal(err)
				}
				return info.SampleRatio()
			}
			if got := said(); got.Alarm || got.Evidence != 1 || len(got.Arms) > 0 {
				t.Errorf("before the first decision: %+v", got)
			}
			if c.twin {
				mustFind(t, e, "shop").coins = rand.New(constant(math.MaxUint64))
			}
			if _, err := e.Decide(t.Context(), "shop", "first"); err != nil {
				t.Fatal(err)
			}
			now.Add(time.Millisecond)
			alarmed := 0
			for i := range 6000 {
				d, err := e.Decide(t.Context(), "shop", fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				if c.met != nil && c.met(d.Name) {
					if _, err := e.Activate(t.Context(), "shop", d.Token, true); err != nil {
						t.Fatal(err)
					}
				}
				if got := said(); alarmed == 0 && got.Alarm {
					alarmed = i
				}
			}
			got := said()
			// Where all is well it is above 1e6 with probability 1e-6 at most.
			if got.Alarm != c.alarm || got.Alarm != (got.Evidence >= 1000) || !c.alarm && (alarmed > 0 || got.Evidence > 1e6) {
				t.Errorf("%+v, alarmed after %d decisions", got, alarmed)
			}
			t.Logf("alarmed after %d: %.3g: %s", alarmed, got.Evidence, got.Says)
			if err := e.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
			if again := said(); !reflect.DeepEqual(again, got) {
				t.Errorf("after a restart %+v, was %+v", again, got)
			}
		})
	}
}

// Terms that change leave what was drawn on others as it was: a floor, an arm that was taken off, and offers
// that were made before. A new hour keeps all of it.
func TestSampleRatioOfTerms(t *testing.T) {
	now, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: now.Now, random: rand.NewChaCha8([32]byte{9})}
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("{name: red,", "green, {name: red,", "dp-klucb, first: 20", "dp-imed",
		"floor: 0.1", "floor: 0.1\nexposure: activate\nactivate_within: 10m").Replace(shop))
	made := 0
	var offers []Decision
	offer := func(n int) {
		t.Helper()
		for range n {
			made++
			d, err := e.Decide(t.Context(), "shop", fmt.Sprint(made))
			if err != nil {
				t.Fatal(err)
			}
			offers = append(offers, d)
		}
	}
	activate := func() {
		t.Helper()
		for _, d := range offers {
			if _, err := e.Activate(t.Context(), "shop", d.Token, true); err != nil {
				t.Fatal(err)
			}
		}
		offers = nil
	}
	counts := func() (terms, n int) {
		t.Helper()
		info, err := e.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if r := info.SampleRatio(); r.Alarm {
			t.Errorf("%+v", r)
		}
		for _, c := range info.coins {
			for a := range c.drawn {
				n += c.drawn[a] + c.played[a]
			}
		}
		return len(info.coins), n
	}
	want := func(terms, n int) {
		t.Helper()
		if a, b := counts(); a != terms || b != n {
			t.Fatalf("%d decisions on %d terms, must be %d on %d", b, a, n, terms)
		}
	}
	offer(1)
	now.Add(time.Millisecond)
	offer(300)
	activate() // but the first
	want(1, 300)
	offer(50)
	floor := 0.5
	if err := e.Change(t.Context(), "shop", Change{Floor: &floor}); err != nil {
		t.Fatal(err)
	}
	settle(t, e, now, time.Second, 2)
	activate() // which were made on other terms
	want(1, 300)
	now.Add(time.Millisecond)
	offer(400)
	activate()
	want(2, 700)
	if err := e.TakeOff(t.Context(), "shop", "green"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, now, time.Second, 2)
	offer(1)
	now.Add(time.Millisecond)
	offer(200)
	activate()
	want(3, 900)
	now.Add(2 * time.Hour)
	offer(100)
	activate()
	want(3, 1000)
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	offer(7)
	e = open(t, cfg) // another process takes over; what was offered before is not looked at
	activate()
	want(3, 1000)
	now.Add(time.Millisecond)
	offer(11)
	activate()
	want(3, 1011)
}

// What is stored of coins is read back, and what is damaged is refused.
func TestCoinsAreStored(t *testing.T) {
	all := coins{{0.25, nil, []int{1, 2, 300}, []int{4, 5, 6}}, {0.5, []int{1}, []int{0, 0, 1}, []int{9, 0, 70000}}}
	text := all.append(nil)
	got, err := readCoins(text, 3)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("%v, %v, must be %v", got, err, all)
	}
	for cut := 1; cut < len(text); cut++ {
		if got, err := readCoins(text[:cut], 3); err == nil && len(got) != 1 {
			t.Errorf("%v is read of %d bytes", got, cut)
		}
	}
	text[0] = 0xff // its floor is no number
	if _, err := readCoins(text, 3); err == nil {
		t.Error("it is not found damaged")
	}
}
