package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
)

// A network carries what clients ask to the process that answers, and lies: it is slow, loses questions and
// answers, and delivers a question twice.
type network struct {
	w      *world
	client *client.Client
}

var errNetwork = errors.New("the connection is lost")

// dial has a client with a key.
func (w *world) dial() error {
	secret, _, err := w.p.e.NewKey(w.t.Context(), "people", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		return err
	}
	w.net = &network{w: w}
	w.net.client, err = client.New("http://sotto.test", secret, client.HTTPClient(&http.Client{Transport: w.net,
		Timeout: 15 * time.Second}))
	return err
}

// RoundTrip carries one question, and perhaps its answer.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	w := n.w
	w.count.requests++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	how := w.IntN(20)
	if how < 4 {
		w.rest(time.Duration(1+w.IntN(2_000_000)) * time.Microsecond)
	}
	if how == 4 {
		return nil, errNetwork
	}
	answer := n.carry(r, body)
	switch how {
	case 5:
		answer = n.carry(r, body)
	case 6:
		return nil, errNetwork
	}
	return answer, nil
}

// carry has a process answer.
func (n *network) carry(r *http.Request, body []byte) *http.Response {
	p := n.w.p
	if p.answers == nil {
		p.answers = api.Handler(api.Config{Engine: p.e, NewUnits: math.Inf(1)})
	}
	again := r.Clone(r.Context())
	again.Body, again.RequestURI, again.RemoteAddr = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI(), "127.0.0.1:1"
	rec := httptest.NewRecorder()
	p.answers.ServeHTTP(rec, again)
	return rec.Result()
}

// asks asks for an arm, over the network where there is one.
func (w *world) asks(b *book, unit, person string, about map[string]any) (token string, arm int, why serve.Reason,
	ticket []byte, err error) {
	if w.net == nil || b.x.Trust != "" {
		d, err := w.p.e.DecideFor(w.t.Context(), b.x.Name, serve.Ask{Unit: unit, Person: person, Context: about})
		if d.Report != nil {
			ticket = d.Report.Ticket
		}
		return d.Token, d.Arm, d.Reason, ticket, err
	}
	d, err := w.net.client.Decide(w.t.Context(), b.x.Name, client.Unit{Name: unit, Person: person, Context: about})
	return d.Token, 0, serve.Reason(d.Reason), nil, err
}

// about is the context of a decision, in which a device may be one that nobody has declared, or none.
func (w *world) about(b *book) map[string]any {
	out := map[string]any{}
	switch w.IntN(3) {
	case 0:
		out["country"] = "ch"
	case 1:
		out["country"] = "fr"
	}
	if b.cells.Count > 0 && w.IntN(6) > 0 {
		out["device"] = pick[any](w.Rand, "phone", "phone", 3.0, true, "tv")
	}
	return out
}

// rewards reports outcomes, over the network where there is one.
func (w *world) rewards(b *book, outcomes []serve.Outcome) ([]serve.Result, error) {
	if w.net == nil || len(b.x.Metrics) > 0 {
		return w.p.e.Outcomes(w.t.Context(), b.x.Name, outcomes)
	}
	reports := make([]client.Report, len(outcomes))
	for i, o := range outcomes {
		if reports[i] = (client.Report{Decision: o.Token, Reward: o.Reward, ID: o.ID}); math.IsNaN(o.Reward) {
			reports[i].Reward = b.x.Lo // JSON has no such number
		}
	}
	all, err := w.net.client.Rewards(w.t.Context(), b.x.Name, reports)
	if err != nil {
		return nil, err
	}
	out := make([]serve.Result, len(all))
	for i, r := range all {
		if out[i] = (serve.Result{Status: serve.Status(r.Status)}); r.Status == "" {
			out[i].Err = fmt.Errorf("it says %+v", r)
		}
	}
	return out, nil
}

// queue reports through a client's queue, which sends again what was not taken: when it has closed without an
// error, all of it was.
func (w *world) queue(b *book, batch []*given) {
	q, err := w.net.client.Queue(client.QueueConfig{First: 100 * time.Millisecond, Most: time.Second})
	if err != nil {
		w.fail(err)
		return
	}
	for _, g := range batch {
		reward, _ := w.report(b, g.h.index, g.h.arm)
		if math.IsNaN(reward) {
			reward = b.x.Lo
		}
		if g.h.reward == unsent {
			g.h.reward = unsure
		}
		w.fail(q.Add(b.x.Name, g.token, reward))
	}
	w.count.rewards += len(batch)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if q.Close(ctx) != nil {
		return
	}
	for _, g := range batch { // its answer is not told: it was accepted unless its window has passed
		if w.clock(w.p) < g.deadline && !w.jumped {
			g.h.reward = acked
			w.count.accepted++
		}
	}
}
