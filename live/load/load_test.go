package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Every kind is measured, on a store of nobody's, and nothing of it is left in the directory.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	disk := store.NewMemory()
	var said []string
	var used atomic.Int64 // a millisecond each time that somebody looks
	cpu := func() time.Duration { return time.Duration(used.Add(1)) * time.Millisecond }
	cfg := Config{Store: disk.Open, Dir: dir, Clients: 7, Requests: 50,
		CPU: cpu, Progress: func(what string) { said = append(said, what) }}
	got, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got {
		each := 1.0
		if f.Name == "rewards, in hundreds" {
			each = perBatch
		}
		if f.Name != said[i] || f.Rate <= 0 || f.P99 < f.P50 || f.Requests < 5 ||
			math.Abs(f.CPU*each*float64(f.Requests)-1000) > 1e-6 {
			t.Errorf("%+v", f)
		}
	}
	if len(got) != 9 || len(said) != 9 {
		t.Errorf("%d figures of %q", len(got), said)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	// what was said was done: each decision and each reward is there
	e, err := serve.Open(t.Context(), serve.Config{Store: disk.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, want := range map[string]int{"free": 50 + 50 + 50 + 5*perBatch, "sticky": 100, "ofrep": 50} {
		x, err := e.Get(t.Context(), name)
		if err != nil || x.Arms[0].Decisions+x.Arms[1].Decisions != want {
			t.Errorf("%s: %+v, %v, want %d", name, x.Arms, err, want)
		}
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrUsed) {
		t.Errorf("a store in use is loaded: %v", err)
	}
	for _, bad := range []Config{{Requests: 1}, {Clients: 1}} {
		if _, err := Run(t.Context(), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Store = store.NewMemory().Open
	if _, err := Run(gone, cfg); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A service that answers something else is not fast.
func TestWrongAnswers(t *testing.T) {
	k := kind{name: "x", path: "/x", n: 20, each: 2, want: `"accepted"`,
		body: func(b []byte, i int) []byte { return fmt.Appendf(b, "%d", i) }}
	for answer, ok := range map[string]bool{`200 "accepted" "accepted"`: true, `200 "accepted" "late"`: false,
		`503 "accepted" "accepted"`: false, `200`: false} {
		status, text, _ := strings.Cut(answer, " ")
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status != "200" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, text)
		})
		if f, err := k.run(t.Context(), Config{Clients: 3, CPU: func() time.Duration {
			return 0
		}}, h, "key"); (err == nil) != ok {
			t.Errorf("%s: %+v, %v", answer, f, err)
		}
	}
}

// What the log has answered is in the file, and after an error of the disk nothing is answered.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	l, err := newLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			line := fmt.Sprintf("line %d.\n", i)
			if err := l.append([]byte(line)); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(l.f.Name()); err != nil || !strings.Contains(string(b), line) {
				t.Errorf("%q is not there: %v", line, err)
			}
		})
	}
	group.Wait()
	if err := l.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.append([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := l.close(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
