package helper

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

var secret = bytes.Repeat([]byte{7}, dap.SecretSize)

func declared(t testing.TB, name string, key dap.Config, grid int) *decl.Experiment {
	t.Helper()
	l, err := decl.Reader{}.Parse("test.yaml", fmt.Appendf(nil, `name: %s
arms: [a, b]
policy: {policy: dp-klucb-j}
budget: {epsilon: 1}
unit: {of: visit}
window: 1h
trust: two-server
grid: %d
helper: {url: "https://helper.example", key: %s}
`, name, grid, key))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A pair is a helper, and all that a leader has to ask it.
type pair struct {
	*Helper
	task   dap.Task
	key    dap.Key // the leader's
	verify dap.VerifyKey
	cfg    Config
}

func newPair(t testing.TB, open func(context.Context) (store.Store, error), grid int, with func(*Config)) *pair {
	t.Helper()
	ctx := context.Background()
	cfg := Config{Store: open}
	h, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := declared(t, "shop", h.Key(), grid)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Tasks = []Task{{Declared: l, Secret: secret}}
	if with != nil {
		with(&cfg)
	}
	p := &pair{cfg: cfg}
	if p.Helper, err = Open(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Helper.Close() })
	if p.task, err = l.Task(); err != nil {
		t.Fatal(err)
	}
	if p.verify, err = dap.DeriveVerify(secret, p.task.ID); err != nil {
		t.Fatal(err)
	}
	if p.key, err = dap.DeriveKey(bytes.Repeat([]byte{9}, 32), 1); err != nil {
		t.Fatal(err)
	}
	return p
}

