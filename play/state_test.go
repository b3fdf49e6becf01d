package play

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// states are some of houses that were played for a while.
func states(t testing.TB) [][]byte {
	t.Helper()
	var out [][]byte
	for name, p := range policies(t) {
		for seed := range uint64(3) {
			h, err := newHouse(none, ofArms(p, houseConfig(armsOf(p()))), seed)
			if err == nil {
				err = h.play(400, seeded(seed, uint64(len(name))))
			}
			if err == nil {
				err = h.write()
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, h.state)
		}
	}
	return out
}

// A state and a transcript that do not belong together restore nothing.
func TestRestoreErrors(t *testing.T) {
	p := policies(t)["dp-klucb"]
	var h *house
	for seed := uint64(1); h == nil || len(h.lines) < 4 || h.live.Stopped(); seed++ {
		var err error
		h, err = run(none, ofArms(p, houseConfig(3)), seed, 1500)
		if err == nil {
			err = h.write()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]struct {
		f    func(cfg *Config, lines [][]byte, s *State) [][]byte
		want string
	}{
		"nothing": {func(_ *Config, l [][]byte, _ *State) [][]byte { return l }, ""},
		"a line less": {func(_ *Config, l [][]byte, _ *State) [][]byte {
			return l[:len(l)-1]
		}, "lines and there are"},
		"an older state": {func(_ *Config, l [][]byte, s *State) [][]byte {
			s.Lines--
			return l
		}, "lines and there are"},
		"another head": {func(_ *Config, l [][]byte, s *State) [][]byte {
			s.Lines--
			return l[:len(l)-1]
		}, "were released"},
		"other bounds": {func(c *Config, l [][]byte, _ *State) [][]byte { c.Hi = 2; return l }, "must be on"},
		"another take": {func(c *Config, l [][]byte, _ *State) [][]byte {
			c.Take = AtLeast
			return l
		}, "must be on"},
		"another policy": {func(c *Config, l [][]byte, _ *State) [][]byte {
			c.Policy = policies(t)["batch-se"]()
			c.Take = 0
			return l
		}, ""},
		"another batch": {func(_ *Config, l [][]byte, s *State) [][]byte {
			s.Batch[0].Rounds--
			return l
		}, "batch that is out"},
		"lines swapped": {func(_ *Config, l [][]byte, _ *State) [][]byte {
			l[1], l[2] = l[2], l[1]
			return l
		}, "line "},
		"used epoch": {func(c *Config, l [][]byte, s *State) [][]byte {
			c.Epoch = s.Arms[0].Runs[0].Epoch
			return l
		}, "epoch was used"},
		"no epoch": {func(c *Config, l [][]byte, _ *State) [][]byte {
			c.Epoch = Epoch{}
			return l
		}, "epoch is missing"},
		"not a line": {func(_ *Config, l [][]byte, _ *State) [][]byte {
			l[0] = []byte(`{"plays":[],"x":1}`)
			return l
		}, "line 1"},
	} {
		cfg := h.config()
		s, err := h.read()
		if err != nil {
			t.Fatal(err)
		}
		lines := change.f(&cfg, append([][]byte(nil), h.lines...), &s)
		h.handed = map[int][]float64{}
		_, err = Restore(cfg, listed(lines), s)
		if name == "nothing" != (err == nil) || err != nil && !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	good := houseConfig(3)
	good.Policy, good.Epoch = policies(t)["dp-klucb"](), Epoch{1}
	for want, change := range map[string]func(c *Config){
		"policy is missing":      func(c *Config) { c.Policy = nil },
		"arms is 0":              func(c *Config) { c.Arms = 0 },
		"arms is 2147483647":     func(c *Config) { c.Arms = math.MaxInt32 },
		"window is 0":            func(c *Config) { c.Window = 0 },
		"window is -1":           func(c *Config) { c.Window = -1 },
		"window is 9":            func(c *Config) { c.Window = math.MaxInt64 },
		"cut is -1":              func(c *Config) { c.Cut = -1 },
		"default is NaN":         func(c *Config) { c.Default = math.NaN() },
		"default is 1.5":         func(c *Config) { c.Default = 1.5 },
		"range is [0, +Inf]":     func(c *Config) { c.Hi = math.Inf(1) },
		"default is 0.25, must":  func(c *Config) { c.Lo, c.Hi = 1, 0 },
		"take is take 7":         func(c *Config) { c.Take = 7 },
		"none without contexts":  func(c *Config) { c.Horizon = 9 },
		"none without context":   func(c *Config) { c.Rules = flatConfig().Rules },
		"epoch is missing":       func(c *Config) { c.Epoch = Epoch{} },
		"2 rounds of arm 2, mus": func(c *Config) { c.Arms = 2 },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		good.Policy = policies(t)["dp-klucb"]()
	}
}

func FuzzState(f *testing.F) {
	for _, text := range states(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s State
		if json.Unmarshal(text, &s) != nil || s.validate(0) != nil {
			return
		}
		for a := range s.Arms {
			q := &s.Arms[a]
			for n := q.Head; n < min(q.Issued, q.Head+1000); n++ {
				if g := q.find(n); g == nil || n < g.Start || g.whole(q.Issued) && n >= g.End {
					t.Fatalf("decision %d of arm %d is in segment %+v", n, a, g)
				}
				q.epoch(n)
			}
			q.enough(q.Asked)
		}
	})
}

// No line of a transcript does more than to be refused, or to be what the policy asked for.
func FuzzLine(f *testing.F) {
	p := policies(f)["dp-klucb"]
	h, err := run(none, ofArms(p, houseConfig(3)), 1, 1500)
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range h.lines {
		f.Add([]byte(l))
	}
	const all = `{"plays":[{"arm":0,"rounds":2,"release":true},{"arm":1,"rounds":2,"release":true},{"arm":2,"rounds":2,"release":true}]`
	f.Add([]byte(all + "}"))
	for _, sums := range []string{`"slots":[0],"n":[2],"sum":[1]`,
		`"slots":[0,1,2,3],"n":[2,2,2,2],"sum":[1,1,1,1]`} {
		f.Add([]byte(all + `,"release":{"mechanism":{"mechanism":"laplace","scale":1},"tail":{"sigma":0,"h":1,"log":0},` + sums + "}}"))
	}
	f.Add([]byte(`{"off":3}`))
	f.Add([]byte(`{"off":1,"gone":3}`))
	f.Add([]byte(`{"rest":[{"arm":0,"rounds":0,"gone":2},{"arm":2,"rounds":0,"gone":1}]}`))
	f.Add([]byte(`{"off":-1}`))
	f.Add([]byte(`{"change":{"floor":0.5}}`))
	f.Add([]byte(`{"change":1,"off":1}`))
	f.Add([]byte(`{"ahead":[{"arm":1,"rounds":1}]}`))
	f.Add([]byte(`{"change":1,"ahead":[{"arm":1,"rounds":1,"held":true}]}`))
	f.Add([]byte(all[:len(all)-1] + `],"ahead":[{"arm":0,"rounds":1}]}`))
	f.Add([]byte(`{"plays":[{"arm":0,"rounds":2,"release":true}],"release":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := houseConfig(3)
		cfg.Policy, cfg.Epoch = p(), Epoch{1}
		s := State{Terms: Terms{Hi: 1, Default: cfg.Default, Take: Exactly}, Lines: 1, Arms: make([]Queue, 3)}
		l, err := Restore(cfg, func(yield func([]byte, error) bool) { yield(text, nil) }, s)
		if err == nil && l.Ledger().Total().Pure() > 0 {
			t.Errorf("%s: released what no decision is gone for", text)
		}
	})
}

// BenchmarkRestore is a start with a million open decisions of which a tenth have reported, and
// BenchmarkDecideSettle what one decision and its reward take.
func BenchmarkRestore(b *testing.B) {
	m := privacy.Laplace{Scale: 1}
	one := policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: 1e6 + 10, Release: true}}}
	cfg := Config{Arms: 1, Window: 1 << 30, Epoch: Epoch{1}, Policy: flexible{&script{m, []policy.Batch{one}}}}
	l, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 {
		k, err := l.Decide(Decision{Arm: 0}, int64(i))
		if err == nil && i%10 == 0 {
			_, err = l.Settle(k, 1, int64(i))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	s := l.State()
	for n := uint64(1); b.Loop(); n++ {
		cfg.Policy = flexible{&script{m, []policy.Batch{one}}}
		binary.BigEndian.PutUint64(cfg.Epoch[8:], n)
		if _, err := Restore(cfg, func(func([]byte, error) bool) {}, s); err != nil {
			b.Fatal(err)
		}
	}
}

type flexible struct{ *script }

func (flexible) BearsMore() bool { return true }

func BenchmarkDecideSettle(b *testing.B) {
	l, err := New(Config{Arms: 1, Window: 1 << 30, Epoch: Epoch{1},
		Policy: flexible{&script{privacy.Laplace{Scale: 1},
			[]policy.Batch{{Plays: []policy.Play{{Arm: 0, Rounds: math.MaxInt, Release: true}}}}}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		k, err := l.Decide(Decision{Arm: l.Arm()}, 1)
		if err == nil {
			_, err = l.Settle(k, 1, 1)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// Queue is a part of the state, but for who came.
func TestQueue(t *testing.T) {
	l, err := New(Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 100, Cut: 5, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	for now := range int64(60) {
		k, err := l.Decide(Decision{Arm: l.Arm()}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Settle(k, 1, now); err != nil {
			t.Fatal(err)
		}
	}
	for a, q := range l.State().Arms {
		if len(q.Segments) < 2 {
			t.Fatalf("arm %d has %d segments, the test wants several", a, len(q.Segments))
		}
		for n := range q.Issued {
			whole, _ := l.Segment(a, n)
			tail := l.Queue(a, n)
			got := tail.Segments[0]
			if got.Came != nil || got.Start != whole.Start || got.Sum != whole.Sum || got.Settles != whole.Settles ||
				tail.Segments[len(tail.Segments)-1].Start != q.last().Start || tail.Issued != q.Issued {
				t.Errorf("from decision %d of arm %d: %+v, want %+v", n, a, tail, whole)
			}
		}
	}
}
