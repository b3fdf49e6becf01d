//go:build unix

package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// used is the processor's time of this process, the system's part included or not.
func used(system bool) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	t := u.Utime.Nano()
	if system {
		t += u.Stime.Nano()
	}
	return time.Duration(t)
}

const benchFree = `
name: free
arms: [{name: red, value: "#c00"}, {name: blue, value: "#00c"}]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 24h
floor: 0.05
sticky: false
`

// benchLeased is decided by its clients.
var benchLeased = strings.NewReplacer("name: free", "name: leased", "unit: {of: visit}", "unit: {of: person}",
	"default: 0}", "default: 0, event: checkout}", "sticky: false", "leases: {for: 1h, delay: 1h}").Replace(benchFree)

// turn is how many requests one side has before the other's come.
const turn = 4096

// A side is one of those that take turns.
type side struct {
	name string
	kind kind
	h    http.Handler
}

// A bench has experiments, each with the engine that writes it, and what is asked of them in turns.
type bench struct {
	*testing.B
	names          []string
	of             []*serve.Engine // by name
	key            string
	tokens         []string
	decide, reward kind
}

// newBench has so many experiments of a declaration, of which to says who writes a new one; keys are the first's.
func newBench(b *testing.B, text string, n int, to func(x serve.Experiment) *serve.Engine) *bench {
	b.Helper()
	out := &bench{B: b}
	for i := range n {
		x, err := decl.Reader{}.Parse("load", []byte(text))
		if err != nil {
			b.Fatal(err)
		}
		if n > 1 {
			x.Name = fmt.Sprint(x.Name, i)
		}
		e := to(*x)
		if err := errors.Join(e.Create(b.Context(), *x), e.Start(b.Context(), x.Name)); err != nil {
			b.Fatal(err)
		}
		out.names, out.of = append(out.names, x.Name), append(out.of, e)
	}
	out.decide = kind{n: turn, each: 1, want: `"decision":"`,
		body: func(b []byte, _ int) []byte { return append(b, `{}`...) }}
	out.reward = kind{n: turn, each: 1, want: `"accepted"`,
		body: func(b []byte, i int) []byte {
			return append(append(append(b, `{"decision":"`...), out.tokens[i]...), `","reward":1}`...)
		}}
	for _, name := range out.names {
		out.decide.path += " /v1/experiments/" + name + "/decisions"
		out.reward.path += " /v1/experiments/" + name + "/rewards"
	}
	return out
}

// one has one experiment on an engine.
func one(b *testing.B, e *serve.Engine) *bench {
	b.Helper()
	out := newBench(b, benchFree, 1, func(serve.Experiment) *serve.Engine { return e })
	out.keyOf(e)
	return out
}

// keyOf has a key made by whoever writes the keys.
func (b *bench) keyOf(e *serve.Engine) {
	var err error
	if b.key, _, err = e.NewKey(b.Context(), "load", serve.ScopeDecide|serve.ScopeReward); err != nil {
		b.Fatal(err)
	}
}

// exposures are those of fresh units by the plans of all experiments, in hundreds, each of one experiment.
func (b *bench) exposures() kind {
	plans := make([]lease.Plan, len(b.names))
	for i, name := range b.names {
		for plans[i].Epoch == 0 { // until the first is durable
			if err := b.of[i].Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
			var err error
			if plans[i], _, err = b.of[i].Plan(b.Context(), name); err != nil {
				b.Fatal(err)
			}
		}
	}
	var unit atomic.Int64
	return kind{path: "/v1/exposures", n: turn / 16, each: 100, body: func(text []byte, i int) []byte {
		p := &plans[i%len(plans)]
		text = append(text, `{"exposures":[`...)
		for j := range 100 {
			if j > 0 {
				text = append(text, ',')
			}
			of := strconv.FormatInt(unit.Add(1), 10)
			text = fmt.Appendf(text, `{"experiment":%q,"targetingKey":%q,"epoch":%d,"arm":%q}`, p.Experiment, of, p.Epoch,
				p.Arms[p.Decide(of)].Arm)
		}
		return append(text, `]}`...)
	}}
}

