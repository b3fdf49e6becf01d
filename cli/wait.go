package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/report"
)

// patience is how long a command may take before it says how long it will take.
const patience = 2 * time.Second

// A wait says on a terminal, in one line at its end, how far a command is and about how long it will
// take; elsewhere it writes the lines that it is given and nothing else. It is for who waits: what it
// cannot write is not written, and the command goes on.
type wait struct {
	mu        sync.Mutex
	to        io.Writer
	terminal  bool
	name      string
	done, all int           // steps; all is 0 if nobody knows how many there will be
	most      bool          // there may be fewer
	limit     time.Duration // after which it ends, whatever is done; 0 for none
	from      time.Time
	at        time.Duration // when the last step was done
	shown     bool          // the line is there
	over      chan struct{}
	ended     sync.WaitGroup
}

// waiting begins a wait of so many steps. Its end must be told.
func waiting(s streams, name string, all int) *wait {
	f, ok := s.err.(*os.File)
	return newWait(onScreen(s.err), ok && hasRoom(f), name, all, patience)
}

func newWait(to io.Writer, terminal bool, name string, all int, patience time.Duration) *wait {
	w := &wait{to: to, terminal: terminal, name: name, all: all, from: time.Now(), over: make(chan struct{})}
	if !terminal {
		return w
	}
	w.ended.Go(func() {
		for next := patience; ; next = patience / 4 {
			select {
			case <-w.over:
				return
			case <-time.After(next):
				w.mu.Lock()
				w.show()
				w.mu.Unlock()
			}
		}
	})
	return w
}

// of is how many steps there will be, once it is known.
func (w *wait) of(steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = steps
}

// atMost is how many steps there will be at most, and after which time it ends anyway; each is 0 if nobody knows.
func (w *wait) atMost(steps int, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all, w.most, w.limit = steps, true, limit
}

// tell is that a step is done, with what is to be said of it; empty is nothing.
func (w *wait) tell(done int, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.at = done, time.Since(w.from)
	shown := w.shown
	w.clear()
	if line != "" {
		_ = report.WriteLines(w.to, line)
	}
	if shown {
		w.show()
	}
}

// step is tell of one more.
func (w *wait) step(line string) {
	w.mu.Lock()
	done := w.done + 1
	w.mu.Unlock()
	w.tell(done, line)
}

// end takes the line away.
func (w *wait) end() {
	close(w.over)
	w.ended.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clear()
}

func (w *wait) show() {
	w.clear()
	fmt.Fprint(w.to, w.text(time.Since(w.from)))
	w.shown = true
}

func (w *wait) clear() {
	if w.shown {
		fmt.Fprint(w.to, "\r\x1b[K")
		w.shown = false
	}
}

// text is the line after so much time. Steps take about as long as those before them did.
func (w *wait) text(spent time.Duration) string {
	text := w.name
	of, about := "of", "about"
	if w.most {
		of, about = "of at most", "at most about"
	}
	if w.all > 0 {
		text += fmt.Sprintf(": %d %s %d", min(w.done, w.all), of, w.all)
	}
	text += ", " + spent.Round(time.Second).String()
	left := w.limit - spent
	if 0 < w.done && w.done < w.all {
		steps := time.Duration(float64(w.at)/float64(w.done)*float64(w.all-w.done)) - (spent - w.at)
		if left = steps; w.limit > 0 {
			left = min(steps, w.limit-spent)
		}
	} else if w.limit == 0 {
		return text
	}
	return text + fmt.Sprintf(", %s %v left", about, max(left, time.Second).Round(time.Second))
}
