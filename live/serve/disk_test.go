//go:build linux

package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// TestDisks runs the tests of disks in a process of their own that may mount one: a small disk in
// memory, which can be filled and made read-only.
func TestDisks(t *testing.T) {
	if os.Getenv("SOTTO_DISK") != "" {
		t.Skip("it is that process")
	}
	c := exec.Command(os.Args[0], "-test.run=^TestDisk$", "-test.v")
	c.Env = append(os.Environ(), "SOTTO_DISK="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := c.CombinedOutput()
	if text := string(out); err == nil && strings.Contains(text, "--- PASS: TestDisk/") {
		return
	} else if strings.Contains(text, "--- FAIL") {
		t.Fatal(text)
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("nothing can be mounted: %v: %s", err, out)
	}
	t.Skipf("it needs to mount a disk: %v", err)
}

func TestDisk(t *testing.T) {
	dir := os.Getenv("SOTTO_DISK")
	if dir == "" {
		t.Skip("it is run by TestDisks")
	}
	if err := syscall.Mount("sotto", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("nothing can be mounted: ", err)
	}
	t.Run("said", func(t *testing.T) { testFullSaid(t, filepath.Join(dir, "said")) })
	t.Run("full", func(t *testing.T) { testFull(t, filepath.Join(dir, "full")) })
	t.Run("read-only", func(t *testing.T) { testReadOnly(t, dir) })
}

// back waits until rewards are taken again.
func back(t *testing.T, e *Engine) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); e.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come back")
		}
	}
}

