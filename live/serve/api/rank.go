package api

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/serve"
)

// A rank asks for one of some actions by the name of an event, which is what is rewarded and
// activated then: for clients that have no place for a token.

type rankRequest struct {
	Event    string          `json:"event"` // empty: the service draws one
	Person   string          `json:"person"`
	Context  map[string]any  `json:"context"`
	Actions  []actionRequest `json:"actions"`
	Excluded []string        `json:"excluded"`
	Deferred bool            `json:"deferred"`
	Consent  *bool           `json:"consent"`
}

type actionRequest struct {
	ID       string         `json:"id"`
	Features map[string]any `json:"features"`
}

func (q *rankRequest) check() error {
	if err := checkEvent(q.Event); err != nil {
		return err
	}
	if err := checkPerson(q.Person); err != nil {
		return err
	}
	if len(q.Actions) == 0 {
		return refused(http.StatusBadRequest, "actions", "actions is empty, must have at least one")
	}
	for i, a := range q.Actions {
		if a.ID == "" {
			field := fmt.Sprintf("actions[%d].id", i)
			return refused(http.StatusBadRequest, field, field+" is missing")
		}
	}
	_, err := refuses(q.Consent, q.Context)
	return err
}

// checkEvent refuses names that others would share, or that cannot be reported on.
func checkEvent(event string) error {
	if !utf8.ValidString(event) || strings.ContainsRune(event, utf8.RuneError) {
		return refused(http.StatusBadRequest, "event", "event must be Unicode, without U+FFFD")
	}
	if event == "." || event == ".." {
		return refused(http.StatusBadRequest, "event", "event is "+event+", which no path can have")
	}
	return nil
}

func (q *rankRequest) ask() serve.RankAsk {
	ask := serve.RankAsk{Event: q.Event, Person: q.Person, Context: q.Context, Excluded: q.Excluded, Deferred: q.Deferred}
	ask.NoConsent, _ = refuses(q.Consent, q.Context) // it was checked
	for _, a := range q.Actions {
		ask.Actions = append(ask.Actions, serve.Action(a))
	}
	return ask
}

type eventRewardRequest struct {
	ID     string   `json:"id"` // as that of a rewardRequest
	Reward *float64 `json:"reward"`
}

func (q *eventRewardRequest) check() error { return checkReward("reward", q.Reward) }

// checkReward refuses what is no reward, without saying it.
func checkReward(field string, reward *float64) error {
	switch {
	case reward == nil:
		return refused(http.StatusBadRequest, field, field+" is missing")
	case math.IsNaN(*reward) || math.IsInf(*reward, 0):
		return refused(http.StatusBadRequest, field, field+" must be a finite number")
	}
	return nil
}

type emptyRequest struct{}

func (*emptyRequest) check() error { return nil }

type rankJSON struct {
	Event      string       `json:"event"`
	Action     string       `json:"action"`
	Ranking    []rankedJSON `json:"ranking"` // in the order of the request
	Propensity float64      `json:"propensity"`
	Expires    *time.Time   `json:"expires_at"`
	ActivateBy *time.Time   `json:"activate_by,omitempty"`
	Reason     serve.Reason `json:"reason"`
	Guarantee  string       `json:"guarantee"`
}

type rankedJSON struct {
	ID          string  `json:"id"`
	Probability float64 `json:"probability"`
}

// terms are what a rank needs of an experiment's declaration. They never change.
type terms struct {
	guarantee string
	context   bool // whether contexts are looked at
	features  bool // whether features of actions are
}

func (f *front) termsOf(r *http.Request, name string) (terms, error) {
	if t, ok := f.terms.Load(name); ok {
		return t.(terms), nil
	}
	x, err := f.Engine.Get(r.Context(), name)
	if err != nil {
		return terms{}, err
	}
	t := terms{context: x.Experiment.ReadsContext(), features: x.Experiment.Contextual != nil}
	if t.guarantee, err = x.Experiment.Guarantee(); err != nil {
		return terms{}, err
	}
	f.terms.Store(name, t)
	return t, nil
}

// byEvent says whether a request's key may name events. What a page names everybody can name.
func byEvent(r *http.Request) error {
	if k, _ := serve.By(r.Context()); k.Scopes&serve.ScopeBrowser != 0 {
		return refused(http.StatusForbidden, "event", "a key of the scope browser names no events: ask for "+
			"decisions instead, or from the product's server")
	}
	return nil
}

func (f *front) rank(w http.ResponseWriter, r *http.Request) (any, error) {
	var in rankRequest
	if err := byEvent(r); err != nil {
		return nil, err
	}
	if err := read(w, r, maxRank, &in); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	t, err := f.termsOf(r, name)
	if err != nil {
		return nil, err
	}
	d, err := f.Engine.Rank(r.Context(), name, in.ask())
	if err != nil {
		return nil, err
	}
	out := rankJSON{Event: d.Event, Action: d.Action, Propensity: d.Propensity, Reason: d.Reason,
		Guarantee: t.guarantee, Ranking: ranked(d.Ranked)}
	if !d.Expires.IsZero() {
		at := d.Expires.UTC()
		out.Expires = &at
	}
	if !d.ActivateBy.IsZero() {
		by := d.ActivateBy.UTC()
		out.ActivateBy = &by
	}
	return out, nil
}

func ranked(in []serve.Ranked) []rankedJSON {
	out := make([]rankedJSON, len(in))
	for i, a := range in {
		out[i] = rankedJSON(a)
	}
	return out
}

// eventOf is the event of a path.
func eventOf(r *http.Request) (string, error) {
	event := r.PathValue("event")
	if err := byEvent(r); err != nil {
		return "", err
	}
	return event, checkEvent(event)
}

func (f *front) rewardEvent(w http.ResponseWriter, r *http.Request) (any, error) {
	var in eventRewardRequest
	event, err := eventOf(r)
	if err == nil {
		err = read(w, r, maxReward, &in)
	}
	if err != nil {
		return nil, err
	}
	s, err := f.Engine.ReportEvent(r.Context(), r.PathValue("name"), event, in.ID, *in.Reward)
	if err != nil {
		return nil, err
	}
	return statusJSON{string(s)}, nil
}

func (f *front) activateEvent(w http.ResponseWriter, r *http.Request) (any, error) {
	event, err := eventOf(r)
	if err == nil {
		err = read(w, r, maxReward, &emptyRequest{})
	}
	if err != nil {
		return nil, err
	}
	s, err := f.Engine.ActivateEvent(r.Context(), r.PathValue("name"), event)
	if err != nil {
		return nil, err
	}
	return statusJSON{string(s)}, nil
}
