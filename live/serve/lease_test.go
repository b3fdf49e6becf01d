package serve

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// leased are shops whose clients decide by plans.
func leasedShop(text string) string {
	return strings.Replace(text, "default: 0}", "default: 0, event: checkout}", 1) + "leases: {for: 20s, delay: 30s}\n"
}

// expose has a unit exposed to the arm that a plan gives it.
func expose(t testing.TB, e *Engine, p lease.Plan, unit string) (arm string) {
	t.Helper()
	arm = p.Arms[p.Decide(unit)].Arm
	if err := e.Expose(t.Context(), []Exposure{{p.Experiment, unit, p.Epoch, arm, ""}}, nil); err != nil {
		t.Fatal(err)
	}
	return arm
}

func planOf(t testing.TB, e *Engine) lease.Plan {
	t.Helper()
	p, _, err := e.Plan(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is released of leased decisions is what an independent reading of the rules makes of the exposures: the first
// of a unit, if its plan allows the arm and its time has not passed, whatever events come before or after, over
// restarts and kills, which lose nothing that was answered. Plans stay what they were.
func TestLeases(t *testing.T) {
	for kind, text := range map[string]string{"one arm at a time": shop, "split": splitShop,
		"drawing": strings.Replace(shop, "dp-klucb, first: 20", "dp-ts, first: 12", 1)} {
		for seed := range testkit.Size(uint64(1), 5) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) { leases(t, leasedShop(text), seed) })
		}
	}
}

func leases(t *testing.T, text string, seed uint64) {
	c, disk, sums := newClock(), store.NewMemory(), newSums()
	cfg := Config{Store: disk.Open, Clock: c.Now, Curator: silent(sums.tell)}
	e := open(t, cfg)
	begin(t, e, text)
	settle(t, e, c, time.Second, 1)
	src := rand.New(rand.NewPCG(seed, 34))
	plans, ends := map[uint64]lease.Plan{}, map[uint64]time.Time{}
	var all []*bought
	units := map[string]*bought{}
	durable, forged, late, asked := 0, 0, 0, 0
	made := func(unit string, arm int) {
		d := &bought{unit: unit, arm: arm, made: c.Now(), deadline: c.Now().Add(time.Minute), ids: map[string]bool{}}
		all, units[unit] = append(all, d), d
	}
	plan := func() lease.Plan {
		p := planOf(t, e)
		if p.Reason != "" {
			t.Fatalf("it gives %+v", p)
		}
		if was, ok := plans[p.Epoch]; ok && fmt.Sprint(was) != fmt.Sprint(p) {
			t.Fatalf("plan %d is\n%+v, was\n%+v", p.Epoch, p, was)
		}
		plans[p.Epoch], ends[p.Epoch] = p, p.Until.Add(30*time.Second)
		return p
	}
	for round := range 700 {
		if round%50 == 35 { // it has no time to write
			e.stop()
			<-e.done
			e, all, units = open(t, cfg), all[:durable], map[string]*bought{}
			for _, d := range all {
				units[d.unit] = d
			}
			plan()
		}
		settle(t, e, c, time.Duration(src.IntN(12)/10)*time.Second, 1)
		if round%100 == 70 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
			plan()
		}
		durable = len(all)
		p, unit := plan(), fmt.Sprint(src.IntN(400))
		switch src.IntN(8) {
		case 0:
			d, err := e.Decide(t.Context(), "shop", unit)
			if err != nil {
				t.Fatal(err)
			}
			if was := units[unit]; was != nil {
				if d.Arm != was.arm {
					t.Fatalf("unit %s is given arm %d, and had %d", unit, d.Arm, was.arm)
				}
				continue
			}
			asked++
			made(unit, d.Arm)
		case 1, 2, 3, 4:
			q := plans[1+src.Uint64N(uint64(len(plans)))]
			if src.IntN(2) == 0 {
				q = p
			}
			v := Exposure{Experiment: "shop", Unit: unit, Epoch: q.Epoch}
			arm := q.Decide(unit)
			if src.IntN(4) == 0 {
				v.Hash = lease.GrowthBook
				arm = q.DecideBy(v.Hash, unit)
			}
			ok := units[unit] == nil && c.Now().Before(ends[q.Epoch])
			if units[unit] == nil && !ok {
				late++
			}
			switch src.IntN(6) {
			case 0: // another arm
				arm, ok = 1-arm, false
				forged++
			case 1: // an epoch that never was, or another's
				v.Epoch = q.Epoch + 1 + src.Uint64N(3)
				other, there := plans[v.Epoch]
				ok = units[unit] == nil && there && other.DecideBy(v.Hash, unit) == arm && c.Now().Before(ends[v.Epoch])
			}
			v.Arm = q.Arms[arm].Arm
			if err := e.Expose(t.Context(), []Exposure{v, v}, nil); err != nil { // as who has had no answer
				t.Fatal(err)
			}
			if ok {
				made(unit, arm)
			}
			durable = len(all)
		default:
			v := Event{Unit: unit, Name: "checkout", Fields: map[string]float64{"value": float64(src.IntN(5)) / 4}}
			if err := e.Track(t.Context(), []Event{v}, nil); err != nil {
				t.Fatal(err)
			}
			if d := units[unit]; d != nil {
				d.take("one event", v, c.Now())
			}
		}
	}
	settle(t, e, c, time.Second, 70)
	stopped(t, e, c, "shop", "")
	if p := planOf(t, e); p.Reason != string(Static) || len(p.Arms) != 1 {
		t.Errorf("when it has stopped, it gives %+v", p)
	}
	before := len(all)
	expose(t, e, plans[uint64(len(plans))], "somebody")
	var n [2]int
	var want [2]int64
	some := 0
	for _, d := range all {
		n[d.arm]++
		want[d.arm] += int64(d.reward * (1 << 20))
		if d.has[0] {
			some++
		}
	}
	if some < 30 || forged < 10 || late < 3 || asked < 10 || before < 100 || len(plans) < 10 {
		t.Errorf("%d plans, %d decisions, %d asked for, %d events, %d forged, %d late", len(plans), before, asked, some, forged, late)
	}
	for a := range want {
		if sums.n[a] != n[a] || sums.steps[a] != want[a] {
			t.Errorf("arm %d: %d decisions, %d steps, must be %d, %d", a, sums.n[a], sums.steps[a], n[a], want[a])
		}
	}
}

