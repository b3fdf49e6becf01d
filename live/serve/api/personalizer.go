package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// The API of Azure AI Personalizer, v1.0, for clients that know no other: what they send is a rank,
// a reward or an activation of an event, as ours, and what they are told has its names. Which
// experiment is meant the key says, which is good for one alone, as a key of theirs was of one
// learning loop.

const personalizer = "/personalizer/"

// statusHeader says what became of a reward or an activation, which a 204 has no place for.
const statusHeader = "Sotto-Status"

type personalRank struct {
	ContextFeatures []map[string]any `json:"contextFeatures"`
	Actions         []personalAction `json:"actions"`
	ExcludedActions []string         `json:"excludedActions"`
	EventID         *string          `json:"eventId"`
	DeferActivation bool             `json:"deferActivation"`
}

type personalAction struct {
	ID       string           `json:"id"`
	Features []map[string]any `json:"features"`
}

// maxPersonal is how long an ID is at most, of an event and of an action.
const maxPersonal = 256

func (q *personalRank) check() error {
	if q.EventID != nil && (*q.EventID == "" || len(*q.EventID) > maxPersonal) {
		return refused(http.StatusBadRequest, "event", fmt.Sprintf("eventId has %d bytes, must have from 1 "+
			"to %d, or be left out", len(*q.EventID), maxPersonal))
	}
	for i, a := range q.Actions {
		if len(a.ID) > maxPersonal {
			return refused(http.StatusBadRequest, fmt.Sprintf("actions[%d].id", i),
				fmt.Sprintf("the id has %d bytes, must have at most %d", len(a.ID), maxPersonal))
		}
	}
	return nil
}

// own is the request in our words. Where contexts are not looked at, features are what their
// clients must send, and are left out.
func (q *personalRank) own(t terms) (rankRequest, error) {
	out := rankRequest{Excluded: q.ExcludedActions, Deferred: q.DeferActivation}
	if q.EventID != nil {
		out.Event = *q.EventID
	}
	for _, of := range q.ContextFeatures { // also where contexts are not looked at
		refuse, err := refuses(nil, of)
		if err != nil {
			return out, err
		}
		if refuse {
			out.Consent = new(bool)
		}
	}
	merge := func(field string, in []map[string]any, looked bool) (map[string]any, error) {
		if !looked {
			return nil, nil
		}
		m, err := feature.Merge(in)
		if err != nil {
			return nil, refused(http.StatusBadRequest, field, field+": "+err.Error())
		}
		return m, nil
	}
	var err error
	if out.Context, err = merge("context", q.ContextFeatures, t.context); err != nil {
		return out, err
	}
	for i, a := range q.Actions {
		field := fmt.Sprintf("actions[%d].features", i)
		one := actionRequest{ID: a.ID}
		if one.Features, err = merge(field, a.Features, t.features); err != nil {
			return out, err
		}
		out.Actions = append(out.Actions, one)
	}
	return out, out.check()
}

type personalReward struct {
	Value *float64 `json:"value"`
}

func (q *personalReward) check() error { return checkReward("value", q.Value) }

type personalRanking struct {
	Ranking   []rankedJSON `json:"ranking"`
	EventID   string       `json:"eventId"`
	Action    string       `json:"rewardActionId"`
	Guarantee string       `json:"guarantee"`
}

// personalOrder is a ranking as theirs is: excluded actions keep their places, and the others
// follow the one that is given by falling probability.
func personalOrder(all []rankedJSON, given string, excluded []string) []rankedJSON {
	kept := func(a rankedJSON) bool { return slices.Contains(excluded, a.ID) && a.ID != given }
	free := slices.DeleteFunc(slices.Clone(all), kept)
	slices.SortStableFunc(free, func(a, b rankedJSON) int {
		if first := b.ID == given; first != (a.ID == given) {
			if first {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.Probability, a.Probability)
	})
	out, next := make([]rankedJSON, 0, len(all)), 0
	for _, a := range all {
		if !kept(a) {
			a = free[next]
			next++
		}
		out = append(out, a)
	}
	return out
}

// A personalError is an error as they have it: one of three codes, and a finer one within.
type personalError struct {
	Error personalCause `json:"error"`
}

type personalCause struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	Target  string        `json:"target,omitempty"`
	Inner   personalInner `json:"innerError"`
}

