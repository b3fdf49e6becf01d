package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/serve"
)

// A request says what is wrong with it.
type request interface{ check() error }

type decisionRequest struct {
	Unit      string         `json:"unit"`
	UnitToken string         `json:"unit_token"`
	Person    string         `json:"person"`
	Context   map[string]any `json:"context"`
	Force     string         `json:"force"`
	Consent   *bool          `json:"consent"` // true if it is not given
}

func (d *decisionRequest) check() error {
	if strings.ContainsRune(d.Unit, utf8.RuneError) { // others would be the same unit
		return refused(http.StatusBadRequest, "unit", "unit must be Unicode, without U+FFFD")
	}
	if err := checkPerson(d.Person); err != nil {
		return err
	}
	if d.Unit != "" && d.UnitToken != "" {
		return refused(http.StatusBadRequest, "unit_token", "give unit or unit_token, not both")
	}
	_, err := refuses(d.Consent, d.Context)
	return err
}

// consentField is what a context says consent by, for clients that have no other place for it.
const consentField = "consent"

// refuses says whether a unit takes no part, by a request's consent or by its context's. What is neither
// true nor false is refused: it may mean that the unit does not agree.
func refuses(consent *bool, context map[string]any) (bool, error) {
	of, there := context[consentField]
	agrees, known := of.(bool)
	if there && of != nil && !known {
		return false, refused(http.StatusBadRequest, "context."+consentField, "context."+consentField+
			" must be true or false")
	}
	return consent != nil && !*consent || known && !agrees, nil
}

// checkPerson refuses names that others would share.
func checkPerson(name string) error {
	if strings.ContainsRune(name, utf8.RuneError) {
		return refused(http.StatusBadRequest, "person", "person must be Unicode, without U+FFFD")
	}
	return nil
}

type activationRequest struct {
	Decision string `json:"decision"`
	Shown    *bool  `json:"shown"` // true if it is not given
}

func (q *activationRequest) check() error {
	if q.Decision == "" {
		return refused(http.StatusBadRequest, "decision", "decision is missing")
	}
	return nil
}

type rewardRequest struct {
	Decision string   `json:"decision"`
	ID       string   `json:"id"` // of this report, where all reports of a decision count
	Reward   *float64 `json:"reward"`
	// by name; a pointer, since null is no number
	Metrics map[string]*float64 `json:"metrics"`
}

func (q *rewardRequest) check() error {
	if q.Decision == "" {
		return refused(http.StatusBadRequest, "decision", "decision is missing")
	}
	// of several reports one may be of metrics alone
	if q.Reward != nil || q.ID == "" || len(q.Metrics) == 0 {
		if err := checkReward("reward", q.Reward); err != nil {
			return err
		}
	}
	for _, m := range q.Metrics {
		if m == nil {
			return refused(http.StatusBadRequest, "metrics", "metrics must be finite numbers by their names")
		}
	}
	return nil
}

func (q *rewardRequest) report() serve.Outcome {
	r := serve.Outcome{Report: serve.Report{Token: q.Decision, Reward: math.NaN()}, ID: q.ID}
	if q.Reward != nil {
		r.Reward = *q.Reward
	}
	if len(q.Metrics) > 0 {
		r.Metrics = make(map[string]float64, len(q.Metrics))
		for name, m := range q.Metrics {
			r.Metrics[name] = *m
		}
	}
	return r
}

type batchRequest struct {
	Rewards []rewardRequest `json:"rewards"`
}

func (q *batchRequest) check() error {
	if n := len(q.Rewards); n < 1 || n > maxRewards {
		return refused(http.StatusBadRequest, "rewards", fmt.Sprintf("rewards has %d, must have from 1 to %d",
			n, maxRewards))
	}
	for i := range q.Rewards {
		var p *problem
		if errors.As(q.Rewards[i].check(), &p) {
			p.Field = fmt.Sprintf("rewards[%d].%s", i, p.Field)
			return p
		}
	}
	return nil
}

// A changeRequest has the terms that may change. The other keys of a declaration are known, to be
// refused with the reason.
type changeRequest struct {
	End    json.RawMessage `json:"end"`
	Window *string         `json:"window"`
	Floor  *float64        `json:"floor"`
	Off    []string        `json:"off"`
	Add    []serve.Added   `json:"add"`
	Share  *float64        `json:"share"`
	Says   *string         `json:"description"`
	Public *bool           `json:"public"`
	Reason string          `json:"reason"` // why, see serve.Because
	fixedKeys

	change serve.Change
}