// Two worlds: whatever a unit's events say, and whether there are any, exposures, plans and decisions are the same
// until its reward is released. A client that is exposed where its event comes is caught, and so is a service that
// counts the exposure of who is rewarded once more.
func TestTwoWorldsOfLeases(t *testing.T) {
	testkit.RacedBefore(t)
	texts := []string{leasedShop(shop), leasedShop(splitShop), leasedShop(shop) + growsThere, leasedShop(shop) + stopsThere}
	sayings := map[string][]saying{"1": {{3e9, 1}}, "at once": {{0, 1}}}
	if testkit.Full() {
		for name, hers := range map[string][]saying{"0": {{3e9, 0}}, "twice": {{3e9, 1}, {4e9, 1}}, "late": {{61e9, 1}},
			"out of range": {{1e9, 1e300}}} {
			sayings[name] = hers
		}
	}
	for _, text := range texts {
		twoWorlds(t, []string{text}, sayings, "duplicates", "exposes what pays", "exposes twice what pays")
	}
}

// Exposures and events are taken in the order in which they came, in whichever commits they are: an event that came
// before the exposure of its unit finds no decision. Who else reports changes the commits alone: in one world zoe's
// event is being written while ann's event and their exposure come.
func TestExposuresInOrder(t *testing.T) {
	for _, first := range []string{"event", "exposure"} {
		for _, together := range []bool{false, true} {
			var busy atomic.Bool
			held, let := make(chan struct{}), make(chan struct{})
			c, sums := newClock(), newSums()
			e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, Curator: silent(sums.tell), hook: func(at string) {
				if at == "before a commit" && busy.CompareAndSwap(true, false) {
					held <- struct{}{}
					<-let
				}
			}})
			begin(t, e, leasedShop(shop))
			settle(t, e, c, time.Second, 1)
			p := planOf(t, e)
			event := func(unit string) func() {
				return func() {
					v := Event{Name: "checkout", Unit: unit, Fields: map[string]float64{"value": 1}}
					if err := e.Track(t.Context(), []Event{v}, nil); err != nil {
						t.Error(err)
					}
				}
			}
			all := []func(){event("ann"), func() { expose(t, e, p, "ann") }}
			if first == "exposure" {
				slices.Reverse(all)
			}
			var group sync.WaitGroup
			if together {
				busy.Store(true)
				group.Go(event("zoe"))
				<-held
			}
			for i, f := range all {
				group.Go(f)
				if !together {
					group.Wait()
				}
				for waits := 0; together && waits <= i; time.Sleep(time.Millisecond) {
					e.queue.Lock()
					waits = len(e.queue.jobs)
					e.queue.Unlock()
				}
			}
			close(let)
			group.Wait()
			info, _ := e.Get(t.Context(), "shop")
			if n := info.Arms[0].Decisions + info.Arms[1].Decisions; n != 1 {
				t.Errorf("%s first, together %v: %d decisions", first, together, n)
			}
			stopped(t, e, c, "shop", "")
			want := int64(0)
			if first == "exposure" {
				want = 1 << 20
			}
			if steps := sums.steps[0] + sums.steps[1]; steps != want {
				t.Errorf("%s first, together %v: %d steps are released, must be %d", first, together, steps, want)
			}
		}
	}
}

