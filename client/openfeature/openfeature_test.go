package openfeature_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	of "github.com/open-feature/go-sdk/openfeature"

	"github.com/sotto-dp/sotto/client"
	sotto "github.com/sotto-dp/sotto/client/openfeature"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
)

const rest = `
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1m
`

// A service is a real one, and what was reported to it.
type service struct {
	*servetest.Service
	t        *testing.T
	provider *sotto.Provider

	mu  sync.Mutex
	got map[string][]float64 // by decision
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{Service: servetest.New(t, serve.Config{}), t: t, got: map[string][]float64{}}
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/batch") {
			b, err := io.ReadAll(r.Body)
			var in struct {
				Rewards []struct {
					Decision string
					Reward   float64
				}
			}
			if err != nil || json.Unmarshal(b, &in) != nil {
				t.Errorf("%s, %v", b, err)
			}
			s.mu.Lock()
			for _, x := range in.Rewards {
				s.got[x.Decision] = append(s.got[x.Decision], x.Reward)
			}
			s.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(b))
		}
		return false
	})
	for name, arms := range map[string]string{
		"color":  `[{name: red, value: "#c00"}, {name: blue, value: "#00c"}]`,
		"on":     `[{name: "no", value: false}, {name: "yes", value: true}]`,
		"size":   `[{name: small, value: 1.5}, {name: large, value: 2.5}]`,
		"count":  `[{name: few, value: 9007199254740993}, {name: many, value: 12}]`,
		"style":  `[{name: plain, value: {font: serif, size: 3}}, {name: loud, value: [1, x]}]`,
		"silent": `[{name: a}, {name: b}]`,
		"free":   `[{name: a, value: 1}, {name: b, value: 2}]`,
		"some":   `[{name: a, value: 1}, {name: b, value: 2}]`,
	} {
		text := fmt.Sprintf("name: %s\narms: %s%s", name, arms, rest)
		if name == "free" {
			text += "sticky: false\n"
		} else if name == "some" {
			text += "only: {plan: [pro], seats: [7]}\n"
		}
		s.Start(text)
	}
	return s
}

// sdk is the SDK's client of the service, with a provider of these settings.
func (s *service) sdk(cfg sotto.Config) *of.Client {
	s.t.Helper()
	return s.sdkWith(s.Key(serve.ScopeDecide|serve.ScopeReward), cfg)
}

func (s *service) sdkWith(key string, cfg sotto.Config) *of.Client {
	s.t.Helper()
	c, err := client.New(s.URL, key)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := sotto.New(c, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.provider = p
	if err := of.SetNamedProviderAndWait(s.t.Name(), p); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = of.SetNamedProviderAndWait(s.t.Name(), of.NoopProvider{}) })
	return of.NewClient(s.t.Name())
}

func unit(name string) of.EvaluationContext {
	return of.NewEvaluationContext(name, map[string]any{"plan": "free"})
}

