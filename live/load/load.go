// Package load puts load on a live service over HTTP, and on peers that do less, in the same
// process: what is measured has clients and server on the same processors.
package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// ErrUsed: the store is not empty.
var ErrUsed = errors.New("it has experiments or keys, must be empty")

// A Config says what load there is.
type Config struct {
	Store func(context.Context) (store.Store, error) // an empty one
	// where a peer's log is written, and removed
	Dir string
	// connections, each with one request at a time; at least 1
	Clients  int
	Requests int                  // of each kind, at least 1
	Progress func(what string)    // is told what begins; nil for nobody
	CPU      func() time.Duration // what this process has used; nil if nobody knows
}

// A Figure is what was measured of one kind of request.
type Figure struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"`
	// of decisions or rewards, of which a request may have many
	Rate float64 `json:"per_second"`
	P50  float64 `json:"p50_ms,omitempty"`
	P99  float64 `json:"p99_ms,omitempty"`
	// CPU is the processor time of one decision or reward, its client's included and that of other
	// processes not: a busy machine changes it little.
	CPU float64 `json:"cpu_us,omitempty"`
	// What is asked of it; zero for nothing.
	AtLeast float64 `json:"at_least_per_second,omitempty"`
	AtMost  float64 `json:"p99_at_most_ms,omitempty"`
}

// Met says whether a figure is what is asked of it.
func (f Figure) Met() bool { return f.Rate >= f.AtLeast && (f.AtMost == 0 || f.P99 <= f.AtMost) }

// perBatch is how many rewards are in one request of many.
const perBatch = 100

// declaration is an experiment that needs little and whose window stays open.
const declaration = `
name: %s
arms: [{name: red, value: "#c00"}, {name: blue, value: "#00c"}]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 24h
floor: 0.05
sticky: %v
`

// A kind of request: n of them, each made by its number, whose answer must have a text so often.
type kind struct {
	name   string
	path   string // or several, with spaces between them, in turns
	n      int
	each   int // decisions or rewards in one
	body   func(b []byte, i int) []byte
	want   string // as often in the answer as each says; empty for an answer that says nothing of them
	target Figure
}

// Run measures. The peers come first: a handler that answers and no more, and a log that is written
// and synced in groups.
func Run(ctx context.Context, cfg Config) (_ []Figure, err error) {
	if cfg.Clients < 1 || cfg.Requests < 1 {
		return nil, fmt.Errorf("clients is %d and requests %d, must be at least 1", cfg.Clients, cfg.Requests)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	if cfg.CPU == nil {
		cfg.CPU = func() time.Duration { return 0 }
	}
	e, err := serve.Open(ctx, serve.Config{Store: cfg.Store, Holder: "a load test"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if len(e.List(ctx)) > 0 || len(e.Keys()) > 0 {
		return nil, ErrUsed
	}
	key, _, err := e.NewKey(ctx, "load", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"free", "sticky", "ofrep"} {
		x, err := decl.Reader{}.Parse("load", fmt.Appendf(nil, declaration, name, name != "free"))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(e.Create(ctx, *x), e.Start(ctx, name)); err != nil {
			return nil, err
		}
	}
	log, err := newLog(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.close()) }()

	var out []Figure
	figure := func(f Figure) { out = append(out, f) }
	bare := bareHandler(log)
	const decisions, rewards = "/v1/experiments/free/decisions", "/v1/experiments/free/rewards"
	unit := func(before, after string) func([]byte, int) []byte {
		return func(b []byte, i int) []byte {
			b = append(b, before...)
			b = strconv.AppendInt(b, int64(i), 10)
			return append(b, after...)
		}
	}
	same := func(text string) func([]byte, int) []byte {
		return func(b []byte, _ int) []byte { return append(b, text...) }
	}
	reportOn := `{"decision":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","reward":1}`
	for _, k := range []kind{
		{"peer: a handler that answers", decisions, cfg.Requests, 1, same(`{}`), `"ok"`, Figure{}},
		{"peer: a log, synced in groups", rewards, cfg.Requests, 1, same(reportOn), `"ok"`, Figure{}},
	} {
		cfg.Progress(k.name)
		f, err := k.run(ctx, cfg, bare, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		figure(f)
	}
	for _, x := range []struct{ name, experiment string }{{"a decision, in process", "free"},
		{"a sticky decision, in process", "sticky"}} {
		cfg.Progress(x.name)
		began, used := time.Now(), cfg.CPU()
		for i := range cfg.Requests {
			if _, err := e.Decide(ctx, x.experiment, strconv.Itoa(-i-1)); err != nil {
				return nil, err
			}
		}
		figure(Figure{Name: x.name, Requests: cfg.Requests,
			Rate: float64(cfg.Requests) / time.Since(began).Seconds(), AtLeast: 500_000,
			CPU: micros(cfg.CPU()-used, cfg.Requests)})
	}

	single, many := cfg.Requests, max(cfg.Requests/10, 1)
	tokens := make([]string, single+perBatch*many)
	for i := range tokens {
		d, err := e.Decide(ctx, "free", "")
		if err != nil {
			return nil, err
		}
		tokens[i] = d.Token
	}
	reward := func(b []byte, token string) []byte {
		b = append(b, `{"decision":"`...)
		b = append(b, token...)
		return append(b, `","reward":1}`...)
	}
	if err := e.Sync(ctx); err != nil { // the decisions of these two are durable
		return nil, err
	}
	served := api.Handler(api.Config{Engine: e})
	for _, k := range []kind{
		{"decisions", decisions, cfg.Requests, 1, same(`{}`), `"decision":"`,
			Figure{AtLeast: 20_000, AtMost: 10}},
		{"sticky decisions", "/v1/experiments/sticky/decisions", cfg.Requests, 1, unit(`{"unit":"`, `"}`),
			`"decision":"`, Figure{AtLeast: 15_000, AtMost: 10}},
		{"OFREP, sticky", "/ofrep/v1/evaluate/flags/ofrep", cfg.Requests, 1,
			unit(`{"context":{"targetingKey":"`, `"}}`), `"reason":"SPLIT"`,
			Figure{AtLeast: 15_000, AtMost: 10}},
		{"rewards, single", rewards, single, 1,
			func(b []byte, i int) []byte { return reward(b, tokens[i]) }, `"status":"accepted"`,
			Figure{AtLeast: 10_000, AtMost: 15}},
		{"rewards, in hundreds", rewards + "/batch", many, perBatch,
			func(b []byte, i int) []byte {
				b = append(b, `{"rewards":[`...)
				for j, token := range tokens[single+perBatch*i:][:perBatch] {
					if j > 0 {
						b = append(b, ',')
					}
					b = reward(b, token)
				}
				return append(b, `]}`...)
			}, `"status":"accepted"`, Figure{AtLeast: 200_000}},
	} {
		cfg.Progress(k.name)
		f, err := k.run(ctx, cfg, served, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		figure(f)
	}
	return out, nil
}

// bareHandler is the peers: what answers and does no more, and what appends to a log and answers.
func bareHandler(log *syncedLog) http.Handler {
	bare := http.NewServeMux()
	bare.HandleFunc("POST /v1/experiments/{name}/decisions", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fixed(w)
		}
	})
	bare.HandleFunc("POST /v1/experiments/{name}/rewards", func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err == nil && log.append(append(b, '\n')) == nil {
			fixed(w)
		}
	})
	return bare
}

// micros is a time in microseconds for each of n.
func micros(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1000 / float64(n) }

// fixed is the answer of a peer.
func fixed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n") // who has gone is counted as a failure there
}