// fill leaves no byte on a disk, and says how to take it away.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// On a full disk decisions go on and rewards are refused, for how long it may last; then what was
// accepted is there, and what was decided after the last mark is void. So too if the process ended
// meanwhile.
func testFull(t *testing.T, dir string) {
	got, c := newSums(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now, Curator: silent(got.tell)}
	e := open(t, cfg)
	begin(t, e, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	var accepted [2]int64
	var early []string
	decide := func() Decision {
		t.Helper()
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil || d.Token == "" {
			t.Fatal(d, err)
		}
		return d
	}
	say := func(token string, want Status) {
		t.Helper()
		if s, err := e.Reward(t.Context(), "shop", Report{token, 0.5}); s != want || err != nil {
			t.Fatalf("it is %q, must be %s: %v", s, want, err)
		}
	}
	for range 20 {
		d := decide()
		say(d.Token, Accepted)
		accepted[d.Arm] += 1 << 19
		early = append(early, d.Token)
	}
	for _, ends := range []bool{false, true} {
		empty := fill(t, filepath.Dir(dir))
		var lost []string
		refused := 0
		for range 2000 { // what the log has room for is accepted
			d := decide()
			s, err := e.Reward(t.Context(), "shop", Report{d.Token, 0.5})
			switch {
			case errors.Is(err, ErrUnavailable):
				lost = append(lost, d.Token)
				refused++
			case s == Accepted && err == nil:
				accepted[d.Arm] += 1 << 19
				early = append(early, d.Token)
			case s == Void && err == nil: // it was decided before the store was opened again
			default:
				t.Fatal(s, err)
			}
			if refused == 50 {
				break
			}
		}
		if refused < 50 || e.Ready() == nil {
			t.Fatalf("%d rewards were refused on a full disk, ready: %v", refused, e.Ready())
		}
		if ends {
			_ = e.Close() // it cannot write
			empty()
			e = open(t, cfg)
		} else {
			empty()
			back(t, e)
		}
		void := 0
		for _, token := range lost { // some may have been decided before the last mark
			s, err := e.Reward(t.Context(), "shop", Report{token, 0.5})
			k, ok := newSigner(mustFind(t, e, "shop").tokenKey).read(token)
			switch {
			case s == Void && ok && err == nil:
				void++
			case s == Accepted && ok && err == nil:
				accepted[k.arm] += 1 << 19
			default:
				t.Fatal(s, err)
			}
		}
		if void < refused-10 {
			t.Errorf("%d of %d decisions on a full disk are void", void, refused)
		}
		for _, token := range early {
			say(token, Accepted)
		}
	}
	for range 20 {
		decide()
	}
	settle(t, e, c, time.Second, 70)
	info, err := e.Get(t.Context(), "shop")
	if err != nil || info.Batches == 0 || info.State == Failed {
		t.Fatalf("%+v, %v", info, err)
	}
	x := mustFind(t, e, "shop")
	x.mu.Lock()
	defer x.mu.Unlock()
	for arm := range accepted {
		sum := got.steps[arm]
		for _, s := range x.play.Queue(arm, 0).Segments {
			sum += s.Sum
		}
		if sum != accepted[arm] || got.n[arm] != info.Arms[arm].Released {
			t.Errorf("arm %d: %d steps were released or wait, accepted were %d", arm, sum, accepted[arm])
		}
	}
}

// A full disk is said as long as it is full, though closing the files gives some pages back: it is not
// ready, a transcript is whole or unavailable, and the log has a line when it begins and one when it ends.
func testFullSaid(t *testing.T, dir string) {
	log, c := &lines{}, newClock()
	e := open(t, Config{Store: store.SQLite(dir), Clock: c.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
	begin(t, e, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	reward := func() error {
		t.Helper()
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil || d.Token == "" {
			t.Fatal(d, err)
		}
		_, err = e.Reward(t.Context(), "shop", Report{d.Token, 0.5})
		return err
	}
	for range 50 { // the log of writes has some pages
		if err := reward(); err != nil {
			t.Fatal(err)
		}
	}
	empty := fill(t, filepath.Dir(dir))
	for reward() == nil {
	}
	ready, broken, polls := 0, 0, 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		polls++
		if e.Ready() == nil {
			ready++
		}
		if err := reward(); err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		all, err := e.Transcript(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range all {
			if err != nil && !errors.Is(err, ErrUnavailable) {
				broken++
			}
		}
	}
	if ready+broken > 0 {
		t.Errorf("of %d polls on a full disk %d found it ready, and %d a transcript that broke off", polls,
			ready, broken)
	}
	if got := log.all(); len(got) != 1 || !strings.Contains(got[0], "nothing can be written") {
		t.Errorf("the log has %d lines: %.2000s", len(got), got)
	}
	empty()
	back(t, e)
	if err := reward(); err != nil {
		t.Error(err)
	}
	if got := log.all(); len(got) != 2 || !strings.Contains(got[1], "it is written again") {
		t.Errorf("the log has %d lines: %.2000s", len(got), got)
	}
}

// lines are those that were written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(strings.Lines(l.text.String()))
}

// A disk that has become read-only is one that nothing can be written to; a service does not start
// on one, and says so.
func testReadOnly(t *testing.T, mounted string) {
	dir, c := filepath.Join(mounted, "readonly"), newClock()
	var closed atomic.Bool
	disk := store.SQLite(dir)
	cfg := Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		if closed.Load() {
			return nil, errDisk
		}
		return disk(ctx)
	}}
	e := open(t, cfg)
	begin(t, e, shop)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	// Files that are open for writing must be closed before: so first the disk is full, which has the
	// engine close them, and the store is not opened again until the disk is read-only.
	closed.Store(true)
	empty := fill(t, mounted)
	for i := 0; e.Ready() == nil; i++ {
		_, _ = e.Decide(t.Context(), "shop", strings.Repeat("u", i%4000+1))
		_ = e.Sync(t.Context())
	}
	remount := func(flags uintptr) {
		t.Helper()
		for range 1000 {
			err := syscall.Mount("", mounted, "", syscall.MS_REMOUNT|syscall.MS_BIND|flags, "")
			if err == nil {
				return
			}
			if !errors.Is(err, syscall.EBUSY) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("the files are never closed")
	}
	remount(syscall.MS_RDONLY)
	closed.Store(false)
	for range 3 {
		if d, err := e.Decide(t.Context(), "shop", "ann"); err != nil || d.Token == "" {
			t.Errorf("no decision on a disk that is read-only: %+v, %v", d, err)
		}
		if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a reward on a disk that is read-only: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	other, err := Open(t.Context(), cfg)
	if err == nil {
		_ = other.Close()
		t.Error("it starts on a disk that is read-only")
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("it does not say which: %v", err)
	}
	remount(0)
	empty()
	back(t, e)
	again, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil || again.Token != d.Token {
		t.Errorf("%+v, was %+v, %v", again, d, err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
		t.Error(s, err)
	}
}