// Every type is evaluated by the SDK, and what it is told of an arm fits the arm.
func TestEvaluate(t *testing.T) {
	s := newService(t)
	c := s.sdk(sotto.Config{})
	ctx := t.Context()
	arms := map[string]any{"red": "#c00", "blue": "#00c", "no": false, "yes": true, "small": 1.5, "large": 2.5,
		"few": int64(9007199254740993), "many": int64(12),
		"plain": map[string]any{"font": "serif", "size": 3.0}, "loud": []any{1.0, "x"},
		"a": "a", "b": "b"} // of "silent", whose arms have no value: their names
	for i := range 6 {
		who := unit(fmt.Sprint("visitor ", i%3))
		check := func(value any, d of.EvaluationDetails, err error) {
			t.Helper()
			token, _ := d.FlagMetadata[sotto.Decision].(string)
			if err != nil || !reflect.DeepEqual(value, arms[d.Variant]) || d.Reason != of.SplitReason ||
				len(token) != 58 || d.FlagMetadata[sotto.Propensity].(float64) <= 0 ||
				d.FlagMetadata[sotto.Expires] == "" {
				t.Errorf("%v: %+v, %v", value, d, err)
			}
		}
		v1, err := c.StringValueDetails(ctx, "color", "usual", who)
		check(v1.Value, v1.EvaluationDetails, err)
		again, err := c.StringValueDetails(ctx, "color", "usual", who)
		if again.FlagMetadata[sotto.Decision] != v1.FlagMetadata[sotto.Decision] {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		v2, err := c.BooleanValueDetails(ctx, "on", false, who)
		check(v2.Value, v2.EvaluationDetails, err)
		v3, err := c.FloatValueDetails(ctx, "size", 0, who)
		check(v3.Value, v3.EvaluationDetails, err)
		v4, err := c.IntValueDetails(ctx, "count", 0, who)
		check(v4.Value, v4.EvaluationDetails, err)
		v5, err := c.ObjectValueDetails(ctx, "style", nil, who)
		check(v5.Value, v5.EvaluationDetails, err)
		v6, err := c.StringValueDetails(ctx, "silent", "usual", who)
		check(v6.Value, v6.EvaluationDetails, err)
		v7, err := c.ObjectValueDetails(ctx, "silent", nil, who)
		check(v7.Value, v7.EvaluationDetails, err)
	}
	if d, err := c.FloatValueDetails(ctx, "free", 0, of.NewTargetlessEvaluationContext(nil)); err != nil ||
		d.Reason != of.SplitReason {
		t.Errorf("%+v, %v", d, err)
	}
	for plan, want := range map[string]of.Reason{"pro": of.SplitReason, "free": of.DefaultReason} {
		who := of.NewEvaluationContext(plan, map[string]any{"plan": plan, "seats": 7, "x": math.NaN(),
			"y": func() {}})
		if d, err := c.IntValueDetails(ctx, "some", 0, who); err != nil || d.Reason != want || d.Value == 0 {
			t.Errorf("%s: %+v, %v", plan, d, err)
		}
	}
	if err := s.Engine.Stop(ctx, "color", "blue"); err != nil {
		t.Fatal(err)
	}
	if err := s.Engine.Pause(ctx, "size"); err != nil {
		t.Fatal(err)
	}
	d, err := c.StringValueDetails(ctx, "color", "usual", unit("new"))
	if err != nil || d.Value != "#00c" || d.Reason != of.StaticReason || d.FlagMetadata[sotto.Decision] != nil {
		t.Errorf("%+v, %v", d, err)
	}
	e, err := c.FloatValueDetails(ctx, "size", 0, unit("new"))
	if err != nil || e.Reason != of.DisabledReason || e.FlagMetadata[sotto.Decision] != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// What cannot be evaluated gives the default, and says why.
func TestEvaluationErrors(t *testing.T) {
	s := newService(t)
	c := s.sdk(sotto.Config{})
	ctx := t.Context()
	for _, x := range []struct {
		flag string
		who  of.EvaluationContext
		want of.ErrorCode
	}{
		{"none", unit("ann"), of.FlagNotFoundCode},
		{"color", of.NewTargetlessEvaluationContext(nil), of.TargetingKeyMissingCode},
		{"color", unit(strings.Repeat("x", 5000)), of.InvalidContextCode},
		{"color", of.NewTargetlessEvaluationContext(map[string]any{of.TargetingKey: 7}), of.InvalidContextCode},
		{"size", unit("ann"), of.TypeMismatchCode},
	} {
		d, err := c.StringValueDetails(ctx, x.flag, "usual", x.who)
		if err == nil || d.Value != "usual" || d.ErrorCode != x.want || d.Reason != of.ErrorReason ||
			d.FlagMetadata[sotto.Decision] != nil {
			t.Errorf("%s: %+v, %v, want %s", x.flag, d, err, x.want)
		}
	}
	if d, err := c.IntValueDetails(ctx, "size", 7, unit("bob")); err == nil || d.Value != 7 ||
		d.ErrorCode != of.TypeMismatchCode {
		t.Errorf("%+v, %v", d, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if d, err := c.StringValueDetails(gone, "color", "usual", unit("ann")); err == nil || d.Value != "usual" ||
		d.ErrorCode != of.GeneralCode {
		t.Errorf("%+v, %v", d, err)
	}
	stranger := s.sdkWith("sotto_wrong", sotto.Config{})
	if d, err := stranger.StringValueDetails(ctx, "color", "usual", unit("ann")); err == nil ||
		d.Value != "usual" || d.ErrorCode != of.GeneralCode || strings.Contains(err.Error(), "sotto_wrong") {
		t.Errorf("%+v, %v", d, err)
	}
	fine, err := client.New(s.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []sotto.Config{{Remember: -1}, {Queue: client.QueueConfig{Size: -1}}} {
		if _, err := sotto.New(fine, bad); !errors.Is(err, client.ErrRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Where a service sends no value the default is shown, which is an error: no event is the arm's reward.
func TestNoValue(t *testing.T) {
	s := newService(t)
	asked := 0
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		asked++
		if !strings.HasSuffix(r.URL.Path, "/decisions") {
			t.Errorf("%s is asked", r.URL.Path)
		}
		_, _ = io.WriteString(w, []string{`{"decision": "token", "arm": "a", "value": null, "reason": "split"}`,
			`{"decision": "token", "arm": "a", "reason": "split"}`}[asked%2])
		return true
	})
	c := s.sdk(sotto.Config{})
	for range 2 {
		d, err := c.ObjectValueDetails(t.Context(), "silent", "usual", unit("ann"))
		if err == nil || d.Value != "usual" || d.ErrorCode != of.TypeMismatchCode {
			t.Errorf("%+v, %v", d, err)
		}
		c.Track(t.Context(), "silent", unit("ann"), of.NewTrackingEventDetails(1))
	}
	if err := s.provider.ShutdownWithContext(t.Context()); err != nil || asked != 2 {
		t.Error(err, asked)
	}
}

// What the SDK tracks is the reward of the last decision for that flag and unit, of no other, and
// nobody's if there was none.
func TestTrack(t *testing.T) {
	s := newService(t)
	var log bytes.Buffer
	c := s.sdk(sotto.Config{Events: map[string][]string{"checkout": {"color", "on"}}, Remember: 150,
		Queue: client.QueueConfig{Log: slog.New(slog.NewTextHandler(&log, nil))}})
	ctx := t.Context()
	value := of.NewTrackingEventDetails
	const units = 100
	decided := map[string]string{} // by unit
	for i := range units {
		who := fmt.Sprint("visitor ", i)
		d, err := c.StringValueDetails(ctx, "color", "usual", unit(who))
		if err != nil {
			t.Fatal(err)
		}
		decided[who] = d.FlagMetadata[sotto.Decision].(string)
	}
	want := map[string][]float64{}
	// An event of two experiments, of which one evaluated nothing.
	for i := range units / 2 {
		who := fmt.Sprint("visitor ", i)
		c.Track(ctx, "checkout", unit(who), value(float64(i)))
		want[decided[who]] = []float64{float64(i)}
	}
	c.Track(ctx, "color", unit("stranger"), value(1))
	c.Track(ctx, "color", of.NewTargetlessEvaluationContext(nil), value(1))
	c.Track(ctx, "none", unit("visitor 1"), value(1))
	c.Track(ctx, "color", unit("visitor 99"), value(0.5))
	want[decided["visitor 99"]] = []float64{0.5}
	// A value of another type was not shown, so that it has no reward.
	if _, err := c.StringValue(ctx, "size", "usual", unit("ann")); err == nil {
		t.Error("1.5 is a string")
	}
	c.Track(ctx, "size", unit("ann"), value(1))
	// The oldest are pushed out by those of another flag, and report by their decisions.
	for i := range 149 {
		if _, err := c.BooleanValue(ctx, "on", false, unit(fmt.Sprint("other ", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := units / 2; i < units-1; i++ {
		who := fmt.Sprint("visitor ", i)
		c.Track(ctx, "color", unit(who), value(1))
		c.Track(ctx, "color", unit(who), value(0.75).Add(sotto.Decision, decided[who]))
		want[decided[who]] = []float64{0.75}
	}
	c.Track(ctx, "color", unit("visitor 99"), value(0.25)) // the last one is still known
	want[decided["visitor 99"]] = []float64{0.5, 0.25}
	c.Track(ctx, "color", unit("visitor 99"), value(math.NaN()))
	if text := log.String(); !strings.Contains(text, "an event was not tracked") ||
		strings.Contains(text, "NaN") || strings.Contains(text, "visitor") {
		t.Error(text)
	}
	log.Reset()
	if err := s.provider.ShutdownWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.got, want) {
		t.Errorf("reported were %v, want %v", s.got, want)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// Events that wait when the provider is shut down are sent, or said to be lost.
func TestShutdown(t *testing.T) {
	s := newService(t)
	c := s.sdk(sotto.Config{})
	d, err := c.StringValueDetails(t.Context(), "color", "usual", unit("ann"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Engine.Close(); err != nil { // rewards get 503
		t.Fatal(err)
	}
	c.Track(t.Context(), "color", unit("ann"), of.NewTrackingEventDetails(1))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.provider.ShutdownWithContext(ctx); !errors.Is(err, client.ErrUnsent) {
		t.Errorf("%+v, %v", d, err)
	}
}

// By name an event goes to the service with its unit and its attributes, whoever evaluated.
func TestTrackByName(t *testing.T) {
	s := newService(t)
	var got []string
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/track" {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = append(got, string(b))
			r.Body = io.NopCloser(bytes.NewReader(b))
		}
		return false
	})
	var log bytes.Buffer
	c := s.sdk(sotto.Config{ByName: true, Queue: client.QueueConfig{Log: slog.New(slog.NewTextHandler(&log, nil))}})
	c.Track(t.Context(), "checkout", unit("ann"), of.NewTrackingEventDetails(7).Add("id", "order 1").Add("items", 2).
		Add("name", "x").Add("cart", map[string]any{"a": 1}))
	c.Track(t.Context(), "checkout", of.NewTargetlessEvaluationContext(nil), of.NewTrackingEventDetails(7))
	c.Track(t.Context(), "checkout", unit("bob"), of.NewTrackingEventDetails(0))
	c.Track(t.Context(), "checkout", unit("eve"), of.TrackingEventDetails{})
	if err := s.provider.ShutdownWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, "")
	for _, want := range []string{`{"id":"order 1","items":2,"name":"checkout","targetingKey":"ann","value":7}`,
		`"targetingKey":"bob","value":0}`, `"targetingKey":"eve"}`} { // eve's has none
		if strings.Count(all, want) != 1 || strings.Count(all, "targetingKey") != 3 {
			t.Errorf("%v, must have %s", got, want)
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "unit is missing") {
		t.Error(text)
	}
}

// A context without consent is given the fallback and no decision, also of a unit that has one.
func TestConsent(t *testing.T) {
	s := newService(t)
	c := s.sdk(sotto.Config{})
	for _, consent := range []bool{false, true, false} {
		d, err := c.StringValueDetails(t.Context(), "color", "usual", of.NewEvaluationContext("ann", map[string]any{"consent": consent}))
		if err != nil || (d.FlagMetadata[sotto.Decision] != nil) != consent {
			t.Errorf("consent %v: %+v, %v", consent, d, err)
		}
		if !consent && (d.Value != "#c00" || d.Reason != of.DefaultReason) {
			t.Errorf("%+v", d)
		}
	}
}
