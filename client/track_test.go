package client_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
)

// Events are rewards of their units' decisions, told one by one or by a queue that sends them again.
func TestTrack(t *testing.T) {
	s := newService(t)
	s.Start(strings.NewReplacer("name: shop", "name: heard", "default: 0", "default: 0, event: checkout").Replace(declaration))
	c := s.client()
	for i := range 20 {
		if d, err := c.Decide(t.Context(), "heard", client.Unit{Name: fmt.Sprint(i)}); err != nil || d.Token == "" {
			t.Fatal(d, err)
		}
	}
	if err := c.Track(t.Context(), client.Event{Name: "checkout", Unit: "0"}, client.Event{Name: "checkout", Unit: "1",
		ID: "order 1", At: time.Now().Add(time.Second), Fields: map[string]any{"value": 1, "new": true, "plan": "pro"}},
		client.Event{Name: "checkout", Unit: "nobody"}); err != nil {
		t.Fatal(err)
	}
	failures := 3
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return failures >= 0
	})
	q := queue(t, c, client.QueueConfig{Batch: 5, First: time.Millisecond})
	for i := 2; i < 20; i++ {
		if err := q.Track(client.Event{Name: "checkout", Unit: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(t.Context()); err != nil || failures >= 0 {
		t.Fatal(failures, err)
	}
	if err := s.Engine.Stop(t.Context(), "heard", ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.pass(time.Hour)
	}
	if n := s.summed.Load(); n != 20 { // each of them is 1, as its curator sees to
		t.Errorf("%d decisions are released, must be 20", n)
	}
	for want, v := range map[string]client.Event{
		"name is missing":             {Unit: "ann"},
		"unit is missing":             {Name: "checkout"},
		"fields has timestamp, which": {Name: "checkout", Unit: "ann", Fields: map[string]any{"timestamp": 1}},
		"fields must be finite":       {Name: "checkout", Unit: "ann", Fields: map[string]any{"total": math.Inf(1)}},
		"has no JSON":                 {Name: "checkout", Unit: "ann", Fields: map[string]any{"total": func() {}}},
	} {
		if err := c.Track(t.Context(), v); !errors.Is(err, client.ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err := c.Track(t.Context()); !errors.Is(err, client.ErrRequest) {
		t.Error(err)
	}
}
