package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// published is what everybody may read.
func published(t testing.TB, e *Engine) string {
	t.Helper()
	return strings.Join(transcript(t, e), "\n") + "\n"
}

// visit has so many made-up visitors come a minute, until the experiment has so many batches.
func visit(t testing.TB, e *Engine, c *clock.Manual, batches int) Info {
	t.Helper()
	src := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.State == Failed {
			t.Fatal(info.Reason, err)
		}
		if info.Batches >= batches || info.State == Stopped {
			return info
		}
		var reports []Report
		for range 50 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			if d.Token != "" && src.Float64() < [3]float64{0.2, 0.8, 0.5}[d.Arm] {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Minute, 1)
		settle(t, e, c, time.Second, 1)
	}
	t.Fatal("it does not come to its end")
	return Info{}
}

var threeArms = strings.NewReplacer("{policy: dp-klucb, first: 20}", "dp-klucb",
	"unit: {of: person, assignments: 1}", "unit: {of: visit}\nsticky: false",
	"arms: [", "arms: [{name: zero}, {name: one}, {name: two}]\nx: [").Replace(shop)

// declare is an experiment of three arms.
func declare(policy string) string {
	lines := []string{}
	for line := range strings.Lines(threeArms) {
		if !strings.HasPrefix(line, "x: [") {
			lines = append(lines, strings.Replace(line, "dp-klucb", policy, 1))
		}
	}
	return strings.Join(lines, "")
}

// What everybody may read of an experiment, over restarts, with an arm taken off, is played again
// to what the service says of it.
func TestReplay(t *testing.T) {
	for _, policy := range []string{"dp-klucb", "dp-imed", "dp-ts", "lazy-dp-ts"} {
		t.Run(policy, func(t *testing.T) {
			c, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: c.Now}
			e := open(t, cfg)
			begin(t, e, declare(policy))
			for n := 3; n <= 9; n += 3 {
				visit(t, e, c, n)
				floor := float64(n) / 100
				if err := e.Change(t.Context(), "shop", Change{Floor: &floor}); err != nil {
					t.Fatal(err)
				}
				if n == 6 && (policy == "dp-klucb" || policy == "dp-ts") {
					if err := e.TakeOff(t.Context(), "shop", "zero"); err != nil {
						t.Fatal(err)
					}
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
			}
			info := visit(t, e, c, 12)
			r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{})
			if policy == "lazy-dp-ts" {
				if !errors.Is(err, ErrSealed) {
					t.Errorf("its coins are not told, and it is played again: %v", err)
				}
			} else if err != nil || r.End != "" || r.Keep != -1 || r.Batches != info.Batches ||
				r.Spent.Pure() != info.Spent.Pure() || r.Tip != info.Tip {
				t.Fatalf("%+v, %v, must be %+v", r, err, info)
			}
			if info = stopped(t, e, c, "shop", "one"); info.Left != 0 || !strings.Contains(published(t, e), `"rest":[`) {
				t.Errorf("there was no rest: %+v", info)
			}
			r, err = Replay(strings.NewReader(published(t, e)), catalog.Catalog{})
			if err != nil || r.End != "operator" || r.Keep != 1 || r.Answer != -1 ||
				r.Batches != info.Batches || r.Spent.Pure() != info.Spent.Pure() ||
				r.Budget != info.Budget || r.Experiment.Floor != 0.09 || r.Tip != info.Tip || r.Lines != info.Lines {
				t.Fatalf("%+v, %v, must be %+v", r, err, info)
			}
			for a, arm := range info.Arms {
				arm.Decisions = 0
				if arm != r.Arms[a] || arm.Released == 0 {
					t.Errorf("arm %d is %+v, and was %+v", a, r.Arms[a], arm)
				}
			}
		})
	}
}