// Where an arm joins an A/B test, decisions that are made after its row began have its shares, whichever plan a client
// still has: those of plans that were made before count no more. Else no decision of them would be of the new arm, and
// the test of two arms, and that of the sample ratio, would be of other coins than were tossed. A false alarm has a
// probability of 10⁻⁶ an arm.
func TestLeasedArmJoins(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, leasedShop(splitShop))
	settle(t, e, c, time.Second, 1)
	p, n := planOf(t, e), 0
	come := func(k int) {
		all := make([]Exposure, k)
		for i := range all {
			unit := fmt.Sprint("u", n)
			all[i] = Exposure{"shop", unit, p.Epoch, p.Arms[p.Decide(unit)].Arm, ""}
			n++
		}
		if err := e.Expose(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
	}
	made := func() (out []int) {
		info, _ := e.Get(t.Context(), "shop")
		for _, a := range info.Arms {
			out = append(out, a.Decisions)
		}
		return out
	}
	come(100)
	if err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: "green", Share: 0.4}}}); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 2)
	x := mustFind(t, e, "shop")
	for p = planOf(t, e); len(x.play.Shares()) < 3 || x.play.Shares()[2] == 0; { // the row goes on, with old shares
		if n > 20_000 {
			t.Fatal("the row of the new arm never begins")
		}
		come(20)
	}
	before := made()
	for range 20 { // in one tick, with the plan of before
		come(50)
	}
	if after := made(); !slices.Equal(before, after) || before[2] != 0 {
		t.Errorf("%v decisions, and with 1000 exposures by a plan of before %v", before, after)
	}
	settle(t, e, c, time.Second, 1)
	if p = planOf(t, e); len(p.Arms) != 3 || p.Arms[2].Buckets != 4000 {
		t.Errorf("the next plan is %+v", p)
	}
	come(1000)
	if after := made(); after[0]+after[1]+after[2] != before[0]+before[1]+1000 || after[2] < 300 {
		t.Errorf("%v decisions, were %v", after, before)
	}
	info, _ := e.Get(t.Context(), "shop")
	for _, of := range info.drawn() {
		if out := interval.Evidence(of); out > math.Log(1e6) {
			t.Errorf("evidence against the shares: %v, of %+v", out, of)
		}
	}
}

