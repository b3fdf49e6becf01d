//go:build linux

package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A loss of power is a process whose writes are recorded by strace and cut: what was synced is
// there, of what was not an unknown part.

// An inode is a file as it is now and as it is at least, with what of it waits for a sync.
type inode struct {
	sure    []byte
	waiting []change
}

// A change writes data at a place, or cuts the file there if there is no data.
type change struct {
	at   int64
	data []byte
}

func (c change) to(b []byte) []byte {
	end := c.at + int64(len(c.data))
	if end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	if c.data == nil {
		return b[:c.at]
	}
	copy(b[c.at:], c.data)
	return b
}

// A disk is what a process has written, and what of that a loss of power leaves. Names are made and
// removed in order, and are there for sure after the next sync of whatever, as with a journal.
type disk struct {
	now, sure map[string]*inode
}

// image is a file system after a loss of power: the least that may be left, all that was written,
// or something between, where a write may be torn between sectors.
func (d *disk) image(kind string, src *rand.Rand) map[string][]byte {
	names := d.now
	if kind == "least" || kind == "some" && src.IntN(2) == 0 {
		names = d.sure
	}
	out := map[string][]byte{}
	for name, f := range names {
		b := slices.Clone(f.sure)
		for _, c := range f.waiting {
			switch {
			case kind == "least" || kind == "some" && src.IntN(2) == 0:
				continue
			case kind == "some" && len(c.data) > 512 && src.IntN(4) == 0:
				c.data = c.data[:512*(1+src.IntN(len(c.data)/512))]
			}
			b = c.to(b)
		}
		out[name] = b
	}
	return out
}

// sync makes the first n changes of a file sure, and all names.
func (d *disk) sync(name string, n int) {
	if f := d.now[name]; f != nil {
		for _, c := range f.waiting[:n] {
			f.sure = c.to(f.sure)
		}
		f.waiting = f.waiting[n:]
	}
	d.sure = maps.Clone(d.now)
}

var (
	straceLine = regexp.MustCompile(`^(\d+) +(.*)$`)
	straceCall = regexp.MustCompile(`^(\w+)\((.*?)(\) += (-?\d+).*| <unfinished \.\.\.>)$`)
	straceEnd  = regexp.MustCompile(`^<\.\.\. (\w+) resumed>.*\) += (-?\d+)`)
	straceText = regexp.MustCompile(`(?:\\x[0-9a-f]{2})+`)
)

// plain is a text of strace -xx, \x61 for a.
func plain(s string) string {
	return straceText.ReplaceAllStringFunc(s, func(x string) string {
		b := make([]byte, len(x)/4)
		for i := range b {
			n, _ := strconv.ParseUint(x[4*i+2:4*i+4], 16, 8)
			b[i] = byte(n)
		}
		return string(b)
	})
}

