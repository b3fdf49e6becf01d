package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
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
		"unit has 4097 bytes, must":   {Name: "checkout", Unit: strings.Repeat("6543", 1024) + "x"},
		"name has 257 bytes, must":    {Name: strings.Repeat("x", 257), Unit: "ann"},
		"id has 257 bytes, must":      {Name: "checkout", Unit: "ann", ID: strings.Repeat("x", 257)},
		"unit must be Unicode":        {Name: "checkout", Unit: "6543\xff"},
		"id must be Unicode":          {Name: "checkout", Unit: "ann", ID: "6543\ufffd"},
		"timestamp must have a year":  {Name: "checkout", Unit: "ann", At: time.Date(16543, 1, 1, 0, 0, 0, 0, time.UTC)},
		"timestamp must":              {Name: "checkout", Unit: "ann", At: time.Date(-6543, 1, 1, 0, 0, 0, 0, time.UTC)},
		"value must be a":             {Name: "checkout", Unit: "ann", Fields: map[string]any{"value": math.NaN()}},
		"value must be":               {Name: "checkout", Unit: "ann", Fields: map[string]any{"value": "6543"}},
		"value must":                  {Name: "checkout", Unit: "ann", Fields: map[string]any{"value": json.Number("1e6543")}},
		"has no JSON":                 {Name: "checkout", Unit: "ann", Fields: map[string]any{"total": func() {}}},
	} {
		for _, err := range []error{c.Track(t.Context(), v), q.Track(v)} {
			if !errors.Is(err, client.ErrRequest) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "6543") {
				t.Errorf("want %q, got %v", want, err)
			}
		}
	}
	if err := c.Track(t.Context()); !errors.Is(err, client.ErrRequest) {
		t.Error(err)
	}
}

// An event that the service refuses takes none of its batch along, nor do events that are too large together; what
// was taken is not sent again when another half was not.
func TestQueueHalves(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge} {
		var taken []string
		failed := false
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var in struct {
				Events []struct {
					Unit string `json:"targetingKey"`
				}
			}
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			var units []string
			for _, v := range in.Events {
				units = append(units, v.Unit)
			}
			switch {
			case slices.Contains(units, "6543"), status == http.StatusRequestEntityTooLarge && len(units) > 2:
				w.WriteHeader(status)
			case slices.Contains(units, "9") && !failed:
				failed = true
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				taken = append(taken, units...)
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, "{}")
			}
		}))
		defer s.Close()
		c, err := client.New(s.URL, "sotto_key")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		q := queue(t, c, client.QueueConfig{First: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
		var want []string
		for i := range 10 {
			unit := fmt.Sprint(i)
			if i == 3 {
				unit = "6543"
			} else {
				want = append(want, unit)
			}
			if err := q.Track(client.Event{Name: "checkout", Unit: unit}); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil || !failed {
			t.Error(failed, err)
		}
		if slices.Sort(taken); !slices.Equal(taken, want) {
			t.Errorf("%d: %v were taken, must be %v", status, taken, want)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "events=1 ") ||
			strings.Contains(text, "experiment") || strings.Contains(text, "6543") {
			t.Error(text)
		}
	}
}
