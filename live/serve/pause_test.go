//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A process that is stopped before or after a commit, taken over and woken up writes nothing any
// more and accepts no reward; what it decides is void; and it goes on to decide.
func TestPaused(t *testing.T) {
	t.Parallel()
	void := 0
	for _, at := range []string{"before a commit:40", "after a commit:40", "before a release:2",
		"after a release:2"} {
		t.Run(at, func(t *testing.T) { void += testPaused(t, at) })
	}
	// after a commit, all that waits for an answer may have been in it
	if void == 0 {
		t.Error("nothing was sent to a process that was taken over")
	}
}

// testPaused returns how many rewards were void which the process had when it was stopped.
func testPaused(t *testing.T, at string) (void int) {
	t.Helper()
	dir := t.TempDir()
	crashStore(t, store.SQLite(dir), crashShop)
	w := newWitness(crashShop)
	child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	child.Env = append(os.Environ(), "SOTTO_CRASH_DIR="+dir, "SOTTO_CRASH_TWIN=", "SOTTO_CRASH_AT="+at,
		"SOTTO_CRASH_STOPS=yes")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	var mu sync.Mutex
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			w.hear(lines.Text())
			mu.Unlock()
			if lines.Text() == "ready" {
				close(ready)
			}
		}
	}()
	<-ready
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil ||
		!status.Stopped() {
		t.Fatal(status, err)
	}
	c := clock.At(time.UnixMilli(1))
	e := open(t, Config{Clock: c.Now, Curator: knownNoise(func() int { return 0 }), Store: store.SQLite(dir)})
	defer func() { _ = e.Close() }()
	took := map[string]int64{}
	for i := range int64(50) {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 0.5}); s != Accepted || err != nil {
			t.Fatal(i, s, err)
		}
		took[d.Token] = 1 << 19
	}
	mu.Lock()
	before, sent := maps.Clone(w.got), len(w.sent)
	mu.Unlock()
	for _, s := range []syscall.Signal{syscall.SIGCONT, syscall.SIGKILL} {
		if err := child.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		asks := func() bool { // once it goes on, which takes longer on a busy machine
			mu.Lock()
			defer mu.Unlock()
			return len(w.sent) > sent && len(w.open()) > 0
		}
		for until := time.Now().Add(10 * time.Second); s == syscall.SIGCONT && !asks() && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	<-ended
	_ = child.Wait()
	if err := e.Sync(t.Context()); err != nil {
		t.Errorf("who took over cannot write any more: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	late := len(w.got) - len(before)
	for token, steps := range took {
		w.sent[token], w.got[token] = steps, string(Accepted)
	}
	unanswered := w.open()
	released := w.judge(t, dir)
	for _, text := range unanswered {
		token, _, _ := strings.Cut(text, " ")
		if w.got[token] == string(Void) {
			void++
		}
	}
	for _, f := range w.faults {
		t.Error(f)
	}
	counts := fmt.Sprintf("%d answers before, %d on their way, %d after, %d of those void, %d "+
		"released", len(before),
		late, len(unanswered), void, released)
	t.Log(counts)
	// four clients, and lines in the pipe
	if len(before) == 0 || len(unanswered) == 0 || released == 0 || late > 8 {
		t.Error(counts, slices.Sorted(maps.Keys(w.sums)))
	}
	return void
}