// So it is of experiments whose counts tell who reported, or which decisions were met.
func TestReplayOfCounts(t *testing.T) {
	for name, terms := range map[string]string{
		"drop":     "missing: drop\nreports: every\n",
		"activate": "exposure: activate\n",
		"retract":  "exposure: retract\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
			text := declare("dp-klucb") + terms
			begin(t, e, text)
			src := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				for range 50 {
					d, err := e.Decide(t.Context(), "shop", "")
					if err != nil {
						t.Fatal(err)
					}
					if name != "drop" && src.Float64() < 0.5 {
						if _, err := e.Activate(t.Context(), "shop", d.Token, name == "activate"); err != nil {
							t.Fatal(err)
						}
					}
					if src.Float64() < 0.7 {
						if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
							t.Fatal(err)
						}
					}
				}
				settle(t, e, c, 30*time.Second, 1)
				settle(t, e, c, time.Second, 1)
			}
			info, err := e.Get(t.Context(), "shop")
			if err != nil || info.Batches < 5 {
				t.Fatalf("%+v, %v", info, err)
			}
			r, err := Replay(strings.NewReader(published(t, e)), catalog.Catalog{})
			if err != nil || r.Tip != info.Tip || r.Batches != info.Batches {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// relinked links lines anew, as whoever rewrites a whole transcript can.
func relinked(lines []string) string {
	var out strings.Builder
	tip := ""
	for _, line := range lines {
		if i := strings.Index(line, `"at":`); i >= 0 {
			var text []byte
			text, tip = chain.Link(tip, []byte("{"+line[i:]))
			out.Write(text)
		}
	}
	return out.String()
}

// damages of a transcript's lines, each with the number of the line that is named, 1 for the first:
// that or the one behind it is where it is found.
func damages(lines []string) map[string]func() ([]string, int) {
	out := map[string]func() ([]string, int){}
	for i := range lines {
		at := fmt.Sprintf("%d of %d", i+1, len(lines))
		out["altered "+at] = func() ([]string, int) {
			all := slices.Clone(lines)
			n := strings.LastIndexAny(all[i], "0123456789")
			digit := "1"
			if all[i][n] == '1' {
				digit = "2"
			}
			all[i] = all[i][:n] + digit + all[i][n+1:]
			return all, min(i+2, len(lines))
		}
		out["dropped "+at] = func() ([]string, int) {
			return slices.Delete(slices.Clone(lines), i, i+1), min(i+1, len(lines)-1)
		}
		out["doubled "+at] = func() ([]string, int) {
			return slices.Insert(slices.Clone(lines), i, lines[i]), i + 2
		}
		if i > 0 {
			out["swapped "+at] = func() ([]string, int) {
				all := slices.Clone(lines)
				all[i-1], all[i] = all[i], all[i-1]
				return all, i
			}
		}
	}
	return out
}

// A line that was altered, dropped, doubled, moved or appended is found and named.
func TestDamagedTranscript(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, declare("dp-klucb"))
	visit(t, e, c, 4)
	text := published(t, e)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cases := damages(lines)
	last := lines[len(lines)-1]
	linked := func(object string) string {
		_, tip, _ := chain.Unlink("", []byte(last))
		line, _ := chain.Link(tip, []byte(object+"\n"))
		return string(line)
	}
	for name, object := range map[string]string{"a batch": last[strings.Index(last, `"at":`):],
		"an end": `"at":"2030-01-01T00:00:00.000Z","end":"operator","keep":0,"coins":"00"}`} {
		cases["appended "+name] = func() ([]string, int) {
			return append(slices.Clone(lines), linked("{"+strings.TrimSuffix(object, "\n"))), len(lines) + 1
		}
	}
	for name, damage := range cases {
		damaged, named := damage()
		want := fmt.Sprintf("line %d: ", named)
		_, err := Replay(strings.NewReader(strings.Join(damaged, "")), catalog.Catalog{})
		switch {
		// No chain tells of its last line. Its tip does, and the service knows it.
		case strings.HasSuffix(name, fmt.Sprintf("%d of %[1]d", len(lines))) &&
			!strings.HasPrefix(name, "swapped") &&
			!strings.HasPrefix(name, "doubled"):
		case !errors.Is(err, ErrTranscript) || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, must name %s", name, err, want)
		}
		// And the service, when it starts.
		e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return tampered{s, damaged}, err
		}})
		info, err := e.Get(t.Context(), "shop")
		own := strings.HasPrefix(name, "altered 1 ") && strings.Contains(info.Reason, "line 1: its coins")
		if err != nil || info.State != Failed || !strings.Contains(info.Reason, want) && !own {
			t.Errorf("%s: the service says %s, %q, %v, must name %s", name, info.State, info.Reason, err, want)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Times that go back by a tick or more are refused, and less is how releases are dated.
func TestTimesGoForward(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, declare("dp-klucb"))
	visit(t, e, c, 4)
	lines := strings.SplitAfter(strings.TrimSuffix(published(t, e), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	timeOf := func(line string) (time.Time, int) {
		i := strings.Index(line, `"at":"`) + len(`"at":"`)
		at, err := time.Parse(atForm, line[i:i+len(atForm)])
		if err != nil {
			t.Fatal(err)
		}
		return at, i
	}
	for i := 1; i < len(lines); i++ {
		before, _ := timeOf(lines[i-1])
		for back, holds := range map[time.Duration]bool{-time.Hour: i == len(lines)-1, 0: true,
			maxTick*time.Millisecond - time.Millisecond: true, maxTick * time.Millisecond: false, time.Hour: false} {
			changed := slices.Clone(lines)
			_, at := timeOf(lines[i])
			changed[i] = lines[i][:at] + before.Add(-back).Format(atForm) + lines[i][at+len(atForm):]
			_, err := Replay(strings.NewReader(relinked(changed)), catalog.Catalog{})
			named := fmt.Sprintf("line %d: its time", min(i+1, len(lines)))
			if back < 0 {
				named = fmt.Sprintf("line %d: its time", i+2)
			}
			if (err == nil) != holds || err != nil && !strings.Contains(err.Error(), named) {
				t.Errorf("line %d, back by %v: %v", i+1, back, err)
			}
		}
	}
}

// A tampered store has other lines, and writes nothing.
type tampered struct {
	store.Store
	lines []string
}

func (s tampered) Lines(context.Context, int64, int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range s.lines {
			if !yield([]byte(line), nil) {
				return
			}
		}
	}
}

func (s tampered) Commit(context.Context, store.Commit) error { return nil }

// A line that was changed, and all behind it linked anew, is found where the policy would have
// played otherwise, or the curator released otherwise.
func TestForgedTranscript(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, declare("dp-klucb"))
	visit(t, e, c, 4)
	stopped(t, e, c, "shop", "leader")
	text := published(t, e)
	lines := strings.SplitAfter(text, "\n")
	if _, err := Replay(strings.NewReader(relinked(lines)), catalog.Catalog{}); err != nil {
		t.Fatal(err)
	}
	slot := regexp.MustCompile(`"slots":\[[1-9]\d*\]`).FindString(text)
	rest := regexp.MustCompile(`"rest":\[\{"arm":\d`).FindString(text)          // of the first arm that has one
	keep, other := regexp.MustCompile(`"keep":\d`).FindString(text), `"keep":0` // by the noise each can lead
	if keep == other {
		other = `"keep":1`
	}
	for _, f := range []struct{ from, to string }{
		{`"policy":"dp-klucb"`, `"policy":"dp-imed"`},
		{`"epsilon":1}`, `"epsilon":2}`},
		{`"live":1`, `"live":2`},
		{`"live":1`, `"live":1,"Live":1`},
		{`"coins":"`, `"coins":"0`},
		{`"rounds":`, `"rounds":1`},
		{`"release":true`, `"release":false`},
		{`"scale":1}`, `"scale":2}`},
		{`"scale":1}`, `"scale":0.5}`},
		{`"n":[`, `"n":[1`},
		{`"n":[`, `"n":[2,`},
		{slot, `"slots":[0]`},
		{`"sum":[`, `"sum":[1],"sum":[`},
		{`"tail":{"sigma":0,"h":1`, `"tail":{"sigma":0,"h":0.1`},
		{`"end":"operator"`, `"end":"answer"`},
		{`"end":"operator"`, `"end":"policy"`},
		{keep, `"keep":3`},
		{keep, other},
		{keep, keep + "," + other},
		{rest + `,"rounds":`, rest + `,"rounds":1`},
		{rest, `"rest":[{"arm":2`},
		{`"rest"`, `"plays"`},
	} {
		forged := slices.Clone(lines)
		for i := range forged {
			if forged[i] = strings.Replace(lines[i], f.from, f.to, 1); forged[i] != lines[i] {
				break
			}
		}
		if slices.Equal(forged, lines) {
			t.Fatalf("%s is in no line", f.from)
		}
		if _, err := Replay(strings.NewReader(relinked(forged)), catalog.Catalog{}); !errors.Is(err,
			ErrTranscript) {
			t.Errorf("%s for %s: %v", f.to, f.from, err)
		}
	}
	for _, bad := range []string{"", "\n", "{}\n", "null\n", `{"at":"2030-01-01T00:00:00.000Z"}` + "\n",
		text[:len(text)-1], strings.Repeat("[", 1<<16)} {
		if _, err := Replay(strings.NewReader(bad), catalog.Catalog{}); !errors.Is(err, ErrTranscript) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	broken := io.MultiReader(strings.NewReader(text), failing{})
	if _, err := Replay(broken, catalog.Catalog{}); !errors.Is(err, errRead) {
		t.Error(err)
	}
}

var errRead = errors.New("it cannot be read")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errRead }

