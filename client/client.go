// Package client asks a running sotto serve for decisions, and reports rewards to it. It needs
// nothing of the service but its address and a key. Begin with New.
//
// A decision that cannot be had is an error, and what is done then is the caller's: it shows its
// usual arm, and has nothing to report. A reward is reported at once by Reward, which returns when
// it is durable, or later in batches by a Queue, which never makes the caller wait.
//
// No reward, no unit and no key is in an error or a log of this package.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrUnavailable: the service was not reached, broke off, or could not write. A reward can be
	// sent again, since one decision counts once. This alone is worth to be sent again.
	ErrUnavailable = errors.New("the service is not available")
	// ErrKey: the key is not known, or was revoked.
	ErrKey = errors.New("the key is refused")
	// ErrScope: the key may not do this.
	ErrScope = errors.New("the key may not do this")
	// ErrNotFound: there is no such experiment, or no such event of it.
	ErrNotFound = errors.New("there is no such experiment or event")
	// ErrRequest: the request is wrong, here or by what the service says.
	ErrRequest = errors.New("the request is wrong")
	// ErrAnswer: this is no answer of sotto serve.
	ErrAnswer = errors.New("the answer is not one of sotto serve")
)

// An Error is what the service refused: it matches one of the errors above.
type Error struct {
	Status     int    // of HTTP
	Field      string // of the request; often empty
	Detail     string
	RetryAfter time.Duration // how long the service wants to be left alone; zero if it does not say
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the service answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("the service answers %d: %s", e.Status, e.Detail)
}

// Is sorts by the status. 502 and 504 are what a proxy says of a service that it did not reach, and 429 what one says
// that has had too many requests: none of it was taken.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return target == ErrUnavailable
	case http.StatusUnauthorized:
		return target == ErrKey
	case http.StatusForbidden:
		return target == ErrScope
	case http.StatusNotFound:
		return target == ErrNotFound
	}
	if e.Status >= 400 && e.Status < 500 {
		return target == ErrRequest
	}
	return target == ErrAnswer
}

// A Unit is what a decision is for: a person, a device, a visit, as the experiment says.
type Unit struct {
	// Name tells it from others. It may be empty if the experiment is not sticky. The service
	// keeps a keyed hash of it.
	Name string
	// Person is whose decision it is, for experiments that count them by person (unit.per_person).
	Person string
	// Context is public facts, text or numbers or booleans, for experiments that are for some units
	// only. The service does not keep them.
	Context map[string]any
}

// A Decision is an arm for a unit.
type Decision struct {
	Token      string          // to report with; empty if the decision does not count
	Arm        string          // its name
	Value      json.RawMessage // of the arm, as it was declared; its name if it has none
	Propensity float64         // the probability with which it was drawn
	Expires    time.Time       // until when a reward counts; zero without a Token
	ActivateBy time.Time       // until when Activate must be called; zero if it counts at once
	// split, over_limit, static, disabled, default, holdout, or one of a later version
	Reason string
	// Report says how to report if the service is not to see the reward; else nil. Reward is refused
	// then, and package client/private does it.
	Report *ReportTask
}

// A Status answers a reward. None is an error: none gets better if it is sent again.
type Status string

// The statuses of a reward.
const (
	Accepted Status = "accepted" // it counts, or one for this decision did before
	Late     Status = "late"     // the window has passed
	// the decision was lost before it was durable, or the experiment has stopped
	Void      Status = "void"
	OverLimit Status = "over_limit" // the unit had all its assignments before the decision
	// of a decision that was forced, and does not count: whether what was reported is in its declared range
	InRange Status = "in_range"
	Clipped Status = "clipped"
)

// A Report is the reward of a decision. The first one counts, with all that is in it; where the experiment has
// an aggregate, all of a decision do, and each needs an ID of its own, by which one that is sent again counts
// once.
type Report struct {
	Decision string  // its Token
	Reward   float64 // finite; the service clips it to the declared range. With an ID NaN if it is of Metrics alone
	ID       string
	Metrics  map[string]float64 // by name, finite

	event *Event // of a queue, in the place of the rest
}

// A Result answers a Report: a status, or an error that matches ErrRequest.
type Result struct {
	Status Status
	Err    error
}

// MaxBatch is how many rewards one request may have.
const MaxBatch = 1000

const (
	maxAnswer = 1 << 20
	maxToken  = 256  // characters; one of the service has 58. Of an id, too
	maxEvent  = 4096 // bytes; of a unit's name, too
)

// A Client asks one service. Its methods may be called by many goroutines.
type Client struct {
	base *url.URL
	key  string
	http *http.Client
}