type personalInner struct {
	Code string `json:"code"`
}

// personalFields are the names of fields that they have otherwise.
var personalFields = map[string]string{"event": "eventId", "context": "contextFeatures",
	"excluded": "excludedActions", "deferred": "deferActivation"}

// personalErrorOf is a problem as they say it, and its status.
func personalErrorOf(path string, p *problem) (personalError, int) {
	out := personalCause{Code: "BadRequest", Message: p.Detail}
	name := p.Field
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name = name[:i]
	}
	out.Target = cmp.Or(personalFields[name], name) + p.Field[len(name):]
	status := p.Status
	switch status {
	case http.StatusUnauthorized:
		out.Code, out.Inner.Code = "401", "Unauthorized"
	case http.StatusForbidden, http.StatusMethodNotAllowed:
		out.Inner.Code = "InvalidApiAccess"
	case http.StatusNotFound:
		out.Code, out.Inner.Code = "ResourceNotFound", "ResourceNotFound"
	case http.StatusRequestTimeout:
		out.Inner.Code = "RequestTimeout"
	case http.StatusRequestEntityTooLarge:
		status, out.Inner.Code = http.StatusBadRequest, "PayloadSizeExceeded"
	case http.StatusServiceUnavailable:
		out.Code, out.Inner.Code = "InternalServerError", "OperationNotAllowed"
	case http.StatusInternalServerError:
		out.Code, out.Inner.Code = "InternalServerError", "InternalServerError"
	default:
		out.Inner.Code = "InvalidRequest"
		for end, code := range map[string]string{"/rank": "InvalidRankRequest",
			"/reward": "InvalidRewardRequest", "/activate": "InvalidEventIdToActivate"} {
			if strings.HasSuffix(path, end) {
				out.Inner.Code = code
			}
		}
	}
	return personalError{out}, status
}

// personal asks for a key with a scope that is of one experiment, and names that.
func (f *front) personal(scope serve.Scope, h handled) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if scope == serve.ScopeReward {
			hush(w)
		}
		k, err := f.may(r, scope)
		if err == nil && k.Experiment == "" {
			err = refused(http.StatusForbidden, "", "the key is of no experiment, which is what tells whose "+
				"request this is: make one with POST /v1/keys and experiment")
		}
		if err == nil {
			err = f.has(w, r, k.Experiment)
		}
		if err != nil {
			f.answerTo(w, r, err)
			return
		}
		r.SetPathValue("name", k.Experiment)
		switch out, err := h(w, r.WithContext(serve.As(r.Context(), k))); {
		case err != nil:
			f.answerTo(w, r, err)
		case out != nil:
			ok(w, out)
		}
	}
}

func (f *front) personalRank(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := byEvent(r); err != nil {
		return nil, err
	}
	data, err := body(w, r, maxRank)
	if err != nil {
		return nil, err
	}
	var theirs personalRank
	if err := decodeSome(data, &theirs); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	t, err := f.termsOf(r, name)
	if err != nil {
		return nil, err
	}
	in, err := theirs.own(t)
	if err != nil {
		return nil, err
	}
	d, err := f.Engine.Rank(r.Context(), name, in.ask())
	if err != nil {
		return nil, err
	}
	if !d.ActivateBy.IsZero() && !in.Deferred { // of an experiment that counts what is activated
		if _, err := f.Engine.ActivateEvent(r.Context(), name, d.Event); err != nil {
			return nil, err
		}
	}
	write(w, http.StatusCreated, "application/json", personalRanking{EventID: d.Event, Action: d.Action,
		Ranking: personalOrder(ranked(d.Ranked), d.Action, in.Excluded), Guarantee: t.guarantee})
	return nil, nil
}