// again opens the helper anew, as after a crash.
func (p *pair) again(t testing.TB) {
	t.Helper()
	h, err := Open(context.Background(), p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Helper = h
}

func (p *pair) report(t testing.TB, arm uint32, number, value uint64) dap.Report {
	t.Helper()
	r, err := dap.NewReport(p.task, p.key.Config(), p.Key(), 1, dap.Ticket{Arm: arm, Number: number,
		Token: []byte("token")}, value, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (p *pair) job(t testing.TB, b dap.Batch, reports ...dap.Report) (*dap.LeaderJob, dap.ID) {
	t.Helper()
	j, err := dap.NewLeaderJob(p.task, p.key, p.verify, b, reports)
	if err != nil {
		t.Fatal(err)
	}
	first := b.Start
	if len(reports) > 0 {
		first = reports[0].Ticket.Number
	}
	return j, b.JobID(first)
}

// aggregate has the reports of a batch aggregated in one job.
func (p *pair) aggregate(t testing.TB, b dap.Batch, reports ...dap.Report) dap.Aggregate {
	t.Helper()
	j, id := p.job(t, b, reports...)
	response, err := p.Job(context.Background(), p.task.ID, id, j.Request())
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := j.Finish(response)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (p *pair) ask(t testing.TB, b dap.Batch, a dap.Aggregate) ([]byte, error) {
	t.Helper()
	return p.Share(context.Background(), p.task.ID, a.Request(b).Marshal())
}

func TestSumHasOneNoise(t *testing.T) {
	var drawn []int64
	p := newPair(t, store.NewMemory().Open, 4, func(c *Config) {
		c.noise = func(n release.Noise) (int64, error) {
			z, err := n.Draw()
			drawn = append(drawn, z)
			return z, err
		}
	})
	b := dap.Batch{Arm: 1, Start: 3, End: 8}
	a := p.aggregate(t, b, p.report(t, 1, 3, 4), p.report(t, 1, 5, 0), p.report(t, 1, 7, 1))
	share, err := p.ask(t, b, a)
	if err != nil {
		t.Fatal(err)
	}
	got, err := dap.Meet(p.task, a, share, 0)
	if want := int64(5) << 18; err != nil || len(drawn) != 1 || got != want+drawn[0] {
		t.Fatalf("sum %d with noises %v (%v), want 5/4 of a reward and one noise", got, drawn, err)
	}
	for range 3 { // the same question, also after a crash
		p.again(t)
		if same, err := p.ask(t, b, a); err != nil || !bytes.Equal(same, share) {
			t.Errorf("another answer: %v", err)
		}
	}
	if len(drawn) != 1 {
		t.Errorf("%d noises were drawn for one batch", len(drawn))
	}
	if s := p.Tasks(); len(s) != 1 || s[0].Shares != 1 || s[0].Tickets != 5 || !strings.HasPrefix(s[0].Spent.String(), "epsilon=0.99999") {
		t.Errorf("status %+v", s)
	}
}

// What a leader may try so as to have a reward in two shares, or one share twice.
func TestRefusals(t *testing.T) {
	ctx := context.Background()
	p := newPair(t, store.NewMemory().Open, 1, nil)
	b := dap.Batch{Start: 0, End: 10}
	one, two := p.report(t, 0, 1, 1), p.report(t, 0, 2, 1)
	a := p.aggregate(t, b, one, two)
	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	ask := func(b dap.Batch, name dap.ID, reports ...dap.Report) ([]byte, error) {
		t.Helper()
		j, _ := p.job(t, b, reports...)
		return p.Job(ctx, p.task.ID, name, j.Request())
	}
	// A report again in a job of another name: it is refused, and changes nothing.
	j, _ := p.job(t, b, one, p.report(t, 0, 3, 1))
	response, err := p.Job(ctx, p.task.ID, dap.ID{1}, j.Request())
	if err != nil {
		t.Fatal(err)
	}
	more, out, err := j.Finish(response)
	if err != nil || more.Count != 1 || len(out) != 1 || out[0].Reason != dap.ReportReplayed {
		t.Errorf("a report again: %d counted, %v refused, %v", more.Count, out, err)
	}
	a = a.Add(more)
	// Another report with a ticket that was spent.
	j, _ = p.job(t, b, p.report(t, 0, 2, 0))
	if response, err = p.Job(ctx, p.task.ID, dap.ID{2}, j.Request()); err != nil {
		t.Fatal(err)
	}
	if again, out, err := j.Finish(response); err != nil || again.Count != 0 || out[0].Reason != dap.ReportReplayed {
		t.Errorf("a ticket again: %+v, %v", again, err)
	}
	// The name of a job for something else.
	_, err = ask(b, dap.ID{1}, p.report(t, 0, 5, 1))
	refused("a job's name again", err, dap.StepMismatch)
	// Batches that share a ticket, before and after the share.
	overlaps := []dap.Batch{{Start: 0, End: 11}, {Start: 9, End: 12}, {Start: 3, End: 4}, {Start: 0, End: 9}}
	for _, o := range overlaps {
		_, err := ask(o, dap.ID{9}, p.report(t, 0, o.End-1, 1))
		refused(fmt.Sprint("overlap ", o), err, dap.BatchOverlap)
		_, err = p.Share(ctx, p.task.ID, dap.Aggregate{}.Request(o).Marshal())
		refused(fmt.Sprint("share of overlap ", o), err, dap.BatchOverlap)
	}
	// A share of other reports than the helper has.
	wrong := a.Request(b)
	wrong.Count--
	_, err = p.Share(ctx, p.task.ID, wrong.Marshal())
	refused("one report less", err, dap.BatchMismatch)
	wrong = a.Request(b)
	wrong.Checksum[0]++
	_, err = p.Share(ctx, p.task.ID, wrong.Marshal())
	refused("another checksum", err, dap.BatchMismatch)
	if _, err := p.ask(t, b, a); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = ask(b, dap.ID{3}, p.report(t, 0, 6, 1))
		refused("a job after the share", err, dap.BatchMismatch)
		_, err = p.Share(ctx, p.task.ID, wrong.Marshal())
		refused("another question after the share", err, dap.BatchMismatch)
		for _, o := range overlaps {
			_, err := ask(o, dap.ID{9}, p.report(t, 0, o.End-1, 1))
			refused(fmt.Sprint("overlap ", o), err, dap.BatchOverlap)
		}
		p.again(t) // and all of that is remembered
	}
	// The same numbers of the other arm are other tickets; there is no third arm.
	p.aggregate(t, dap.Batch{Arm: 1, Start: 0, End: 5}, p.report(t, 1, 1, 1))
	_, err = ask(dap.Batch{Arm: 2, Start: 0, End: 5}, dap.ID{4}, p.report(t, 2, 1, 1))
	refused("an arm that there is not", err, dap.BatchInvalid)
	_, err = p.Share(ctx, p.task.ID, dap.ShareRequest{Batch: dap.Batch{Start: 20, End: 20 + 1<<31}}.Marshal())
	refused("a batch that is too large", err, dap.BatchInvalid)
	_, err = p.Share(ctx, dap.TaskID{1}, a.Request(b).Marshal())
	refused("an unknown task", err, dap.UnrecognizedTask)
}

// A batch without reports has its noise like any other: nothing less.
func TestEmptyBatch(t *testing.T) {
	p := newPair(t, store.NewMemory().Open, 1, func(c *Config) {
		c.noise = func(release.Noise) (int64, error) { return -12345, nil }
	})
	b := dap.Batch{Start: 4, End: 6}
	share, err := p.ask(t, b, dap.Aggregate{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := dap.Meet(p.task, dap.Aggregate{}, share, 0); err != nil || got != -12345 {
		t.Errorf("sum %d (%v), want the noise alone", got, err)
	}
}

// draws are the noises of so many batches without reports.
func draws(t *testing.T, p *pair, batches int) []int64 {
	t.Helper()
	out := make([]int64, 0, batches)
	for i := range uint64(batches) {
		b := dap.Batch{Start: i, End: i + 1}
		share, err := p.ask(t, b, dap.Aggregate{})
		if err != nil {
			t.Fatal(err)
		}
		z, err := dap.Meet(p.task, dap.Aggregate{}, share, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, z)
	}
	return out
}

// The noise in shares against the exact mass of its law: χ² over 20 cells at 10^4 draws, ε = 1 (10^5
// at full size). The false alarm is 10^-6; half the noise is caught, and noise that is shared
// by two batches too.
func TestNoiseInShares(t *testing.T) {
	n := testkit.Size(10_000, 100_000)
	law := func(k float64) func(release.Noise) (int64, error) {
		return func(noise release.Noise) (int64, error) {
			z, err := noise.Draw()
			return int64(float64(z) / k), err
		}
	}
	for name, v := range map[string]struct {
		noise func(release.Noise) (int64, error)
		bad   bool
	}{"whole": {law(1), false}, "half": {law(2), true}} {
		p := newPair(t, store.NewMemory().Open, 1, func(c *Config) { c.noise = v.noise })
		l, err := p.cfg.Tasks[0].Declared.Noise()
		if err != nil {
			t.Fatal(err)
		}
		scale := float64(l.Num) / float64(l.Den)
		cells := make([]int, 20)
		for _, z := range draws(t, p, n) {
			u := 0.5 * math.Exp(-math.Abs(float64(z))/scale) // P(Z ≥ |z|) of the continuous law: 2^20 steps
			if z > 0 {
				u = 1 - u
			}
			cells[min(19, int(u*20))]++
		}
		chi := 0.0
		for _, c := range cells {
			d := float64(c) - float64(n)/20
			chi += d * d / (float64(n) / 20)
		}
		const limit = 72.2 // χ² with 19 degrees of freedom exceeds it with probability 3·10^-8
		if (chi > limit) != v.bad {
			t.Errorf("%s: χ² is %.1f", name, chi)
		}
	}
}

// Many who ask at once have one answer, and one noise.
func TestTogether(t *testing.T) {
	var mu sync.Mutex
	drawn := 0
	p := newPair(t, store.NewMemory().Open, 1, func(c *Config) {
		c.noise = func(n release.Noise) (int64, error) {
			mu.Lock()
			drawn++
			mu.Unlock()
			return n.Draw()
		}
	})
	b := dap.Batch{Start: 0, End: 4}
	j, id := p.job(t, b, p.report(t, 0, 0, 1), p.report(t, 0, 3, 1))
	var wg sync.WaitGroup
	answers := make([][]byte, 16)
	for i := range answers {
		wg.Go(func() {
			response, err := p.Job(context.Background(), p.task.ID, id, j.Request())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			a, _, err := j.Finish(response)
			mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			answers[i], err = p.ask(t, b, a)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, a := range answers {
		if !bytes.Equal(a, answers[0]) {
			t.Error("answers differ")
		}
	}
	if drawn != 1 {
		t.Errorf("%d noises", drawn)
	}
}

// Whatever a leader does, by a reference that keeps a plain list: a ticket is in one share at most,
// and a share is what it was.
func TestAnyLeader(t *testing.T) {
	ctx := context.Background()
	disk := store.NewMemory()
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(t, disk.Open, 1, nil)
		disk = store.NewMemory()
		reports := map[uint64]dap.Report{}
		jobs, shares := map[dap.ID][2]string{}, map[dap.Batch]string{}
		taken := map[uint64]dap.Batch{} // by ticket, the batch that has it
		sums := map[dap.Batch]dap.Aggregate{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			start := rapid.Uint64Range(0, 6).Draw(rt, "start")
			b := dap.Batch{Start: start, End: start + rapid.Uint64Range(1, 4).Draw(rt, "length")}
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0, 1:
				n := b.Start + rapid.Uint64Range(0, b.End-b.Start-1).Draw(rt, "ticket")
				r, ok := reports[n]
				if !ok || rapid.Bool().Draw(rt, "another") {
					r = p.report(t, 0, n, 1)
					reports[n] = r
				}
				j, _ := p.job(t, b, r)
				id := dap.ID{byte(rapid.IntRange(0, 5).Draw(rt, "name"))}
				response, err := p.Job(ctx, p.task.ID, id, j.Request())
				if was, ok := jobs[id]; ok && err == nil && (was[0] != string(j.Request()) || was[1] != string(response)) {
					rt.Fatal("another answer under the same name")
				} else if ok || err != nil {
					break
				}
				jobs[id] = [2]string{string(j.Request()), string(response)}
				a, _, err := j.Finish(response)
				if err != nil {
					rt.Fatal(err)
				}
				if a.Count > 0 {
					if was, ok := taken[n]; ok {
						rt.Fatalf("ticket %d is in %v and in %v", n, was, b)
					}
					taken[n] = b
					sums[b] = sums[b].Add(a)
				}
			case 2:
				share, err := p.ask(t, b, sums[b])
				if err != nil {
					break
				}
				if was, ok := shares[b]; ok && was != string(share) {
					rt.Fatal("another share")
				}
				for o := range shares {
					if o != b && o.Start < b.End && b.Start < o.End {
						rt.Fatalf("shares of %v and %v", o, b)
					}
				}
				shares[b] = string(share)
			case 3:
				p.again(t)
			}
		}
	})
}

// The store fails: nothing is answered that is not durable, and all is read anew.
func TestStoreFails(t *testing.T) {
	ctx := context.Background()
	disk := store.NewMemory()
	var fail, shut error
	open := func(ctx context.Context) (store.Store, error) {
		s, err := disk.Open(ctx)
		return failing{s, &fail, &shut}, err
	}
	drawn := 0
	p := newPair(t, open, 1, func(c *Config) {
		other := *c.Tasks[0].Declared
		other.Name = "other"
		c.Tasks = append([]Task{{Declared: &other, Secret: secret}}, c.Tasks...)
		c.noise = func(release.Noise) (int64, error) { drawn++; return int64(drawn) << 40, nil }
	})
	b := dap.Batch{Start: 0, End: 4}
	j, id := p.job(t, b, p.report(t, 0, 0, 1))
	fail = errors.New("disk full")
	if _, err := p.Job(ctx, p.task.ID, id, j.Request()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("job on a full disk: %v", err)
	}
	if !errors.Is(p.Ready(), ErrUnavailable) {
		t.Error("it says that it can write")
	}
	bearer, err := dap.DeriveBearer(secret, p.task.ID)
	if err != nil {
		t.Fatal(err)
	}
	shut = errors.New("no such disk")
	if _, err := p.Job(ctx, p.task.ID, id, j.Request()); !errors.Is(err, ErrUnavailable) ||
		!p.Authorised(p.task.ID, bearer) {
		t.Errorf("where the store cannot be read: %v, and it must still know its leader", err)
	}
	shut = nil
	fail = nil
	response, err := p.Job(ctx, p.task.ID, id, j.Request())
	if err != nil {
		t.Fatal(err)
	}
	a, out, err := j.Finish(response)
	if err != nil || len(out) > 0 {
		t.Fatalf("refused %v, %v: the ticket was spent by an answer that nobody has", out, err)
	}
	fail = errors.New("disk full")
	if _, err := p.ask(t, b, a); !errors.Is(err, ErrUnavailable) {
		t.Errorf("share on a full disk: %v", err)
	}
	fail = nil
	share, err := p.ask(t, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := dap.Meet(p.task, a, share, 0); got != 1<<20+2<<40 {
		t.Errorf("sum %d: the noise that was drawn first was seen by nobody, and another one is in it", got)
	}
	// Another process takes the store over: this one answers no more.
	other := *p
	other.again(t)
	if _, err := p.ask(t, dap.Batch{Start: 4, End: 5}, dap.Aggregate{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a process that was put out: %v", err)
	}
	if again, err := other.ask(t, b, a); err != nil || !bytes.Equal(again, share) {
		t.Errorf("the process that took over: %v", err)
	}
}

// failing is a store whose commits fail, or that cannot be read.
type failing struct {
	store.Store
	err, shut *error
}

func (f failing) Load(ctx context.Context, id int64) (store.Stored, error) {
	if *f.shut != nil {
		return store.Stored{}, *f.shut
	}
	return f.Store.Load(ctx, id)
}

func (f failing) Commit(ctx context.Context, c store.Commit) error {
	if *f.err != nil {
		return *f.err
	}
	return f.Store.Commit(ctx, c)
}

// A commit that was made, and nobody knows: what it says is what is answered.
func TestLostAnswers(t *testing.T) {
	ctx := context.Background()
	disk := store.NewMemory()
	lose := false
	open := func(ctx context.Context) (store.Store, error) {
		s, err := disk.Open(ctx)
		return losing{s, &lose}, err
	}
	drawn := 0
	p := newPair(t, open, 1, func(c *Config) {
		c.noise = func(release.Noise) (int64, error) { drawn++; return int64(drawn) << 40, nil }
	})
	b := dap.Batch{Start: 0, End: 4}
	j, id := p.job(t, b, p.report(t, 0, 0, 1))
	lose = true
	if _, err := p.Job(ctx, p.task.ID, id, j.Request()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("job: %v", err)
	}
	lose = false
	response, err := p.Job(ctx, p.task.ID, id, j.Request())
	if err != nil {
		t.Fatal(err)
	}
	a, out, err := j.Finish(response)
	if err != nil || len(out) > 0 {
		t.Fatalf("refused %v, %v", out, err)
	}
	lose = true
	if _, err := p.ask(t, b, a); !errors.Is(err, ErrUnavailable) {
		t.Errorf("share: %v", err)
	}
	lose = false
	share, err := p.ask(t, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := dap.Meet(p.task, a, share, 0); got != 1<<20+1<<40 || drawn != 1 {
		t.Errorf("sum %d after %d noises: the first was durable", got, drawn)
	}
}

// losing is a store whose commits are made, and their answers lost.
type losing struct {
	store.Store
	yes *bool
}

func (l losing) Commit(ctx context.Context, c store.Commit) error {
	err := l.Store.Commit(ctx, c)
	if *l.yes {
		return errors.New("connection reset")
	}
	return err
}

// A directory from which the database was put back to an older one: its tasks are closed for good.
func TestOlderDatabase(t *testing.T) {
	disk := store.NewMemory()
	older := false
	open := func(ctx context.Context) (store.Store, error) {
		s, err := disk.Open(ctx)
		return goneBack{s, &older}, err
	}
	p := newPair(t, open, 1, nil)
	older = true
	p.again(t)
	older = false
	for range 2 {
		if _, err := p.ask(t, dap.Batch{Start: 0, End: 4}, dap.Aggregate{}); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want %v", err, ErrClosed)
		}
		p.again(t)
	}
	if s := p.Tasks(); !s[0].Closed {
		t.Error("the status does not say so")
	}
}

type goneBack struct {
	store.Store
	older *bool
}

func (g goneBack) Begin(ctx context.Context, holder string) (store.Opened, error) {
	o, err := g.Store.Begin(ctx, holder)
	o.Older = *g.older
	return o, err
}

func TestSQLite(t *testing.T) {
	p := newPair(t, store.SQLite(t.TempDir()), 1024, nil)
	b := dap.Batch{Start: 0, End: 4}
	a := p.aggregate(t, b, p.report(t, 0, 0, 512), p.report(t, 0, 1, 1024))
	_ = p.Helper.Close()
	p.again(t)
	share, err := p.ask(t, b, a)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Helper.Close()
	p.again(t)
	if again, err := p.ask(t, b, a); err != nil || !bytes.Equal(again, share) {
		t.Errorf("after a restart: %v", err)
	}
}

func TestTasks(t *testing.T) {
	ctx := context.Background()
	disk := store.NewMemory()
	h, err := Open(ctx, Config{Store: disk.Open})
	if err != nil {
		t.Fatal(err)
	}
	key := h.Key()
	other, err := dap.DeriveKey(bytes.Repeat([]byte{3}, 32), 1)
	if err != nil {
		t.Fatal(err)
	}
	central := declared(t, "shop", key, 1)
	central.Trust, central.Grid, central.Helper = "", 0, decl.Helper{}
	for want, task := range map[string]Task{
		"this helper's":          {Declared: declared(t, "shop", other.Config(), 1), Secret: secret},
		"must be at least 32":    {Declared: declared(t, "shop", key, 1), Secret: secret[:31]},
		"trust":                  {Declared: central, Secret: secret},
		"declaration is missing": {Secret: secret},
	} {
		if _, err := Open(ctx, Config{Store: disk.Open, Tasks: []Task{task}}); !errors.Is(err, ErrTask) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	twice := Task{Declared: declared(t, "shop", key, 1), Secret: secret}
	if _, err := Open(ctx, Config{Store: disk.Open, Tasks: []Task{twice, twice}}); err == nil {
		t.Error("a task given twice was taken")
	}
}

func TestHTTP(t *testing.T) {
	p := newPair(t, store.NewMemory().Open, 1, nil)
	var log bytes.Buffer
	s := httptest.NewServer(Handler(p.Helper, nil, slog.New(slog.NewTextHandler(&log, nil))))
	defer s.Close()
	bearer, err := dap.DeriveBearer(secret, p.task.ID)
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, bearer, media string, body []byte) (int, string, string) {
		t.Helper()
		r, err := http.NewRequest(method, s.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		r.Header.Set("Content-Type", media)
		c := http.Client{Timeout: time.Minute}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return resp.StatusCode, resp.Header.Get("Content-Type"), b.String()
	}
	if code, media, body := do("GET", "/hpke_config", "", "", nil); code != 200 || media != dap.MediaConfigs {
		t.Errorf("hpke_config: %d %s", code, media)
	} else if c, err := dap.ParseConfigs([]byte(body)); err != nil || c.String() != p.Key().String() {
		t.Errorf("hpke_config: %v", err)
	}
	b := dap.Batch{Start: 0, End: 4}
	j, id := p.job(t, b, p.report(t, 0, 1, 1))
	path := "/tasks/" + p.task.ID.String() + "/aggregation_jobs/" + id.String()
	for _, bad := range []string{"", "wrong"} {
		if code, _, _ := do("PUT", path, bad, dap.MediaJob, j.Request()); code != 401 {
			t.Errorf("bearer %q: %d", bad, code)
		}
	}
	unknown := strings.Replace(path, p.task.ID.String(), dap.TaskID{5}.String(), 1)
	if code, _, _ := do("PUT", unknown, bearer, dap.MediaJob, j.Request()); code != 401 {
		t.Errorf("an unknown task: %d", code)
	}
	if code, _, _ := do("PUT", path, bearer, "text/plain", j.Request()); code != 415 {
		t.Errorf("another media type: %d", code)
	}
	if code, media, body := do("PUT", path, bearer, dap.MediaJob, j.Request()[:9]); code != 400 ||
		media != "application/problem+json" || !strings.Contains(body, dap.InvalidMessage.Type()) {
		t.Errorf("cut short: %d %s %s", code, media, body)
	}
	if code, _, _ := do("PUT", path, bearer, dap.MediaJob, make([]byte, dap.MaxRequest+1)); code != 400 {
		t.Errorf("too long: %d", code)
	}
	code, media, body := do("PUT", path, bearer, dap.MediaJob, j.Request())
	a, _, err := j.Finish([]byte(body))
	if code != 200 || media != dap.MediaJobResponse || err != nil || a.Count != 1 {
		t.Fatalf("job: %d %s %v", code, media, err)
	}
	path = "/tasks/" + p.task.ID.String() + "/aggregate_shares/" + b.ShareID().String()
	code, media, body = do("PUT", path, bearer, dap.MediaShareRequest, a.Request(b).Marshal())
	if _, err := dap.Meet(p.task, a, []byte(body), 0); code != 200 || media != dap.MediaShare || err != nil {
		t.Errorf("share: %d %s %v", code, media, err)
	}
	if code, _, body := do("PUT", path, bearer, dap.MediaShareRequest, dap.Aggregate{}.Request(b).Marshal()); code != 409 ||
		!strings.Contains(body, dap.BatchMismatch.Type()) {
		t.Errorf("another share: %d %s", code, body)
	}
	if code, _, body := do("GET", "/", "", "", nil); code != 200 || !strings.Contains(body, "shop") ||
		!strings.Contains(body, p.Key().String()) || !strings.Contains(body, "1, of 4 decisions") {
		t.Errorf("page: %d %s", code, body)
	}
	for path, want := range map[string]int{"/livez": 204, "/readyz": 204, "/openapi.yaml": 200, "/x": 404} {
		if code, _, _ := do("GET", path, "", "", nil); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", &log)
	}
}

// Reports a second and core at the helper: a job of 256, on a memory that is a disk.
func BenchmarkJob(b *testing.B) {
	for _, grid := range []int{1, 1024} {
		b.Run(fmt.Sprint("grid=", grid), func(b *testing.B) {
			p := newPair(b, store.NewMemory().Open, grid, nil)
			const n = dap.MaxJob
			reports := make([]dap.Report, n)
			for i := range reports {
				reports[i] = p.report(b, 0, uint64(i), 1)
			}
			j, _ := p.job(b, dap.Batch{Start: 0, End: n}, reports...)
			in, err := dap.ParseJob(p.task, j.Request())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := in.Help(p.Helper.key, p.verify, func(dap.Metadata) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}

// promises says which of them a helper breaks: a share that is another one when it is asked for again,
// a ticket that counts again, a batch that overlaps another one; each also after a restart.
func promises(t *testing.T, p *pair) (broken []string) {
	t.Helper()
	b := dap.Batch{Start: 0, End: 4}
	r := p.report(t, 0, 1, 1)
	a := p.aggregate(t, b, r)
	for _, restart := range []bool{false, true} {
		if restart {
			p.again(t)
		}
		j, _ := p.job(t, b, r)
		response, err := p.Job(context.Background(), p.task.ID, dap.ID{1, byte(len(broken))}, j.Request())
		if err == nil {
			if more, _, err := j.Finish(response); err == nil && more.Count > 0 {
				broken = append(broken, "a ticket counts twice")
			}
		}
		if !restart {
			continue
		}
		first, err := p.ask(t, b, a)
		if err != nil {
			t.Fatal(err)
		}
		p.again(t)
		if j, id := p.job(t, b, r); true { // a leader that begins again
			_, _ = p.Job(context.Background(), p.task.ID, id, j.Request())
		}
		if second, err := p.ask(t, b, a); err == nil && !bytes.Equal(first, second) {
			broken = append(broken, "another share")
		}
		if _, err := p.ask(t, dap.Batch{Start: 3, End: 6}, dap.Aggregate{}); err == nil {
			broken = append(broken, "an overlap")
		}
	}
	return broken
}

// A helper that remembers keeps its promises, and one whose disk forgets at every start breaks all.
func TestForgetfulHelper(t *testing.T) {
	disk := store.NewMemory()
	if broken := promises(t, newPair(t, disk.Open, 1, nil)); broken != nil {
		t.Errorf("broken: %q", broken)
	}
	secret := disk
	forgetful := newPair(t, func(ctx context.Context) (store.Store, error) {
		s, err := store.NewMemory().Open(ctx)
		return sameSecret{s, secret}, err
	}, 1, nil)
	if broken := promises(t, forgetful); !strings.Contains(strings.Join(broken, ", "), "another share") ||
		!strings.Contains(strings.Join(broken, ", "), "a ticket counts twice") {
		t.Errorf("a helper that forgets is found to break %q only", broken)
	}
}

// sameSecret is a store with the secret of another one: all else is forgotten.
type sameSecret struct {
	store.Store
	of *store.Memory
}

func (s sameSecret) Begin(ctx context.Context, holder string) (store.Opened, error) {
	o, err := s.Store.Begin(ctx, holder)
	if err != nil {
		return o, err
	}
	other, err := s.of.Open(ctx)
	if err != nil {
		return o, err
	}
	was, err := other.Begin(ctx, holder)
	o.Secret = was.Secret
	return o, err
}