// run sends all requests of a kind to a handler, over the loopback.
func (k kind) run(ctx context.Context, cfg Config, h http.Handler, key string) (Figure, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Figure{}, err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(serving, l, h, slog.New(slog.DiscardHandler)) }()
	took := make([]time.Duration, k.n)
	errs := make([]error, cfg.Clients)
	began, used := time.Now(), cfg.CPU()
	var group sync.WaitGroup
	for g := range cfg.Clients {
		group.Go(func() { errs[g] = k.client(ctx, l.Addr().String(), key, took, g, cfg.Clients) })
	}
	group.Wait()
	elapsed := time.Since(began)
	used = cfg.CPU() - used
	stop()
	if err := errors.Join(slices.Concat(errs, []error{<-ended})...); err != nil {
		return Figure{}, err
	}
	slices.Sort(took)
	ms := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000
	}
	f := k.target
	f.Name, f.Requests, f.Rate = k.name, k.n, float64(k.n*k.each)/elapsed.Seconds()
	f.P50, f.P99, f.CPU = ms(0.5), ms(0.99), micros(used, k.n*k.each)
	return f, nil
}

// client sends every so many-th request on a connection of its own, and times it.
func (k kind) client(ctx context.Context, addr, key string, took []time.Duration, first, step int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // who waits for an answer is woken
	defer c.Close()
	in := bufio.NewReader(c)
	var body, request []byte
	paths := strings.Fields(k.path)
	for i := first; i < len(took); i += step {
		body = k.body(body[:0], i)
		request = fmt.Appendf(request[:0], "POST %s HTTP/1.1\r\nHost: load\r\nX-API-Key: %s\r\n"+
			"Content-Length: %d\r\n\r\n%s", paths[i%len(paths)], key, len(body), body)
		began := time.Now()
		if _, err := c.Write(request); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		got, err := io.ReadAll(answer.Body)
		took[i] = time.Since(began)
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		if answer.StatusCode/100 != 2 || k.want != "" && bytes.Count(got, []byte(k.want)) != k.each {
			return fmt.Errorf("request %d was answered %d", i, answer.StatusCode)
		}
	}
	return nil
}

// A syncedLog is a file to which groups of writers append, and know when it is on disk.
type syncedLog struct {
	f    *os.File
	mu   sync.Mutex
	wait []byte        // what the next group writes
	done chan struct{} // closed when it is on disk
	wake chan struct{}
	end  chan struct{}
	err  error // of the disk, from then on
}

func newLog(dir string) (*syncedLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, "peer.log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &syncedLog{f: f, done: make(chan struct{}), wake: make(chan struct{}, 1), end: make(chan struct{})}
	go l.run()
	return l, nil
}

func (l *syncedLog) append(line []byte) error {
	l.mu.Lock()
	l.wait = append(l.wait, line...)
	done := l.done
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *syncedLog) run() {
	defer close(l.end)
	for range l.wake {
		l.mu.Lock()
		group, done := l.wait, l.done
		l.wait, l.done = nil, make(chan struct{})
		l.mu.Unlock()
		if len(group) > 0 {
			_, err := l.f.Write(group)
			if err = errors.Join(err, l.f.Sync()); err != nil {
				l.mu.Lock()
				l.err = err
				l.mu.Unlock()
			}
		}
		close(done)
	}
}

func (l *syncedLog) close() error {
	close(l.wake)
	<-l.end
	return errors.Join(l.f.Close(), os.Remove(l.f.Name()))
}
