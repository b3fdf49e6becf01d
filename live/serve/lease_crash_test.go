//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// leasedCrash is an experiment whose clients decide by plans, of which there are many.
const leasedCrash = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb, first: 10, alpha: 1.05}
budget: {epsilon: 1}
unit: {of: person}
reward: {range: [0, 1], default: 0, event: checkout}
window: 100ms
floor: 0.3
leases: {for: 1s, delay: 30s}
`

// TestCrashLeaseChild is the process that is killed. It says each plan that it has, and of each exposure that it is sent and
// that it was answered:
//
//	plan EPOCH PLAN
//	sent UNIT ARM
//	got UNIT
func TestCrashLeaseChild(t *testing.T) {
	e, _, start := openChild(t)
	start()
	say("ready")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for last := uint64(0); ; {
				p, _, err := e.Plan(t.Context(), "shop")
				if err != nil || p.Reason != "" {
					time.Sleep(time.Millisecond)
					continue
				}
				if p.Epoch != last {
					say("plan %d %v", p.Epoch, p)
					last = p.Epoch
				}
				unit := fmt.Sprint(rand.Uint64())
				v := Exposure{"shop", unit, p.Epoch, p.Arms[p.Decide(unit)].Arm, ""}
				say("sent %s %s", unit, v.Arm)
				for range 1 + rand.IntN(2) { // as who has had no answer
					if e.Expose(t.Context(), []Exposure{v}, nil) == nil {
						say("got %s", unit)
					}
				}
				_ = e.Track(t.Context(), []Event{{Name: "checkout", Unit: unit}}, nil)
			}
		})
	}
	group.Wait()
}

// A leaseWitness knows what all children were told.
type leaseWitness struct {
	plans, sent map[string]string
	got         map[string]bool
	faults      []string
}

func (w *leaseWitness) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *leaseWitness) life(t *testing.T, dir, fault, at string, wait time.Duration) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestCrashLeaseChild$")
	c.Env = append(os.Environ(), "SOTTO_CRASH_DIR="+dir, "SOTTO_CRASH_TWIN="+fault, "SOTTO_CRASH_AT="+at)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	slow := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
	defer slow.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		a, b, _ := strings.Cut(rest, " ")
		switch word {
		case "ready":
			time.AfterFunc(wait, func() { _ = c.Process.Kill() })
		case "plan":
			if was, ok := w.plans[a]; ok && was != b {
				w.fault("plan %s was shown as %s and as %s", a, was, b)
			}
			w.plans[a] = b
		case "sent":
			w.sent[a] = b
		case "got":
			w.got[a] = true
		}
	}
	_ = c.Wait() // it was killed
}

// crashLeases kills a child so often, half of the times at named points, and holds what is stored against what was told.
func crashLeases(t *testing.T, fault string, kills int) *leaseWitness {
	t.Helper()
	dir, w := t.TempDir(), &leaseWitness{plans: map[string]string{}, sent: map[string]string{}, got: map[string]bool{}}
	crashStore(t, store.SQLite(dir), leasedCrash)
	for i := range kills {
		at := ""
		if i%2 == 0 {
			at = fmt.Sprintf("%s:%d", []string{"before a commit", "after a commit", "after a release"}[i/2%3], 5+rand.IntN(30))
		}
		w.life(t, dir, fault, at, time.Duration(300+rand.IntN(500))*time.Millisecond)
	}
	c := clock.At(time.UnixMilli(1))
	e := open(t, quiet(store.SQLite(dir), c.Now))
	x := mustFind(t, e, "shop")
	n, numbers := 0, map[[2]int64]bool{}
	for unit, arm := range w.sent {
		k, err := x.event(unit)
		switch {
		case err != nil && w.got[unit]:
			w.fault("unit %s was answered, and is lost", unit)
		case err != nil:
			continue
		case x.decl.Arms[k.arm].Name != arm:
			w.fault("unit %s has arm %d, and was given %s", unit, k.arm, arm)
		case numbers[[2]int64{int64(k.arm), k.number}]:
			w.fault("decision %d of arm %d counts for two", k.number, k.arm)
		}
		n++
		numbers[[2]int64{int64(k.arm), k.number}] = true
	}
	info, err := e.Get(t.Context(), "shop")
	if err != nil || info.Arms[0].Decisions+info.Arms[1].Decisions != n {
		w.fault("%d and %d decisions, must be %d, %v", info.Arms[0].Decisions, info.Arms[1].Decisions, n, err)
	}
	info = stopped(t, e, c, "shop", "")
	if got := info.Arms[0].Released + info.Arms[1].Released; got != n {
		w.fault("%d decisions are released, must be %d", got, n)
	}
	return w
}

// However often the process is killed, an exposure that was answered is a decision, with the arm that its unit was given,
// once, and a plan that was shown is never another. A store that answers before it has written is found.
func TestCrashLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	w := crashLeases(t, "", (kills()+1)/2)
	for _, f := range w.faults {
		t.Error(f)
	}
	t.Logf("%d plans, %d exposures sent, %d answered", len(w.plans), len(w.sent), len(w.got))
	if len(w.plans) < 3 || len(w.got) < 50 {
		t.Errorf("%d plans, %d exposures answered: nothing was tried", len(w.plans), len(w.got))
	}
	for range 40 { // one is mostly enough; on a busy machine few of its kills fall between answer and write
		if w := crashLeases(t, "answers before the fsync", 3); len(w.faults) > 0 {
			t.Log(w.faults[0])
			return
		}
	}
	t.Error("a store that answers before it has written is not found")
}
