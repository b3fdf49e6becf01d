// Command visitors sends visitors to a running sotto serve and says what each of four ways to choose earns
// of them: dp-lin-ts, as a declaration with contexts has it, the same without noise that shows, greedy
// choices on adac-oful, and the best fixed action. They click at 5 % where choices are uniform and at 8 % where they
// are best, on three devices and four topics (d = 20), as d20 of examples/worlds.yaml has it. Every experiment has the same
// visitors, each of whom clicks on an action in all of them or in none.
//
//	sotto serve
//	SOTTO_KEY=sotto_… go run ./examples/visitors -seed 1
//
// The key is one of scope admin. Each seed is another world, and the experiments' names end with it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clicks"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/noise"
)

// declaration is of a name, a policy's line or none, a budget, a window and a floor.
const declaration = `
name: %s-%d
contextual:
  context: {device: {values: [phone, tablet, desktop]}}
  action: {topic: {values: [news, sport, culture, games]}}
  cross: [{of: [device, topic]}]
  actions: 4
%sbudget: {rho: %g}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: %v
floor: %v
`

// uniform and best are what such choices earn a visitor.
const uniform, best = 0.05, 0.08

// A way is an experiment, and what each visitor's action earns on average there.
type way struct {
	name, says string
	policy     string
	rho, floor float64
	earned     []float64
	late       atomic.Int64 // clicks
}

func ways() []*way {
	return []*way{
		{name: "default", says: "dp-lin-ts, ρ = 1", rho: 1, floor: 0.02},
		{name: "greedy", says: "adac-oful, greed 1, λ = 100, floor 0.1, ρ = 1", rho: 1, floor: 0.1,
			policy: "policy: {policy: adac-oful, greed: 1, lambda: 100}\n"},
		{name: "open", says: "dp-lin-ts, ρ = 10⁹", rho: 1e9, floor: 0.02},
	}
}

// An audience is who comes.
type audience struct {
	devices, topics []string
	come            []int       // devices, each as likely
	clicks          [][]float64 // by device and topic
	seed            uint64
}

func newAudience(x *decl.Experiment, seed uint64) (*audience, error) {
	m := x.Contextual.Features
	mapper, err := feature.New(m)
	if err != nil {
		return nil, err
	}
	src := noise.NewFast(seed, 33)
	world, err := clicks.World{Map: m, Actions: 4, Mean: uniform, Gap: best - uniform}.Generate(&src)
	if err != nil {
		return nil, err
	}
	a := &audience{devices: m.Context[0].Values, topics: m.Action[0].Values, seed: seed}
	device := make([]int, len(world.Actions)) // of each context of the world
	for d, name := range a.devices {
		vectors, err := mapper.Vectors(nil, map[string]any{"device": name}, a.actions(0))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(world.Actions, func(v []float64) bool { return slices.Equal(v, vectors) })
		if i < 0 {
			return nil, fmt.Errorf("nobody comes with a %s, take another seed", name)
		}
		device[i] = d
		means := make([]float64, len(a.topics))
		for j, x := range world.Means[i] {
			means[j] = (x + 1) / 2
		}
		a.clicks = append(a.clicks, means)
	}
	for _, i := range world.Of {
		a.come = append(a.come, device[i])
	}
	return a, nil
}

// actions are the topics, from one on: before a release policies give the first, which is nobody's merit.
func (a *audience) actions(from int) (out []feature.Action) {
	for i := range a.topics {
		topic := a.topics[(from+i)%len(a.topics)]
		out = append(out, feature.Action{ID: topic, Features: map[string]any{"topic": topic}})
	}
	return out
}

// visitor is the n-th one's device, and below which chance it clicks.
func (a *audience) visitor(n int) (device int, click float64) {
	src := rand.New(rand.NewPCG(a.seed, uint64(n)))
	return a.come[src.IntN(len(a.come))], src.Float64()
}

// fixed is what one topic for all earns of each visitor, that which earns most of all of them.
func (a *audience) fixed(visitors int) (topic string, earned []float64) {
	most := -1.0
	for j := range a.topics {
		sum, all := 0.0, make([]float64, visitors)
		for n := range all {
			device, _ := a.visitor(n)
			all[n] = a.clicks[device][j]
			sum += all[n]
		}
		if sum > most {
			most, topic, earned = sum, a.topics[j], all
		}
	}
	return topic, earned
}

// A study is visitors and where they are sent.
type study struct {
	url, key string
	visitors int
	rate     float64 // visitors a second
	clients  int     // at once
	window   time.Duration
	seed     uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := study{url: cmp.Or(os.Getenv("SOTTO_SERVER"), "http://127.0.0.1:8080"), key: os.Getenv("SOTTO_KEY")}
	flag.IntVar(&s.visitors, "visitors", 100_000, "how many come")
	flag.Float64Var(&s.rate, "rate", 200, "visitors a second, if that is reached")
	flag.IntVar(&s.clients, "clients", 256, "visitors at once")
	flag.DurationVar(&s.window, "window", 4*time.Second, "of a reward")
	flag.Uint64Var(&s.seed, "seed", 1, "of the world")
	flag.Parse()
	if err := s.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "visitors:", err)
		os.Exit(1)
	}
}