func (f *front) personalReward(w http.ResponseWriter, r *http.Request) (any, error) {
	event, err := eventOf(r)
	if err != nil {
		return nil, err
	}
	data, err := body(w, r, maxReward)
	if err != nil {
		return nil, err
	}
	var in personalReward
	if err := decodeSome(data, &in); err != nil {
		return nil, err
	}
	s, err := f.Engine.RewardEvent(r.Context(), r.PathValue("name"), event, *in.Value)
	return nil, f.personalStatus(w, r, s, err)
}

func (f *front) personalActivate(w http.ResponseWriter, r *http.Request) (any, error) {
	event, err := eventOf(r)
	if err != nil {
		return nil, err
	}
	s, err := f.Engine.ActivateEvent(r.Context(), r.PathValue("name"), event)
	return nil, f.personalStatus(w, r, s, err)
}

// personalStatus answers 204. Their clients report on every rank that they were answered, also on
// those that count nothing: an event that is not known is an error only where all ranks count.
func (f *front) personalStatus(w http.ResponseWriter, r *http.Request, s serve.Status, err error) error {
	if errors.Is(err, serve.ErrEvent) {
		x, gone := f.Engine.Get(r.Context(), r.PathValue("name"))
		counts := x.State == serve.Running || x.State == serve.Waiting && x.Wait != "start" &&
			x.Experiment.Contextual == nil
		if d := x.Experiment; gone == nil && (!counts || len(d.Only)+len(d.Where) > 0 ||
			len(d.Ramp) > 0 || d.Share > 0 && d.Share < 1 || d.Layer.Name != "" || d.Holdout != "") {
			s, err = serve.Void, nil
		}
	}
	if err != nil {
		return err
	}
	w.Header().Set(statusHeader, string(s))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A personalConfiguration is a declaration in the words of a service configuration.
type personalConfiguration struct {
	RewardWaitTime        string  `json:"rewardWaitTime"` // as .NET writes it, such as 1.00:10:00
	DefaultReward         float64 `json:"defaultReward"`
	RewardAggregation     string  `json:"rewardAggregation"`
	ExplorationPercentage float64 `json:"explorationPercentage"`
	ModelExportFrequency  string  `json:"modelExportFrequency"` // how often releases are shown
	LogMirrorEnabled      bool    `json:"logMirrorEnabled"`
	// no reward is kept once it was released
	LogRetentionDays int    `json:"logRetentionDays"`
	LearningMode     string `json:"learningMode"`
}

func (f *front) personalConfiguration(_ http.ResponseWriter, r *http.Request) (any, error) {
	x, err := f.Engine.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	d, mode := x.Experiment, "Online"
	if d.Contextual != nil && d.Contextual.Mode == decl.ModeApprentice {
		mode = "Apprentice"
	}
	return personalConfiguration{RewardWaitTime: timeSpan(d.Window), DefaultReward: d.Default,
		RewardAggregation: "earliest", ExplorationPercentage: d.Floor, ModelExportFrequency: timeSpan(x.Tick),
		LearningMode: mode}, nil
}

// timeSpan writes a duration as .NET does: days, hours, minutes, seconds, and what is left of them.
func timeSpan(d time.Duration) string {
	const day = 24 * time.Hour
	out := fmt.Sprintf("%02d:%02d:%02d", d%day/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	if d >= day {
		out = fmt.Sprintf("%d.%s", d/day, out)
	}
	if rest := d % time.Second; rest > 0 {
		out += fmt.Sprintf(".%07d", rest/100)
	}
	return out
}

func (f *front) personalConfigure(http.ResponseWriter, *http.Request) (any, error) {
	return nil, refused(http.StatusForbidden, "", "the configuration is the experiment's declaration: "+
		"PATCH /v1/experiments/{name} changes window and floor, with a key of the scope admin, and what else "+
		"it says was promised at the start")
}