// Plans follow from ticks: another one comes at half of its time, when lines were shown, and at once when an arm comes
// or goes; each has its own salt, and the propensity of a decision is that of its plan. The exposure to an arm that was
// removed counts nowhere, and its unit can be assigned another.
func TestPlans(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	text := leasedShop(shop)
	x := parse(t, text)
	if err := e.Create(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if p := planOf(t, e); p.Reason != string(Disabled) || p.Arms[0].Arm != "red" {
		t.Errorf("of a draft: %+v", p)
	}
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	_, changed, err := e.Plan(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	select {
	case <-changed:
	default:
		t.Error("nobody is told that there is a plan")
	}
	first := planOf(t, e)
	if first.Epoch != 1 || first.Until.Sub(first.From) != 20*time.Second || first.Arms[0].Buckets+first.Arms[1].Buckets != 10000 ||
		first.Arms[1].Buckets != 5000 || string(first.Arms[0].Value) != `"#c00"` {
		t.Errorf("%+v", first)
	}
	settle(t, e, c, time.Second, 9)
	if p := planOf(t, e); fmt.Sprint(p) != fmt.Sprint(first) {
		t.Errorf("before half of its time: %+v", p)
	}
	settle(t, e, c, time.Second, 1)
	second := planOf(t, e)
	if second.Epoch != 2 || second.Salt == first.Salt || second.Arms[1].Buckets != 5000 {
		t.Errorf("after half of its time: %+v", second)
	}
	names := map[string]string{} // by arm, somebody whom the plan gives it
	for i := 0; len(names) < 2; i++ {
		unit := fmt.Sprint("u", i)
		names[second.Arms[second.Decide(unit)].Arm] = unit
	}
	expose(t, e, second, names["red"])
	d, err := e.Decide(t.Context(), "shop", names["red"])
	if err != nil || d.Name != "red" || d.Propensity != 0.5 {
		t.Errorf("%+v, %v", d, err)
	}
	if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	third := planOf(t, e)
	if third.Epoch != 3 || len(third.Arms) != 1 || third.Arms[0].Buckets != 10000 {
		t.Errorf("without an arm: %+v", third)
	}
	expose(t, e, second, names["blue"])
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions != 1 || info.Arms[1].Decisions != 0 {
		t.Errorf("%+v", info.Arms)
	}
	expose(t, e, third, names["blue"])
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions != 2 {
		t.Errorf("%+v", info.Arms)
	}
	if err := e.Change(t.Context(), "shop", Change{Add: []Added{{Name: "green"}}}); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 2)
	fourth := planOf(t, e)
	if fourth.Epoch != 4 || !slices.ContainsFunc(fourth.Arms, func(s lease.Share) bool { return s.Arm == "green" && s.Buckets >= 500 }) {
		t.Errorf("with an arm more: %+v", fourth)
	}
	if err := e.Pause(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if p := planOf(t, e); p.Reason != string(Disabled) || len(p.Arms) != 1 {
		t.Errorf("paused: %+v", p)
	}
	expose(t, e, fourth, "somebody else") // whose client has the plan
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions+info.Arms[2].Decisions != 3 {
		t.Errorf("%+v", info.Arms)
	}
	stopped(t, e, c, "shop", "")
	if _, err := Replay(strings.NewReader(strings.Join(transcript(t, e), "\n")+"\n"), catalog.Catalog{}); err != nil {
		t.Error(err)
	}
}

// What is wrong with an exposure is told of its form alone; and an experiment without leases has no plan.
func TestExposeRefuses(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	begin(t, e, shop)
	if _, _, err := e.Plan(t.Context(), "shop"); !errors.Is(err, ErrState) {
		t.Errorf("%v", err)
	}
	good := Exposure{Experiment: "shop", Unit: "ann", Epoch: 1, Arm: "red"}
	for want, change := range map[string]func(v *Exposure){
		"experiment: has 0 bytes":      func(v *Exposure) { v.Experiment = "" },
		"targetingKey: is missing":     func(v *Exposure) { v.Unit = "" },
		"targetingKey: has 4097 bytes": func(v *Exposure) { v.Unit = strings.Repeat("x", 4097) },
		"epoch: is 0":                  func(v *Exposure) { v.Epoch = 0 },
		"arm: has 257 bytes":           func(v *Exposure) { v.Arm = strings.Repeat("x", 257) },
		`hash: is "md5", must be`:      func(v *Exposure) { v.Hash = "md5" },
	} {
		v := good
		change(&v)
		of := &keyed.Error{}
		if err := e.Expose(t.Context(), []Exposure{good, v}, nil); !errors.As(err, &of) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err := e.Expose(t.Context(), []Exposure{good, {"nothing", "ann", 1, "red", ""}}, nil); err != nil {
		t.Error(err) // which tells nobody what there is
	}
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions != 0 {
		t.Errorf("%+v", info.Arms)
	}
}