// replay plays what strace has recorded of the files in dir, and calls cut before each sync, after
// the last one, and wherever else it stands: with the disk, and what the process had said by then.
func replay(t *testing.T, trace, dir string, before map[string]*inode, say func(text string),
	cut func(d *disk)) (syncs int) {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := &disk{now: before, sure: maps.Clone(before)}
	type syncing struct {
		name string
		n    int
	}
	under := map[string]syncing{} // by thread
	waits := map[string]func(){}  // what is done when it has returned
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	file := func(arg string) string { // of a descriptor, 5</x/y>
		_, name, _ := strings.Cut(arg, "<")
		name, _, _ = strings.Cut(plain(name), ">")
		return name
	}
	end := func(thread string) {
		if s, ok := under[thread]; ok {
			cut(d)
			syncs++
			d.sync(s.name, s.n)
			delete(under, thread)
		}
		if done := waits[thread]; done != nil {
			done()
			delete(waits, thread)
		}
	}
	for lines.Scan() {
		m := straceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		thread, text := m[1], m[2]
		if r := straceEnd.FindStringSubmatch(text); r != nil {
			if r[2] != "-1" {
				end(thread)
			}
			delete(under, thread)
			delete(waits, thread)
			continue
		}
		c := straceCall.FindStringSubmatch(text)
		if c == nil || c[4] == "-1" {
			continue
		}
		args := strings.Split(c[2], ", ") // no text has a comma: all of it is \x..
		quoted := func(i int) string { return plain(strings.Trim(args[i], `"`)) }
		number := func(i int) int64 {
			n, err := strconv.ParseInt(args[i], 10, 64)
			if err != nil {
				t.Fatalf("%.200s: %v", text, err)
			}
			return n
		}
		name := ""
		switch c[1] {
		case "open":
			name = quoted(0)
		case "openat", "rename", "unlink", "unlinkat", "renameat":
			if name = quoted(0); strings.Contains(args[0], "AT_FDCWD") {
				name = quoted(1)
			}
		default:
			name = file(args[0])
		}
		if c[1] == "write" && strings.HasPrefix(args[0], "1<") {
			for line := range strings.Lines(quoted(1)) {
				say(strings.TrimSpace(line))
			}
			continue
		}
		if !strings.HasPrefix(name, dir) || strings.HasSuffix(name, "-shm") { // which is made again
			continue
		}
		at := d.now[name]
		switch c[1] {
		case "open", "openat":
			waits[thread] = func() {
				if d.now[name] == nil && strings.Contains(text, "O_CREAT") {
					d.now[name] = &inode{}
				} else if strings.Contains(text, "O_TRUNC") {
					d.now[name].waiting = append(d.now[name].waiting, change{})
				}
			}
		case "write": // only of files that are written from their beginning
			waits[thread] = nil
			place := int64(len(at.sure))
			for _, c := range at.waiting {
				place = c.at + int64(len(c.data))
			}
			at.waiting = append(at.waiting, change{place, []byte(quoted(1))})
		case "pwrite64":
			at.waiting = append(at.waiting, change{number(len(args) - 1), []byte(quoted(1))})
		case "ftruncate":
			at.waiting = append(at.waiting, change{at: number(1)})
		case "fsync", "fdatasync":
			s := syncing{name: name}
			if at != nil {
				s.n = len(at.waiting)
			}
			under[thread] = s
		case "unlink", "unlinkat":
			delete(d.now, name)
		case "rename", "renameat":
			to := quoted(len(args) - 1)
			d.now[to] = at
			delete(d.now, name)
		default:
			t.Fatalf("%.200s: it was not expected", text)
		}
		if !strings.HasPrefix(c[3], " <unfinished") {
			end(thread)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	cut(d)
	return syncs
}

// recorded has a child do its work in a directory, under strace, until a point at which it kills
// itself, and gives the record.
func recorded(t *testing.T, dir, fault, until string) (trace string) {
	t.Helper()
	trace = filepath.Join(t.TempDir(), "trace")
	c := exec.Command("strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "1000000", "-o", trace,
		"-e", "trace=open,openat,write,pwrite64,pwritev,writev,ftruncate,fallocate,fsync,fdatasync,"+
			"unlink,unlinkat,rename,renameat,renameat2", "-e", "signal=none",
		os.Args[0], "-test.run=^TestCrashChild$")
	c.Env = append(os.Environ(), "SOTTO_CRASH_DIR="+dir, "SOTTO_CRASH_TWIN="+fault,
		"SOTTO_CRASH_AT="+until, "SOTTO_CRASH_SLOW=10")
	if out, err := c.CombinedOutput(); len(out) == 0 || c.ProcessState.ExitCode() == 0 {
		t.Fatalf("%v: %s", err, out) // it kills itself
	}
	return trace
}

// losePower records a run, cuts it at each sync, or at some, and holds what is left each time
// against what had been said.
func losePower(t *testing.T, fault, until string) (w *witness, cuts, released int) {
	t.Helper()
	dir, before := filepath.Join(t.TempDir(), "data"), map[string]*inode{}
	if fault != "" { // it is wrong from here on
		crashStore(t, store.SQLite(dir), crashShop)
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before[name] = &inode{sure: b}
		}
	}
	trace := recorded(t, dir, fault, until)
	w = newWitness(crashShop)
	src := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	tmp, made := fast(t), fault != ""
	hear := func(text string) {
		made = made || text == "made"
		w.hear(text)
	}
	w.count = replay(t, trace, dir, before, hear, func(d *disk) {
		for _, kind := range []string{"least", "all", "some"} {
			files := d.image(kind, src)
			if key := fmt.Sprint(len(w.got), len(w.sent), len(w.lines), files); seen[key] {
				continue
			} else {
				seen[key] = true
			}
			left := filepath.Join(tmp, strconv.Itoa(cuts))
			cuts++
			if err := os.MkdirAll(left, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, b := range files {
				if err := os.WriteFile(filepath.Join(left, filepath.Base(name)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			now := &witness{name: w.name, sent: maps.Clone(w.sent), got: maps.Clone(w.got), sums: maps.Clone(w.sums),
				lines: slices.Clone(w.lines)}
			if b, err := os.ReadFile(filepath.Join(left, "mark")); err == nil && !json.Valid(b) {
				now.fault("the mark is %q", b)
			}
			n, err := now.opened(t, left, made)
			if err != nil {
				now.fault("%v", err)
			}
			released += n
			for _, f := range now.faults {
				w.fault("cut %d, %s is left: %s", cuts, kind, f)
			}
			_ = os.RemoveAll(left)
		}
	})
	return w, cuts, released
}

// fast is a directory in memory, where there is one: what is left of a disk has lost
// its power already.
func fast(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sotto")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// opened is judge, where it can be that nothing was made yet.
func (w *witness) opened(t *testing.T, dir string, made bool) (int, error) {
	t.Helper()
	if !made {
		e, err := Open(t.Context(), Config{Clock: newClock().Now, Store: store.SQLite(dir)})
		if err != nil {
			return 0, err
		}
		info, err := e.Get(t.Context(), "shop")
		if closed := e.Close(); closed != nil {
			return 0, closed
		}
		if errors.Is(err, ErrNotFound) || info.State == Draft {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return w.judge(t, dir), nil
}

func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("it needs strace")
	}
}

// Whenever power is lost, no accepted reward is, nothing that was shown is shown differently, and
// nothing is released twice.
func TestPowerLoss(t *testing.T) {
	needStrace(t)
	t.Parallel()
	until, least := "after a release:2", 30
	switch {
	case testkit.Full():
		until, least = "after a release:5", 40 // on a busy machine more requests share a commit
	case testkit.Race:
		until, least = "after a release:1", 20
	}
	w, cuts, released := losePower(t, "", until)
	for _, f := range w.faults {
		t.Error(f)
	}
	t.Logf("%d syncs, %d states of the disk, %d rewards answered, %d lines shown, %d decisions released",
		w.count, cuts, len(w.got), len(w.lines), released)
	if w.count < least || cuts < 2*least || released == 0 ||
		!testkit.Race && (len(w.lines) == 0 || len(w.got) == 0) {
		t.Error("nothing was tried")
	}
}

// Stores that answer before what they write is on the disk are found.
func TestPowerLossTwins(t *testing.T) {
	needStrace(t)
	t.Parallel()
	for _, fault := range []string{"OFF", "NORMAL"} {
		t.Run(fault, func(t *testing.T) {
			for range 5 {
				w, _, _ := losePower(t, "synchronous="+fault, "after a commit:25")
				if len(w.faults) > 0 {
					t.Log(w.faults[0])
					return
				}
			}
			t.Error("it was not found")
		})
	}
}
