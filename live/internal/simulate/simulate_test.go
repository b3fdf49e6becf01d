package simulate

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
)

var (
	simFrom  = flag.Uint64("simulate.from", 0, "the first world")
	simMost  = flag.Int("simulate.decisions", 0, "how many decisions there are at least; 0: as many as usual")
	simShard = flag.String("simulate.shard", "", "i/n: the worlds of one of n processes")
	simShort = flag.Bool("simulate.shrink", true, "shrink a failure to the shortest story")
	simStory = flag.Bool("simulate.story", false, "tell what happens")
)

// TestSimulate has worlds happen, in as many processes as there are processors, until there were as many
// decisions as are asked for. A world that breaks an invariant is told as a story, as short as it can be.
func TestSimulate(t *testing.T) {
	most := *simMost
	if most == 0 {
		most = testkit.Size(100_000, 1_000_000) // in which TestFindsFaults finds each fault; make simulate plays more
		if testkit.Race {
			most = 20_000
		}
	}
	if *simShard != "" {
		shard(t, most)
		return
	}
	n, within := runtime.NumCPU(), "0"
	if end, ok := t.Deadline(); ok { // none outlives this one
		within = time.Until(end).String()
	}
	start := time.Now()
	outs, errs := make([]string, n), make([]error, n)
	done := make(chan int)
	for i := range n {
		go func() {
			c := exec.Command(os.Args[0], "-test.run=^TestSimulate$", "-test.timeout="+within,
				fmt.Sprintf("-simulate.shard=%d/%d", i, n), fmt.Sprint("-simulate.decisions=", most/n),
				fmt.Sprint("-simulate.from=", *simFrom), fmt.Sprint("-simulate.story=", *simStory))
			c.Env = append(os.Environ(), "GOMAXPROCS=1")
			out, err := c.CombinedOutput()
			outs[i], errs[i] = string(out), err
			done <- i
		}()
	}
	var all counters
	worlds := 0
	for range n {
		i := <-done
		if errs[i] != nil {
			t.Errorf("%v\n%s", errs[i], outs[i])
		}
		var c counters
		w := 0
		for line := range strings.Lines(outs[i]) {
			if rest, ok := strings.CutPrefix(line, "counted "); ok {
				if _, err := fmt.Sscan(rest, &w, &c.decisions, &c.rewards, &c.accepted, &c.commits, &c.releases, &c.crashes,
					&c.requests, &c.simulated); err != nil {
					t.Fatal(err)
				}
			}
		}
		all.add(c)
		worlds += w
	}
	if all.decisions < most/n*n {
		t.Errorf("there were %d decisions, must be %d", all.decisions, most)
	}
	took := time.Since(start)
	t.Logf("%d worlds: %d decisions, %d rewards, %d of them accepted, %d commits, %d releases, %d requests over the "+
		"network, %d crashes and takeovers, in %v of simulated time and %v: %.0f decisions a second", worlds,
		all.decisions, all.rewards, all.accepted, all.commits, all.releases, all.requests, all.crashes,
		all.simulated.Round(time.Hour), took.Round(time.Second), float64(all.decisions)/took.Seconds())
}

// shard has the worlds of one process happen.
func shard(t *testing.T, most int) {
	var i, n uint64
	if _, err := fmt.Sscanf(*simShard, "%d/%d", &i, &n); err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world is small
	var all counters
	worlds := 0
	for seed := *simFrom + i; all.decisions < most; seed += n {
		s, ops := plan(seed)
		var r result
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var story func(string, ...any)
			if *simStory {
				story = tell
			}
			r = live(t, s, ops, story)
		})
		all.add(r.counters)
		worlds++
		if r.broken != nil || !ok {
			t.Errorf("after %d decisions, world %d, of kind %s: %v", all.decisions, seed, s.kind, r.broken)
			if *simShort {
				shrink(t, s, ops, r.broken)
			}
			break
		}
	}
	fmt.Println("counted", worlds, all.decisions, all.rewards, all.accepted, all.commits, all.releases, all.crashes,
		all.requests, int64(all.simulated))
}

func tell(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// shrink finds the shortest story that breaks the same invariant, and tells it.
func shrink(t *testing.T, s setting, ops []op, why *violation) {
	if why == nil {
		return
	}
	tries := 0
	fails := func(ops []op) (ok bool) {
		tries++
		t.Run(fmt.Sprint("try ", tries), func(t *testing.T) {
			r := live(t, s, ops, nil)
			ok = r.broken != nil && r.broken.of == why.of
		})
		return ok
	}
	until := time.Now().Add(time.Minute)
	for size := max(1, len(ops)/2); ; {
		shorter := false
		for at := 0; at < len(ops) && time.Now().Before(until); {
			less := append(append([]op{}, ops[:at]...), ops[min(at+size, len(ops)):]...)
			if fails(less) {
				ops, shorter = less, true
			} else {
				at += size
			}
		}
		if size == 1 && !shorter || time.Now().After(until) {
			break
		}
		size = max(1, size/2)
	}
	for i := range ops { // and fewer people
		for n := ops[i].n / 2; n >= 1 && time.Now().Before(until); n /= 2 {
			less := append([]op{}, ops...)
			if less[i].n = n; !fails(less) {
				break
			}
			ops = less
		}
	}
	t.Logf("the shortest story of world %d, of %d operations, in %d tries; again with make simulate FROM=%d:", s.seed,
		len(ops), tries, s.seed)
	t.Run("story", func(t *testing.T) { live(t, s, ops, tell) })
}

// One world in which all rewards are others shows the same, byte by byte, if nothing that is released has anything
// of a reward. There is one process at a time, and no client, whose pauses are drawn elsewhere. Under load the
// scheduler puts a goroutine off now and then, and a world differs from itself: so of those that differ each is
// played three times, and none of what the one shows may be what the other does.
func TestTwoWorlds(t *testing.T) {
	for seed := range testkit.Size[uint64](24, 100) {
		s, ops := plan(seed)
		if s.kind == "local" { // what people send is what is released
			continue
		}
		s.blind, s.alone, s.shared, s.parted, s.wire = true, true, false, false, false
		shows := func(others bool) (out result) {
			s.others = others
			t.Run(fmt.Sprint(seed, " others ", others), func(t *testing.T) { out = live(t, s, ops, nil) })
			if out.broken != nil {
				t.Errorf("world %d: %v", seed, out.broken)
			}
			return result{digest: out.digest, counters: out.counters}
		}
		var one, other []result
		same := func(r result) bool { return slices.Contains(other, r) }
		for tries := 0; tries < 3 && !slices.ContainsFunc(one, same); tries++ {
			one, other = append(one, shows(false)), append(other, shows(true))
		}
		if !slices.ContainsFunc(one, same) {
			t.Errorf("%s world %d, of kind %s, shows what rewards there were", blind, seed, s.kind)
		}
	}
}

// Whoever runs a service can read what holds of it. With -update the list of the page is written anew:
//
//	go test ./live/internal/simulate -run Documented -update
func TestInvariantsAreDocumented(t *testing.T) {
	const path, begin, end = "../../../docs/operations.md", "<!-- keys of invariants -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	is, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/operations.md has no place for the invariants")
	}
	want := "\n"
	for _, v := range invariants {
		want += "- " + string(v) + "\n"
	}
	if want += "\n"; *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != want {
		t.Error("docs/operations.md has not what holds: go test ./live/internal/simulate -run Documented -update")
	}
}
