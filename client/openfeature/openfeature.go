// Package openfeature is a provider for OpenFeature's SDK for Go: an experiment of a running sotto
// serve is a flag, its arm the variant, the targeting key the unit, and what the SDK tracks is the
// reward of the last decision. Begin with New.
//
// It is imported under another name, since the SDK has this one:
//
//	import sotto "github.com/sotto-dp/sotto/client/openfeature"
package openfeature

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	of "github.com/open-feature/go-sdk/openfeature"

	"github.com/sotto-dp/sotto/client"
)

// Names in the metadata of an evaluation. The decision is also the attribute of a tracked event by
// which a process reports on what another one evaluated.
const (
	Decision   = "decision"   // to report with; missing if it does not count
	Propensity = "propensity" // the probability that the arm had
	Expires    = "expires_at" // until when a reward counts, in RFC 3339
)

// A Config says how a Provider works. Its zero value is a good one.
type Config struct {
	// Events are the experiments that an event is the reward of, by the event's name. One that is
	// not among them is the reward of the experiment of its own name.
	Events map[string][]string
	// ByName has events reported by their names and targeting keys, to all experiments that declare them
	// (reward: {event: checkout}), whichever process evaluated. Events is not looked at then.
	ByName bool
	// Remember is how many decisions are remembered for events, the latest ones; 0 is 100 000.
	Remember int
	// Queue is that of the rewards. Its log gets what could not be tracked, too.
	Queue client.QueueConfig
}

// A Provider evaluates flags by asking the service each time, and sends tracked events in the
// background. The SDK's Shutdown sends what waits.
type Provider struct {
	client *client.Client
	queue  *client.Queue
	cfg    Config

	mu    sync.Mutex
	last  map[target]string // decisions
	order []target          // of last, a ring; the oldest is at next
	next  int
}

var (
	_ of.FeatureProvider          = (*Provider)(nil)
	_ of.Tracker                  = (*Provider)(nil)
	_ of.ContextAwareStateHandler = (*Provider)(nil)
)

// A target is an experiment's unit.
type target struct{ experiment, unit string }

// New is a provider that asks by c, whose key may decide and reward.
func New(c *client.Client, cfg Config) (*Provider, error) {
	if cfg.Remember < 0 {
		return nil, fmt.Errorf("%w: remember is %d, must not be negative", client.ErrRequest, cfg.Remember)
	}
	if cfg.Remember == 0 {
		cfg.Remember = 100_000
	}
	if cfg.Queue.Log == nil {
		cfg.Queue.Log = slog.New(slog.DiscardHandler)
	}
	q, err := c.Queue(cfg.Queue)
	if err != nil {
		return nil, err
	}
	return &Provider{client: c, queue: q, cfg: cfg, last: map[target]string{}}, nil
}

// Metadata implements the SDK's FeatureProvider.
func (p *Provider) Metadata() of.Metadata { return of.Metadata{Name: "sotto"} }

// Hooks implements the SDK's FeatureProvider: there are none.
func (p *Provider) Hooks() []of.Hook { return nil }

// Init implements the SDK's StateHandler. There is nothing to wait for.
func (p *Provider) Init(of.EvaluationContext) error { return nil }

// InitWithContext implements the SDK's ContextAwareStateHandler.
func (p *Provider) InitWithContext(context.Context, of.EvaluationContext) error { return nil }

// Shutdown sends what waits, for ten seconds at most.
func (p *Provider) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.ShutdownWithContext(ctx); err != nil {
		p.cfg.Queue.Log.Error("not all tracked events were sent", "error", err)
	}
}

// ShutdownWithContext sends what waits, until ctx ends: the error then matches client.ErrUnsent.
func (p *Provider) ShutdownWithContext(ctx context.Context) error { return p.queue.Close(ctx) }

// Track reports the value of an event as the reward of the last decision of the event's
// experiments for the context's targeting key, of those that this provider evaluated; or of the
// decision that is the attribute Decision. An event without one is nobody's, and is left out: who
// saw no arm has nothing to report. By Config.ByName it reports the event itself, with its attributes, and with
// its value unless the details are the zero TrackingEventDetails: these alone have none, and the service takes 1.
func (p *Provider) Track(_ context.Context, event string, evalCtx of.EvaluationContext,
	details of.TrackingEventDetails) {
	if p.cfg.ByName {
		v := client.Event{Name: event, Unit: evalCtx.TargetingKey(), Fields: map[string]any{}}
		for name, x := range public(details.Attributes()) {
			switch text, _ := x.(string); name {
			case "id":
				v.ID = text
			case "name", "timestamp": // which have another meaning
			default:
				v.Fields[name] = x
			}
		}
		if !reflect.ValueOf(details).IsZero() {
			v.Fields["value"] = details.Value()
		}
		if err := p.queue.Track(v); err != nil {
			p.cfg.Queue.Log.Error("an event was not tracked", "error", err)
		}
		return
	}
	experiments, named := p.cfg.Events[event]
	if !named {
		experiments = []string{event}
	}
	given, _ := details.Attribute(Decision).(string)
	for _, x := range experiments {
		token := given
		if token == "" && evalCtx.TargetingKey() != "" {
			p.mu.Lock()
			token = p.last[target{x, evalCtx.TargetingKey()}]
			p.mu.Unlock()
		}
		if token == "" {
			continue
		}
		if err := p.queue.Add(x, token, details.Value()); err != nil {
			p.cfg.Queue.Log.Error("an event was not tracked", "experiment", x, "error", err)
		}
	}
}