// Nobody can ask for the seed of coins before they have all been tossed.
func TestCoinsStaySealed(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, declare("lazy-dp-ts"))
	visit(t, e, c, 3)
	x, err := e.find("shop")
	if err != nil {
		t.Fatal(err)
	}
	seed := fmt.Sprintf("%x", x.rec.Coins)
	if strings.Contains(published(t, e), seed) {
		t.Error("the seed is told while the policy tosses")
	}
	stopped(t, e, c, "shop", "")
	if !strings.Contains(published(t, e), seed) {
		t.Error("the seed is not told when all is tossed")
	}
}

// Whatever a reader is given, it neither panics nor believes what costs more than was declared, and
// what it believes it believes again.
func FuzzReplay(f *testing.F) {
	c := newClock()
	e := open(f, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(f, e, declare("dp-klucb"))
	visit(f, e, c, 2)
	f.Add([]byte(published(f, e)))
	// with what was released ahead, which a batch has then asked for: noise alone says when
	for n := 10; n < 60 && !strings.Contains(published(f, e), `"held"`); n += 10 {
		visit(f, e, c, n)
	}
	f.Add([]byte(published(f, e)))
	stopped(f, e, c, "shop", "leader")
	f.Add([]byte(published(f, e)))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = []byte(relinked(strings.SplitAfter(string(in), "\n"))) // or the chain refuses all
		r, err := Replay(bytes.NewReader(in), catalog.Catalog{})
		if err != nil {
			return
		}
		if b, ok := r.Budget.(privacy.Pure); ok && !(r.Spent.Pure() <= b.Epsilon*(1+1e-9)) {
			t.Errorf("it costs %v of %v", r.Spent, b)
		}
		again, err := Replay(bytes.NewReader(in), catalog.Catalog{})
		if err != nil || again.Tip != r.Tip || again.Lines != bytes.Count(in, []byte("\n")) {
			t.Errorf("%+v, %v, was %+v", again, err, r)
		}
	})
}

// Coins that are not known do not stand still: a policy may toss until it is content, and a replay
// that only looks whether one is tossed would not end.
func TestSealedCoinsMove(t *testing.T) {
	hidden := &sealed{Fast: noise.NewFast(1, 2)}
	for tossed := false; !tossed; tossed = hidden.Beta(2, 1) > 0.9 && hidden.Float64() > 0.5 {
	}
	if !hidden.tossed {
		t.Error("nobody notices that they are tossed")
	}
}