type fixedKeys struct {
	Name     json.RawMessage `json:"name" fixed:"the name is what decisions are asked by"`
	Arms     json.RawMessage `json:"arms" fixed:"an arm can be added (add) or taken off (off), and none be changed"`
	Context  json.RawMessage `json:"contextual" fixed:"with another map it is another experiment"`
	Policy   json.RawMessage `json:"policy" fixed:"what it has learned is the policy's"`
	Risk     json.RawMessage `json:"risk" fixed:"the rule's answer is right with the probability of the start"`
	Horizon  json.RawMessage `json:"horizon" fixed:"the policy's schedule was made for it"`
	Budget   json.RawMessage `json:"budget" fixed:"units were promised that they lose no more"`
	Unit     json.RawMessage `json:"unit" fixed:"the budget is of these units and of all their assignments"`
	Reward   json.RawMessage `json:"reward" fixed:"the noise was made for this range and this default"`
	Exposure json.RawMessage `json:"exposure" fixed:"counts are of decisions that are made in one way"`
	Within   json.RawMessage `json:"activate_within" fixed:"only end, window, floor, share, description, public, off and add may change"`
	Only     json.RawMessage `json:"only" fixed:"counts are of decisions for those it was declared for"`
	By       json.RawMessage `json:"by" fixed:"releases are of its cells"`
	Cell     json.RawMessage `json:"cell_minimum" fixed:"releases are of its cells"`
	Leases   json.RawMessage `json:"leases" fixed:"clients decide by plans that were made as it says"`
	Layer    json.RawMessage `json:"layer" fixed:"it keeps the units of experiments disjoint"`
	Holds    json.RawMessage `json:"holds" fixed:"the units of this arm are kept out of other experiments"`
	Holdout  json.RawMessage `json:"holdout" fixed:"who is held must not have been in it"`
	Keep     json.RawMessage `json:"retention" fixed:"units were told how long they are remembered"`
	Forget   json.RawMessage `json:"forget" fixed:"units were told how long they are remembered, and it is paid for"`
	HookForm json.RawMessage `json:"webhook_form" fixed:"only end, window, floor, share, description, public, off and add may change"`
	Webhook  json.RawMessage `json:"webhook" fixed:"only end, window, floor, share, description, public, off and add may change"`
	Traffic  json.RawMessage `json:"traffic" fixed:"only end, window, floor, share, description, public, off and add may change"`
	Metrics  json.RawMessage `json:"metrics" fixed:"units were promised that they lose no more"`
	Guard    json.RawMessage `json:"guard" fixed:"intervals share its risk from the start"`
	Ratios   json.RawMessage `json:"ratios" fixed:"decisions count by them"`
	Ramp     json.RawMessage `json:"ramp" fixed:"it goes up by releases and the clock alone: pause the experiment to stop it"`
	Shares   json.RawMessage `json:"shares" fixed:"arms were drawn with them, and are compared by them"`
	Effect   json.RawMessage `json:"effect" fixed:"the batches were planned for it"`
	Rate     json.RawMessage `json:"rate" fixed:"the batches were planned from it"`
	Missing  json.RawMessage `json:"missing" fixed:"what counts tell of rewards that do not come was promised"`
	Reports  json.RawMessage `json:"reports" fixed:"what counts tell of rewards that do not come was promised"`
	Sticky   json.RawMessage `json:"sticky" fixed:"who was assigned what is counted by it"`
	Start    json.RawMessage `json:"start" fixed:"it is when the experiment began"`
	Fallback json.RawMessage `json:"fallback" fixed:"only end, window, floor, share, description, public, off and add may change"`
	Stop     json.RawMessage `json:"stop" fixed:"say what is kept when you stop it"`

	Trust  json.RawMessage `json:"trust" fixed:"units were promised who sees their rewards"`
	After  json.RawMessage `json:"report_after" fixed:"what counts tell of who reports was promised"`
	Grid   json.RawMessage `json:"grid" fixed:"both servers go by it"`
	Helper json.RawMessage `json:"helper" fixed:"units were promised who sees their rewards"`
	Cohort json.RawMessage `json:"cohort" fixed:"units were promised who sees their rewards"`
}

func (q *changeRequest) check() error {
	v := reflect.ValueOf(q.fixedKeys)
	for i := range v.NumField() {
		if field := v.Type().Field(i); !v.Field(i).IsNil() {
			name := field.Tag.Get("json")
			return refused(http.StatusConflict, name, name+" cannot change: "+field.Tag.Get("fixed"))
		}
	}
	q.change = serve.Change{Floor: q.Floor, Off: q.Off, Add: q.Add, Share: q.Share, Description: q.Says, Public: q.Public}
	if q.End != nil {
		q.change.End = &time.Time{}
		if json.Unmarshal(q.End, q.change.End) != nil {
			return refused(http.StatusBadRequest, "end", "end must be a time such as "+
				"2026-01-31T09:00:00Z, or null for never")
		}
	}
	if q.Window != nil {
		d, err := time.ParseDuration(*q.Window)
		if err != nil {
			return refused(http.StatusBadRequest, "window", "window must be a duration such as 24h or 90m")
		}
		q.change.Window = &d
	}
	if c := q.change; c.End == nil && c.Window == nil && c.Floor == nil && c.Share == nil && c.Description == nil &&
		c.Public == nil && len(q.Off)+len(q.Add) == 0 {
		return refused(http.StatusBadRequest, "", "nothing is to change: say end, window, floor, share, description, "+
			"public, off or add")
	}
	return nil
}

