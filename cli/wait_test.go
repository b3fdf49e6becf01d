package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// locked is a writer that is read while it is written.
type locked struct {
	sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(p)
}

func (l *locked) text() string {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.String()
}

// A terminal has one line, which is written again and taken away; what is told of steps stays above it. A
// pipe has what is told of steps, and nothing else.
func TestWait(t *testing.T) {
	var pipe, quick, screen locked
	w := newWait(&pipe, false, "plan live", 2, time.Millisecond)
	w.step("ε=1")
	time.Sleep(10 * time.Millisecond)
	w.end()
	if pipe.text() != "ε=1\n" {
		t.Errorf("a pipe has %q", pipe.text())
	}
	w = newWait(&quick, true, "plan live", 2, time.Hour)
	w.step("ε=1")
	w.end()
	if quick.text() != "ε=1\n" {
		t.Errorf("a terminal has %q before it had to wait", quick.text())
	}
	w = newWait(&screen, true, "plan live", 2, 4*time.Millisecond)
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(screen.text(), "0 of 2"); {
		if time.Now().After(deadline) {
			t.Fatalf("a terminal has %q", screen.text())
		}
		time.Sleep(time.Millisecond)
	}
	w.step("ε=1")
	w.end()
	if s := screen.text(); !strings.Contains(s, "\r\x1b[Kε=1\nplan live: 1 of 2, ") || !strings.HasSuffix(s, "\r\x1b[K") {
		t.Errorf("a terminal has %q", s)
	}
	for _, c := range []struct {
		done, all int
		want      string
	}{{0, 0, "x, 30s"}, {4, 0, "x, 30s"}, {0, 3, "x: 0 of 3, 30s"}, {1, 3, "x: 1 of 3, 30s, about 30s left"},
		{2, 3, "x: 2 of 3, 30s, about 1s left"}, {3, 3, "x: 3 of 3, 30s"}, {5, 3, "x: 3 of 3, 30s"}} {
		w := &wait{name: "x", done: c.done, all: c.all, at: 20 * time.Second}
		if got := w.text(30 * time.Second); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for _, c := range []struct {
		done, all int
		limit     time.Duration
		want      string
	}{{3, 0, time.Minute, "x, 30s, at most about 30s left"}, {1, 3, 0, "x: 1 of at most 3, 30s, at most about 30s left"},
		{1, 3, 40 * time.Second, "x: 1 of at most 3, 30s, at most about 10s left"}, {0, 0, 0, "x, 30s"}} {
		w := &wait{name: "x", done: c.done, at: 20 * time.Second}
		w.atMost(c.all, c.limit)
		if got := w.text(30 * time.Second); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