func (s *study) run(ctx context.Context, out io.Writer) error {
	switch {
	case s.visitors < 1:
		return fmt.Errorf("-visitors is %d, must be at least 1", s.visitors)
	case s.clients < 1:
		return fmt.Errorf("-clients is %d, must be at least 1", s.clients)
	case !(s.rate > 0):
		return fmt.Errorf("-rate is %v, must be above 0", s.rate)
	}
	c, err := client.New(s.url, s.key, client.HTTPClient(&http.Client{Timeout: time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: s.clients}}))
	if err != nil {
		return fmt.Errorf("SOTTO_SERVER and SOTTO_KEY: %w", err)
	}
	all := ways()
	var a *audience
	for _, w := range all {
		text := fmt.Appendf(nil, declaration, w.name, s.seed, w.policy, w.rho, s.window, w.floor)
		x, err := decl.Reader{}.Parse(w.name, text)
		if err == nil {
			err = s.start(ctx, x.Name, text)
		}
		if err == nil && a == nil {
			a, err = newAudience(x, s.seed)
		}
		if err != nil {
			return err
		}
		w.earned = make([]float64, s.visitors)
	}
	began := time.Now()
	came, err := s.send(ctx, c, a, all)
	if err != nil {
		return err
	}
	took := time.Since(began)
	rate := float64(came) / took.Seconds()
	for _, w := range all {
		if n := w.late.Load(); n > 0 {
			fmt.Fprintf(out, "%d clicks came to %s when its window was over, take a longer one\n", n, w.name)
		}
	}
	topic, earned := a.fixed(came)
	all = append(all, &way{says: "the best fixed action, " + topic, earned: earned})
	fmt.Fprintf(out, "seed %d: %d visitors in %v, %.0f a second: a click may take %.0f decisions\n\n", s.seed, came,
		took.Round(time.Second), rate, rate*s.window.Seconds())
	return a.table(out, all, came)
}

// start has the service create and start an experiment.
func (s *study) start(ctx context.Context, name string, text []byte) error {
	if err := s.post(ctx, "", text); err != nil {
		return err
	}
	return s.post(ctx, "/"+name+"/start", nil)
}

func (s *study) post(ctx context.Context, path string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/experiments"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-API-Key", s.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 400 {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(said))
	}
	return err
}

// send has visitors come one after the other, some of them at once, and each click or not. It says how many came:
// fewer where it is interrupted, which ends nobody's visit.
func (s *study) send(ctx context.Context, c *client.Client, a *audience, all []*way) (came int, err error) {
	visits, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range s.clients {
		group.Go(func() {
			for n := range next {
				for _, w := range all {
					if err := a.visit(visits, c, w, n); err != nil {
						stop(err)
						return
					}
				}
			}
		})
	}
	began := time.Now()
	for ; came < s.visitors && ctx.Err() == nil && visits.Err() == nil; came++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(came) / s.rate * float64(time.Second)))))
		select {
		case next <- came:
		case <-visits.Done():
		}
	}
	close(next)
	group.Wait()
	return came, context.Cause(visits)
}

// visit has a visitor decided, and click.
func (a *audience) visit(ctx context.Context, c *client.Client, w *way, n int) error {
	device, click := a.visitor(n)
	ask := client.RankRequest{Event: fmt.Sprint(n), Context: map[string]any{"device": a.devices[device]}}
	for _, x := range a.actions(n) {
		ask.Actions = append(ask.Actions, client.Action{ID: x.ID, Features: x.Features})
	}
	name := fmt.Sprint(w.name, "-", a.seed)
	var r client.Ranking
	err := patiently(ctx, func() (err error) { r, err = c.Rank(ctx, name, ask); return err })
	if err != nil {
		return err
	}
	topic := slices.Index(a.topics, r.Action)
	if topic < 0 || r.Expires.IsZero() {
		return fmt.Errorf("%s gives visitor %d %s, which does not count (%s)", name, n, r.Action, r.Reason)
	}
	w.earned[n] = a.clicks[device][topic]
	if !(click < w.earned[n]) {
		return nil // who does not click needs no report
	}
	var status client.Status
	err = patiently(ctx, func() (err error) { status, err = c.RewardEvent(ctx, name, ask.Event, 1); return err })
	if err == nil && status != client.Accepted {
		w.late.Add(1)
	}
	return err
}

// patiently sends again for a minute where the service has not answered, or could not write: the same event is
// answered the same.
func patiently(ctx context.Context, send func() error) (err error) {
	for range 60 {
		if err = send(); !errors.Is(err, client.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
	return err
}

// table is what was earned until some visitors, a visitor and of what is to be won.
func (a *audience) table(out io.Writer, all []*way, came int) error {
	ends := slices.DeleteFunc([]int{2000, 5000, 10_000, 30_000, 100_000}, func(n int) bool { return n >= came })
	ends = append(ends, came)
	fmt.Fprint(out, "| earned a visitor · share won |")
	for _, n := range ends {
		fmt.Fprintf(out, " until %d |", n)
	}
	fmt.Fprint(out, "\n|---|")
	for range ends {
		fmt.Fprint(out, "---|")
	}
	for _, w := range all {
		fmt.Fprintf(out, "\n| %s |", w.says)
		sum, at := 0.0, 0
		for _, n := range ends {
			for ; at < n; at++ {
				sum += w.earned[at]
			}
			mean := sum / float64(n)
			fmt.Fprintf(out, " %.4f · %.0f %% |", mean, 100*(mean-uniform)/(best-uniform))
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}