// run has sides take turns in one process, so that what else the machine does meets all alike. It reports medians
// of turns, and of the ratio of each to another of the same turn.
func (b *bench) run(sides []side, to map[string]string) {
	got := map[string][]float64{}
	for b.Loop() {
		b.tokens = make([]string, turn*len(sides))
		for i := range b.tokens {
			at := i % len(b.names)
			d, err := b.of[at].Decide(b.Context(), b.names[at], "")
			if err != nil {
				b.Fatal(err)
			}
			b.tokens[i] = d.Token
		}
		for _, e := range b.of {
			if err := e.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		for _, s := range sides {
			user := used(false)
			cfg := Config{Clients: 64, CPU: func() time.Duration { return used(true) }}
			// not the front itself, which ends with the server of a turn
			f, err := s.kind.run(b.Context(), cfg, http.HandlerFunc(s.h.ServeHTTP), b.key)
			if err != nil {
				b.Fatal(s.name, err)
			}
			b.tokens = b.tokens[turn:]
			for unit, x := range map[string]float64{"µs": f.CPU, "user-µs": micros(used(false)-user, s.kind.n*s.kind.each),
				"per-s": f.Rate, "p99-ms": f.P99} {
				got[s.name+"-"+unit] = append(got[s.name+"-"+unit], x)
			}
		}
	}
	middle := func(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }
	for name, of := range got {
		b.ReportMetric(middle(of), name)
		one, unit, _ := strings.Cut(name, "-")
		if other := got[to[one]+"-"+unit]; other != nil {
			ratios := make([]float64, len(of))
			for i := range of {
				ratios[i] = of[i] / other[i]
			}
			b.ReportMetric(middle(ratios), one+"/"+to[one]+"-"+unit)
		}
	}
}

// Decisions beside the handler that answers, and durable rewards beside the log that is synced, by 64 clients.
func BenchmarkPeers(b *testing.B) {
	e, err := serve.Open(b.Context(), serve.Config{Store: store.SQLite(b.TempDir())})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	log, err := newLog(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer log.close()
	bare, served, of := bareHandler(log), api.Handler(api.Config{Engine: e}), one(b, e)
	as := func(k kind) kind { k.want = `"ok"`; return k }
	of.run([]side{{"bare", as(of.decide), bare}, {"decide", of.decide, served}, {"log", as(of.reward), bare},
		{"reward", of.reward, served}}, map[string]string{"decide": "bare", "reward": "log"})
}

// Decisions and rewards of one, two and three nodes on a PostgreSQL, all in this process, by 64 clients whose
// requests come to the nodes in turns: the first of them writes. And what all cost if another one passes them on.
func BenchmarkNodes(b *testing.B) {
	address := pgtest.Database(b)
	open, err := store.Postgres(address)
	if err != nil {
		b.Fatal(err)
	}
	nodes := make([]http.Handler, 3)
	var first *serve.Engine
	for i := range nodes {
		l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		e, err := serve.Open(b.Context(), serve.Config{Store: open, Advertise: "http://" + l.Addr().String()})
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		if first == nil {
			first = e
		}
		nodes[i] = api.Handler(api.Config{Engine: e})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- api.Serve(ctx, l, nodes[i], slog.New(slog.DiscardHandler)) }()
		defer func() { stop(); <-ended }()
	}
	two, three, of := inTurns(nodes[:2]...), inTurns(nodes...), one(b, first)
	of.run([]side{{"decide", of.decide, nodes[0]}, {"decide2", of.decide, two}, {"decide3", of.decide, three},
		{"passed", of.decide, nodes[1]}, {"reward", of.reward, nodes[0]}, {"reward2", of.reward, two}},
		map[string]string{"decide2": "decide", "decide3": "decide", "passed": "decide", "reward2": "reward"})
}

// inTurns has one of several answer after the other.
func inTurns(of ...http.Handler) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of[int(n.Add(1))%len(of)].ServeHTTP(w, r)
	})
}

// The same of 16 experiments in 8 shares, which one, two and three nodes share out: each writes as many as every other,
// and passes on what another one writes. And the decisions that clients make by leases, whose exposures they report in
// hundreds, each client of one experiment.
func BenchmarkSharedNodes(b *testing.B) {
	const shares = 8
	for n := 1; n <= 3; n++ {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			address := pgtest.Database(b)
			var handlers []http.Handler
			var all []*serve.Shares
			for range n {
				open, err := store.PostgresShares(address, shares)
				if err != nil {
					b.Fatal(err)
				}
				l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				s, err := serve.OpenShares(b.Context(), serve.Config{Advertise: "http://" + l.Addr().String()}, shares, open)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				h := api.Handler(api.Config{Shares: s})
				all, handlers = append(all, s), append(handlers, h)
				ctx, stop := context.WithCancel(b.Context())
				ended := make(chan error, 1)
				go func() { ended <- api.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
				defer func() { stop(); <-ended }()
			}
			writer := shared(b, all, shares)
			of := newBench(b, benchFree, 16, func(x serve.Experiment) *serve.Engine { return writer[all[0].New(x)] })
			of.keyOf(writer[0])
			leased := newBench(b, benchLeased, 16, func(x serve.Experiment) *serve.Engine { return writer[all[0].New(x)] })
			of.run([]side{{"decide", of.decide, inTurns(handlers...)}, {"lease", leased.exposures(), inTurns(handlers...)},
				{"reward", of.reward, inTurns(handlers...)}}, nil)
		})
	}
}

// shared are the engines that write shares, once each process has as many as every other.
func shared(b *testing.B, all []*serve.Shares, shares int) []*serve.Engine {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		out, whole, most := make([]*serve.Engine, shares), 0, 0
		for _, s := range all {
			n := 0
			for i, e := range s.Engines() {
				if here, _, _ := e.Where(); here && e.Ready() == nil {
					out[i] = e
					n++
				}
			}
			whole, most = whole+n, max(most, n)
		}
		if whole == shares && most <= (shares+len(all)-1)/len(all) {
			return out
		}
	}
	b.Fatal("the processes do not share out what there is")
	return nil
}
