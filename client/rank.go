package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// A RankRequest asks for one of some actions, by the name of an event, which is what is rewarded
// and activated then.
type RankRequest struct {
	// Event names the decision: the same event is answered the same again. Empty to have the
	// service draw a name.
	Event string
	// Context is what is known of who asks, as JSON has it. It is public: what is protected is the
	// reward.
	Context map[string]any
	// Actions are what there is to choose from, the one that would be given without the experiment
	// first. Of an experiment with arms they are the arms that are on, without features.
	Actions  []Action
	Excluded []string // the IDs of those that must not be given
	Deferred bool     // it counts when it is activated
}

// An Action is what may be given.
type Action struct {
	ID       string
	Features map[string]any // as JSON has them
}

// A Ranked is an action, and the probability that it had of being given.
type Ranked struct {
	ID          string  `json:"id"`
	Probability float64 `json:"probability"`
}

// A Ranking is the action for an event.
type Ranking struct {
	Event      string   // to report with
	Action     string   // the ID of the one that is given
	Ranked     []Ranked // in the order of the request
	Propensity float64  // of the action that is given
	// Expires is until when a reward counts, zero if none does: nothing is to be reported then.
	Expires    time.Time
	ActivateBy time.Time // until when ActivateEvent must be called; zero if it counts at once
	Reason     string    // as that of a Decision
	Guarantee  string    // what is protected, in words
}

// Rank asks for an action. It asks once, and is answered when the decision is durable. One that
// failed can be asked for again by the same Event.
func (c *Client) Rank(ctx context.Context, experiment string, ask RankRequest) (Ranking, error) {
	type actionJSON struct {
		ID       string         `json:"id"`
		Features map[string]any `json:"features,omitempty"`
	}
	in := struct {
		Event    string         `json:"event,omitempty"`
		Context  map[string]any `json:"context,omitempty"`
		Actions  []actionJSON   `json:"actions"`
		Excluded []string       `json:"excluded,omitempty"`
		Deferred bool           `json:"deferred,omitempty"`
	}{ask.Event, ask.Context, make([]actionJSON, len(ask.Actions)), ask.Excluded, ask.Deferred}
	for i, a := range ask.Actions {
		in.Actions[i] = actionJSON(a)
	}
	var out struct {
		Event      string     `json:"event"`
		Action     string     `json:"action"`
		Ranking    []Ranked   `json:"ranking"`
		Propensity float64    `json:"propensity"`
		Expires    *time.Time `json:"expires_at"`
		ActivateBy *time.Time `json:"activate_by"`
		Reason     string     `json:"reason"`
		Guarantee  string     `json:"guarantee"`
	}
	err := c.post(ctx, in, &out, experiment, "rank")
	if err == nil && (out.Event == "" || out.Action == "" || out.Reason == "") {
		err = ErrAnswer
	}
	if err != nil {
		return Ranking{}, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	r := Ranking{Event: out.Event, Action: out.Action, Ranked: out.Ranking, Propensity: out.Propensity,
		Reason: out.Reason, Guarantee: out.Guarantee}
	if out.Expires != nil {
		r.Expires = *out.Expires
	}
	if out.ActivateBy != nil {
		r.ActivateBy = *out.ActivateBy
	}
	return r, nil
}

// RewardEvent reports the reward of an event, as Reward does that of a decision. An event that the
// service does not know matches ErrNotFound.
func (c *Client) RewardEvent(ctx context.Context, experiment, event string, reward float64) (Status,
	error) {
	return c.ReportEvent(ctx, experiment, event, "", reward)
}

// ReportEvent is RewardEvent of a report with an ID, as Report has it.
func (c *Client) ReportEvent(ctx context.Context, experiment, event, id string, reward float64) (Status,
	error) {
	if err := checkNamed("event", event, maxEvent, reward); err != nil {
		return "", fmt.Errorf("experiment %q: %w", experiment, err)
	}
	in := struct {
		ID     string  `json:"id,omitempty"`
		Reward float64 `json:"reward"`
	}{id, reward}
	return c.report(ctx, in, experiment, "events", url.PathEscape(event), "reward")
}

// ActivateEvent says that an event was met, of those that count from then on. It is to be said
// before the outcome can be known, and whatever it is.
func (c *Client) ActivateEvent(ctx context.Context, experiment, event string) (Status, error) {
	if err := checkNamed("event", event, maxEvent, 0); err != nil {
		return "", fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return c.report(ctx, struct{}{}, experiment, "events", url.PathEscape(event), "activate")
}

// Model is what an experiment with contexts has learnt, as JSON: feature.ReadModel reads it, and decides
// without a request. It changes with each release alone, and is for ever once the experiment has stopped. The
// key must have the scope read, unless the experiment is public.
func (c *Client) Model(ctx context.Context, experiment string) (json.RawMessage, error) {
	var out json.RawMessage
	if err := c.ask(ctx, http.MethodGet, nil, &out, experiment, "model"); err != nil {
		return nil, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return out, nil
}
