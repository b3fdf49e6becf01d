package client_test

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
)

// An event of a running service is ranked, is the same when it is asked for again, and is rewarded
// and activated by its name, whatever is in that.
func TestRank(t *testing.T) {
	s := newService(t)
	s.createWith("shown", "exposure: activate\nactivate_within: 1h\n")
	c := s.client()
	ask := client.RankRequest{Event: "visit 7/%2F?ü", Actions: []client.Action{{ID: "blue"}, {ID: "red"}}}
	for _, experiment := range []string{"shop", "shown"} {
		d, err := c.Rank(t.Context(), experiment, ask)
		if err != nil || d.Event != ask.Event || d.Reason != "split" || d.Expires.IsZero() ||
			d.ActivateBy.IsZero() != (experiment == "shop") || len(d.Ranked) != 2 || d.Ranked[0].ID != "blue" ||
			d.Propensity <= 0 || !strings.Contains(d.Guarantee, "epsilon=1") {
			t.Fatalf("%+v, %v", d, err)
		}
		if again, err := c.Rank(t.Context(), experiment, ask); err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%+v, was %+v, %v", again, d, err)
		}
		for _, of := range []func() (client.Status, error){
			func() (client.Status, error) { return c.ActivateEvent(t.Context(), experiment, d.Event) },
			func() (client.Status, error) { return c.RewardEvent(t.Context(), experiment, d.Event, 1) },
		} {
			if got, err := of(); got != client.Accepted || err != nil {
				t.Error(got, err)
			}
		}
	}
	drawn, err := c.Rank(t.Context(), "shop", client.RankRequest{Actions: ask.Actions})
	if err != nil || drawn.Event == "" {
		t.Fatal(drawn, err)
	}
	s.pass(2 * time.Hour)
	if got, err := c.RewardEvent(t.Context(), "shop", drawn.Event, 1); got != client.Late || err != nil {
		t.Error(got, err)
	}
}

// What is wrong with a rank or a report on an event matches an error, and has no reward in it.
func TestRankErrors(t *testing.T) {
	s := newService(t)
	c := s.client()
	rank := func(c *client.Client, ask client.RankRequest) error {
		_, err := c.Rank(t.Context(), "shop", ask)
		return err
	}
	report := func(experiment, event string, value float64) error {
		_, err := c.RewardEvent(t.Context(), experiment, event, value)
		return err
	}
	nobody := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	defer nobody.Close()
	other, err := client.New(nobody.URL, "sotto_key")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want error }{
		"no actions": {rank(c, client.RankRequest{}), client.ErrRequest},
		"unknown action": {rank(c, client.RankRequest{Actions: []client.Action{{ID: "green"}}}),
			client.ErrRequest},
		"no JSON": {rank(c, client.RankRequest{Context: map[string]any{"x": math.NaN()}}),
			client.ErrRequest},
		"no answer":     {rank(other, client.RankRequest{}), client.ErrAnswer},
		"unknown event": {report("shop", "never ranked", 0.731), client.ErrNotFound},
		"no experiment": {report("none", "x", 0.731), client.ErrNotFound},
		"no event":      {report("shop", "", 0.731), client.ErrRequest},
		"dots":          {report("shop", "..", 0.731), client.ErrRequest},
		"long":          {report("shop", strings.Repeat("x", 5000), 0.731), client.ErrRequest},
		"no number":     {report("shop", "x", math.Inf(1)), client.ErrRequest},
	} {
		if !errors.Is(c.got, c.want) || strings.Contains(c.got.Error(), "731") {
			t.Errorf("%s: %v", name, c.got)
		}
	}
	if _, err := c.ActivateEvent(t.Context(), "shop", "never ranked"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

// An experiment with contexts is ranked with features, nested ones too.
func TestRankContexts(t *testing.T) {
	s := newService(t)
	s.Start(`
name: news
contextual:
  context: {user.age: {range: [0, 100], cross_only: true}}
  action: {topic: {values: [news, sport]}}
  cross: [{of: [user.age, topic]}]
policy: {policy: adac-oful, greed: 1, lambda: 30}
horizon: 1e5
budget: {rho: 1}
unit: {of: visit}
window: 10m
floor: 0.1
`)
	c := s.client()
	ask := client.RankRequest{Context: map[string]any{"user": map[string]any{"age": 34}}, Deferred: true,
		Excluded: []string{"a"}, Actions: []client.Action{{"a", map[string]any{"topic": "news"}},
			{"b", map[string]any{"topic": "sport"}}, {"c", nil}}}
	d, err := c.Rank(t.Context(), "news", ask)
	if err != nil || d.Action == "a" || d.Ranked[0].Probability != 0 || d.ActivateBy.IsZero() ||
		!strings.Contains(d.Guarantee, "contexts, features, ids of actions") {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, of := range []func() (client.Status, error){
		func() (client.Status, error) { return c.ActivateEvent(t.Context(), "news", d.Event) },
		func() (client.Status, error) { return c.RewardEvent(t.Context(), "news", d.Event, 1) },
	} {
		if got, err := of(); got != client.Accepted || err != nil {
			t.Error(got, err)
		}
	}
	ask.Context["colour"] = "red"
	var refused *client.Error
	if _, err := c.Rank(t.Context(), "news", ask); !errors.As(err, &refused) || refused.Field != "context.colour" {
		t.Error(err)
	}
}