// An Option changes a Client.
type Option func(*Client)

// HTTPClient sends by h, which has its own timeout. Without, an answer has 15 s, and connections
// are kept for 64 requests at a time.
func HTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// New is a client of the service at a URL such as https://bandits.example.org, with a key that may
// decide, reward, or both. It sends nothing yet.
func New(baseURL, key string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	switch {
	case err != nil, base.Scheme != "http" && base.Scheme != "https", base.Host == "", base.User != nil,
		base.RawQuery != "", base.Fragment != "": // not said: it may have a password
		return nil, fmt.Errorf("%w: base URL must be http:// or https:// with a host, and no user, "+
			"query or fragment", ErrRequest)
	case key == "":
		return nil, fmt.Errorf("%w: key is missing", ErrRequest)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("%w: key must be letters, digits and signs of ASCII", ErrRequest)
	}
	c := &Client{base: base, key: key}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 10 * time.Second}
		c.http = &http.Client{Transport: t, Timeout: 15 * time.Second}
	}
	own := *c.http
	// A key goes to nobody else.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// Decide asks for an arm. It asks once: who shows the usual arm instead waits no longer than ctx.
func (c *Client) Decide(ctx context.Context, experiment string, unit Unit) (Decision, error) {
	in := struct {
		Unit    string         `json:"unit,omitempty"`
		Person  string         `json:"person,omitempty"`
		Context map[string]any `json:"context,omitempty"`
	}{unit.Name, unit.Person, unit.Context}
	var out struct {
		Decision   *string         `json:"decision"`
		Arm        string          `json:"arm"`
		Value      json.RawMessage `json:"value"`
		Propensity float64         `json:"propensity"`
		Expires    *time.Time      `json:"expires_at"`
		ActivateBy *time.Time      `json:"activate_by"`
		Reason     string          `json:"reason"`
		Report     *ReportTask     `json:"report"`
	}
	if err := c.post(ctx, in, &out, experiment, "decisions"); err != nil {
		return Decision{}, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	if out.Arm == "" || out.Reason == "" {
		return Decision{}, fmt.Errorf("experiment %q: %w", experiment, ErrAnswer)
	}
	d := Decision{Arm: out.Arm, Value: out.Value, Propensity: out.Propensity, Reason: out.Reason,
		Report: out.Report}
	if out.Decision != nil {
		d.Token = *out.Decision
	}
	if out.Expires != nil {
		d.Expires = *out.Expires
	}
	if out.ActivateBy != nil {
		d.ActivateBy = *out.ActivateBy
	}
	return d, nil
}

// Reward reports the reward of a decision, and returns when it is durable. It sends once; an error
// that matches ErrUnavailable says that it may be sent again.
func (c *Client) Reward(ctx context.Context, experiment, decision string, reward float64) (Status, error) {
	return c.Report(ctx, experiment, Report{Decision: decision, Reward: reward})
}

// Report is Reward for all that a report can have.
func (c *Client) Report(ctx context.Context, experiment string, r Report) (Status, error) {
	in, err := r.json()
	if err != nil {
		return "", fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return c.report(ctx, in, experiment, "rewards")
}

// Activate says that a unit meets a decision, or, if shown is false, that it will not: for
// experiments with exposure: activate, whose decisions count from then on. It is to be said before
// the outcome can be known, and whatever it is.
func (c *Client) Activate(ctx context.Context, experiment, decision string, shown bool) (Status, error) {
	if err := check(decision, 0); err != nil {
		return "", fmt.Errorf("experiment %q: %w", experiment, err)
	}
	in := struct {
		Decision string `json:"decision"`
		Shown    bool   `json:"shown"`
	}{decision, shown}
	return c.report(ctx, in, experiment, "activations")
}

// report sends what is answered with a status.
func (c *Client) report(ctx context.Context, in any, experiment string, what ...string) (Status, error) {
	var out struct {
		Status Status `json:"status"`
	}
	err := c.post(ctx, in, &out, experiment, what...)
	if err == nil && out.Status == "" {
		err = ErrAnswer
	}
	if err != nil {
		return "", fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return out.Status, nil
}

type reportJSON struct {
	Decision string             `json:"decision"`
	ID       string             `json:"id,omitempty"`
	Reward   *float64           `json:"reward,omitempty"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
}

// json is the report as it is sent.
func (r Report) json() (reportJSON, error) {
	out := reportJSON{Decision: r.Decision, ID: r.ID, Metrics: r.Metrics}
	x := r.Reward
	if bare := r.ID != "" && len(r.Metrics) > 0 && math.IsNaN(x); bare {
		x = 0
	} else {
		out.Reward = &x
	}
	if len(r.ID) > maxToken {
		return out, fmt.Errorf("%w: id has %d bytes, must have at most %d", ErrRequest, len(r.ID), maxToken)
	}
	for _, m := range r.Metrics {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			return out, fmt.Errorf("%w: metrics must be finite numbers", ErrRequest)
		}
	}
	return out, check(r.Decision, x)
}

// Rewards reports at most MaxBatch rewards in one request: a result for each, in their order. An
// error is for all of them.
func (c *Client) Rewards(ctx context.Context, experiment string, reports []Report) ([]Result, error) {
	if len(reports) < 1 || len(reports) > MaxBatch {
		return nil, fmt.Errorf("experiment %q: %w: reports has %d, must have from 1 to %d", experiment,
			ErrRequest, len(reports), MaxBatch)
	}
	in := struct {
		Rewards []reportJSON `json:"rewards"`
	}{make([]reportJSON, len(reports))}
	for i, r := range reports {
		var err error
		if in.Rewards[i], err = r.json(); err != nil {
			return nil, fmt.Errorf("experiment %q: report %d: %w", experiment, i, err)
		}
	}
	return c.results(ctx, in, len(reports), experiment, "rewards", "batch")
}

// results sends what is answered with a status for each of n.
func (c *Client) results(ctx context.Context, in any, n int, experiment string,
	what ...string) ([]Result, error) {
	var out struct {
		Results []struct {
			Status Status `json:"status"`
			Error  string `json:"error"`
		} `json:"results"`
	}
	err := c.post(ctx, in, &out, experiment, what...)
	if err == nil && len(out.Results) != n {
		err = fmt.Errorf("%w: it has %d results of %d", ErrAnswer, len(out.Results), n)
	}
	if err != nil {
		return nil, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	results := make([]Result, n)
	for i, r := range out.Results {
		switch {
		case r.Error != "":
			results[i].Err = fmt.Errorf("%w: %s", ErrRequest, r.Error)
		case r.Status == "":
			results[i].Err = ErrAnswer
		default:
			results[i].Status = r.Status
		}
	}
	return results, nil
}

// check refuses what no request can say, without saying the value.
func check(decision string, reward float64) error {
	return checkNamed("decision", decision, maxToken, reward)
}

func checkNamed(what, name string, most int, reward float64) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %s is missing", ErrRequest, what)
	case name == "." || name == "..": // which no path can say
		return fmt.Errorf("%w: %s is %s", ErrRequest, what, name)
	case len(name) > most:
		return fmt.Errorf("%w: %s has %d characters, must have at most %d", ErrRequest, what, len(name), most)
	case math.IsNaN(reward) || math.IsInf(reward, 0):
		return fmt.Errorf("%w: reward must be a finite number", ErrRequest)
	}
	return nil
}

// post sends one request to an experiment.
func (c *Client) post(ctx context.Context, in, out any, experiment string, what ...string) error {
	return c.ask(ctx, http.MethodPost, in, out, experiment, what...)
}

// ask sends one request about an experiment, with a body unless in is nil.
func (c *Client) ask(ctx context.Context, method string, in, out any, experiment string, what ...string) error {
	if experiment == "" || experiment == "." || experiment == ".." {
		return fmt.Errorf("%w: experiment must be a name", ErrRequest)
	}
	return c.request(ctx, method, in, out, append([]string{"v1", "experiments", url.PathEscape(experiment)}, what...)...)
}

// request sends one request, with a body unless in is nil.
func (c *Client) request(ctx context.Context, method string, in, out any, path ...string) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%w: it has no JSON", ErrRequest) // json says the value
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path...).String(), body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.key)
	_, data, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return ErrAnswer
	}
	return nil
}

// send sends one request, and reads the answer.
func (c *Client) send(ctx context.Context, r *http.Request) (*http.Response, []byte, error) {
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, nil, unreached(ctx, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, nil, unreached(ctx, err)
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusAccepted {
		return nil, nil, refused(answer, data)
	}
	return answer, data, nil
}

// unreached is an error of the network, or of the caller who gave up.
func unreached(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// refused reads a problem. What is none, such as a proxy's page, is told by its status alone.
func refused(answer *http.Response, data []byte) error {
	e := &Error{Status: answer.StatusCode}
	if n, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && n > 0 {
		e.RetryAfter = time.Duration(min(n, 60)) * time.Second
	}
	var p struct {
		Detail string `json:"detail"`
		Field  string `json:"field"`
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind ==
		"application/problem+json" && json.Unmarshal(data, &p) == nil {
		e.Detail, e.Field = p.Detail, p.Field
	}
	return e
}