type stopRequest struct {
	Arm     string `json:"arm"` // as Keep, of programs before
	Keep    string `json:"keep"`
	Now     bool   `json:"now"`
	Confirm string `json:"confirm"`
	Reason  string `json:"reason"`
}

func (q *stopRequest) check() error {
	switch {
	case q.Arm != "" && q.Keep != "":
		return refused(http.StatusBadRequest, "arm", "arm is given beside keep, which means the same: say keep")
	case q.Confirm != "" && !q.Now:
		return refused(http.StatusBadRequest, "confirm", "confirm is given without now: a stop that waits for windows "+
			"needs none")
	}
	return nil
}

// An operateRequest says why something is done.
type operateRequest struct {
	Reason string `json:"reason"`
}

func (q *operateRequest) check() error { return nil }

type keyRequest struct {
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	Experiment string   `json:"experiment"` // the only one; empty: all
}

func (q *keyRequest) check() error {
	_, err := q.scopes()
	return err
}

func (q *keyRequest) scopes() (out serve.Scope, _ error) {
	for _, name := range q.Scopes {
		s, err := serve.ParseScope(name)
		if err != nil {
			return 0, refused(http.StatusBadRequest, "scopes", err.Error())
		}
		out |= s
	}
	if out == 0 {
		return 0, refused(http.StatusBadRequest, "scopes", "scopes is empty, must be some of "+
			serve.ScopeNames)
	}
	return out, nil
}

// read reads a body of at most so many bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64, into request) error {
	data, err := body(w, r, limit)
	if err != nil {
		return err
	}
	return decode(data, into)
}

// bodyAtOnce is how much of a body there is room for before it comes.
const bodyAtOnce = 4 << 10

func body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	var data []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= min(limit, bodyAtOnce) { // which the server holds it to
		data = make([]byte, n)
		_, err = io.ReadFull(r.Body, data)
	} else {
		data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return data, nil
	case errors.As(err, &large):
		return nil, refused(http.StatusRequestEntityTooLarge, "",
			fmt.Sprintf("the body has more than %d bytes", limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refused(http.StatusRequestTimeout, "", "the body came too slowly")
	}
	return nil, refused(http.StatusBadRequest, "", "the body could not be read")
}

var (
	plainField = regexp.MustCompile(`^[A-Za-z_]{1,32}$`)
	// lastField finds the field whose value is where the text ends
	lastField = regexp.MustCompile(`"([A-Za-z_]{1,32})"\s*:\s*[-+A-Za-z]*$`)
)

// decode reads a request: one JSON object with the fields that it has and no other, {} if there is
// nothing. An error is a problem that has nothing of what the body says but the names of fields,
// since a value may be a person's reward.
func decode(data []byte, into request) error { return decodeAs(data, into, true) }

// decodeSome is decode of what may have other fields too, for clients of other services.
func decodeSome(data []byte, into request) error { return decodeAs(data, into, false) }

func decodeAs(data []byte, into request, whole bool) error {
	if err := decodeInto(data, into, whole); err != nil {
		return err
	}
	return into.check()
}

// decodeInto is decodeAs, without the request's own check.
func decodeInto(data []byte, into any, whole bool) error {
	if !utf8.Valid(data) {
		return refused(http.StatusBadRequest, "", "the body is not in UTF-8")
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		data = []byte("{}")
	}
	if q, is := into.(quickly); is && q.readFrom(data) {
		return nil
	}
	if data[0] != '{' {
		return refused(http.StatusBadRequest, "", "the body must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if whole {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return malformed(data, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return refused(http.StatusBadRequest, "", "the body must be one JSON object, and nothing after it")
	}
	if name, twice := repeated(data, whole); twice {
		if !plainField.MatchString(name) {
			return refused(http.StatusBadRequest, "", "the body has a key twice in one object")
		}
		return refused(http.StatusBadRequest, name, name+" is there twice, must be there once")
	}
	return nil
}

// malformed says in our words what json says with the value in it.
func malformed(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		want := map[string]string{"float64": "a number that a float64 can hold", "string": "a string",
			"slice": "a list", "bool": "true or false", "struct": "an object",
			"map": "an object"}[kind.Type.Kind().String()]
		field := kind.Field
		if i := strings.Index(field, "metrics."); i >= 0 { // what follows is the body's
			field = field[:i+len("metrics")]
		}
		return refused(http.StatusBadRequest, field, field+" must be "+want)
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset)-1, 0), len(data))
		if m := lastField.FindSubmatch(data[:at]); m != nil {
			name, want := string(m[1]), "is no JSON value, such as a finite number or a string in quotes"
			if name == "reward" || name == "value" {
				want = "must be a finite number"
			}
			return refused(http.StatusBadRequest, name, name+" "+want)
		}
		return refused(http.StatusBadRequest, "", fmt.Sprintf("the body is no JSON from byte %d on", at))
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		if name = strings.Trim(name, `"`); plainField.MatchString(name) {
			return refused(http.StatusBadRequest, name, name+" is no field of this request")
		}
		return refused(http.StatusBadRequest, "", "the body has a field that is none of this request")
	}
	return refused(http.StatusBadRequest, "", "the body is no whole JSON object")
}