// remember keeps a decision, and forgets the oldest one.
func (p *Provider) remember(who target, token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.last[who]
	p.last[who] = token
	switch {
	case known:
	case len(p.order) < p.cfg.Remember:
		p.order = append(p.order, who)
	default:
		delete(p.last, p.order[p.next])
		p.order[p.next] = who
		p.next = (p.next + 1) % len(p.order)
	}
}

// public is what an experiment may ask of a context: text, booleans and numbers.
func public(flat of.FlattenedContext) map[string]any {
	out := map[string]any{}
	for name, v := range flat {
		switch v.(type) {
		case string, bool, int, int64, float64:
			if _, err := json.Marshal(v); err == nil && name != of.TargetingKey {
				out[name] = v
			}
		}
	}
	return out
}

// decide asks for the arm of a flag.
func (p *Provider) decide(ctx context.Context, flag string, flat of.FlattenedContext) (json.RawMessage,
	of.ProviderResolutionDetail) {
	fail := func(err of.ResolutionError) (json.RawMessage, of.ProviderResolutionDetail) {
		return nil, of.ProviderResolutionDetail{ResolutionError: err, Reason: of.ErrorReason}
	}
	unit, ok := flat[of.TargetingKey].(string)
	if _, there := flat[of.TargetingKey]; there && !ok {
		return fail(of.NewInvalidContextResolutionError("the targeting key must be a string"))
	}
	d, err := p.client.Decide(ctx, flag, client.Unit{Name: unit, Context: public(flat)})
	var refused *client.Error
	switch {
	case err == nil:
	case errors.Is(err, client.ErrNotFound):
		return fail(of.NewFlagNotFoundResolutionError(err.Error()))
	case errors.As(err, &refused) && refused.Field == "unit" && unit == "":
		return fail(of.NewTargetingKeyMissingResolutionError(err.Error()))
	case errors.As(err, &refused) && refused.Field == "unit":
		return fail(of.NewInvalidContextResolutionError(err.Error()))
	case errors.Is(err, client.ErrAnswer):
		return fail(of.NewParseErrorResolutionError(err.Error(), err))
	default:
		return fail(of.NewGeneralResolutionError(err.Error(), err))
	}
	meta := of.FlagMetadata{Propensity: d.Propensity}
	if d.Token != "" {
		meta[Decision], meta[Expires] = d.Token, d.Expires.UTC().Format(time.RFC3339Nano)
	}
	reason := of.SplitReason
	switch d.Reason {
	case "static":
		reason = of.StaticReason
	case "disabled":
		reason = of.DisabledReason
	case "default":
		reason = of.DefaultReason
	}
	return d.Value, of.ProviderResolutionDetail{Reason: reason, Variant: d.Arm, FlagMetadata: meta}
}

// value reads an arm's value, and is the default where it is of another type or there is no arm.
func value[T any](ctx context.Context, p *Provider, flag string, usual T, flat of.FlattenedContext) (T,
	of.ProviderResolutionDetail) {
	raw, detail := p.decide(ctx, flag, flat)
	v := usual
	if detail.Variant != "" && (bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &v) != nil) {
		// The default is shown, so that an event must not be this arm's reward.
		return usual, of.ProviderResolutionDetail{Reason: of.ErrorReason,
			ResolutionError: of.NewTypeMismatchResolutionError(fmt.Sprintf("the value of arm %q is no %T",
				detail.Variant, usual))}
	}
	unit, _ := flat[of.TargetingKey].(string)
	if token, _ := detail.FlagMetadata[Decision].(string); token != "" && unit != "" {
		p.remember(target{flag, unit}, token)
	}
	return v, detail
}

// BooleanEvaluation implements the SDK's FeatureProvider.
func (p *Provider) BooleanEvaluation(ctx context.Context, flag string, usual bool,
	flat of.FlattenedContext) of.BoolResolutionDetail {
	v, d := value(ctx, p, flag, usual, flat)
	return of.BoolResolutionDetail{Value: v, ProviderResolutionDetail: d}
}

// StringEvaluation implements the SDK's FeatureProvider.
func (p *Provider) StringEvaluation(ctx context.Context, flag string, usual string,
	flat of.FlattenedContext) of.StringResolutionDetail {
	v, d := value(ctx, p, flag, usual, flat)
	return of.StringResolutionDetail{Value: v, ProviderResolutionDetail: d}
}

// FloatEvaluation implements the SDK's FeatureProvider.
func (p *Provider) FloatEvaluation(ctx context.Context, flag string, usual float64,
	flat of.FlattenedContext) of.FloatResolutionDetail {
	v, d := value(ctx, p, flag, usual, flat)
	return of.FloatResolutionDetail{Value: v, ProviderResolutionDetail: d}
}

// IntEvaluation implements the SDK's FeatureProvider. A number with a fraction is of another type.
func (p *Provider) IntEvaluation(ctx context.Context, flag string, usual int64,
	flat of.FlattenedContext) of.IntResolutionDetail {
	v, d := value(ctx, p, flag, usual, flat)
	return of.IntResolutionDetail{Value: v, ProviderResolutionDetail: d}
}

// ObjectEvaluation implements the SDK's FeatureProvider: any value of JSON.
func (p *Provider) ObjectEvaluation(ctx context.Context, flag string, usual any,
	flat of.FlattenedContext) of.InterfaceResolutionDetail {
	v, d := value(ctx, p, flag, usual, flat)
	return of.InterfaceResolutionDetail{Value: v, ProviderResolutionDetail: d}
}
