package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// A Plan is how clients decide without a request, as the service sends it; package client/leased decides by it.
type Plan struct {
	Text []byte // JSON, as package live/lease reads it
	Tag  string // tells it from others
	// Sent is when, by the service's clock, to a second; zero if it does not say.
	Sent time.Time
}

// Plan asks for the plan of an experiment that declares leases. With the tag of one that is known it waits so
// long for another: if there is none its Text is nil. A wait of 15 s is the longest, and it must be below the
// timeout of the client's http.Client, which is 15 s if none was given.
func (c *Client) Plan(ctx context.Context, experiment, tag string, wait time.Duration) (Plan, error) {
	if experiment == "" {
		return Plan{}, fmt.Errorf("%w: experiment must be a name", ErrRequest)
	}
	at := c.base.JoinPath("v1", "experiments", experiment, "plan")
	if wait > 0 && tag != "" {
		at.RawQuery = "wait=" + wait.String()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return Plan{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.key)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return Plan{}, unreached(ctx, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxPlan))
	if err != nil {
		return Plan{}, unreached(ctx, err)
	}
	out := Plan{Tag: answer.Header.Get("ETag")}
	out.Sent, _ = http.ParseTime(answer.Header.Get("Date"))
	switch answer.StatusCode {
	case http.StatusOK:
		out.Text = data
	case http.StatusNotModified:
		out.Tag = tag
	default:
		return Plan{}, refused(answer, data)
	}
	return out, nil
}

// maxPlan bounds a plan, which has the values of all arms.
const maxPlan = 1 << 27

// An Exposure says that a unit was given an arm by a plan.
type Exposure struct {
	Experiment string `json:"experiment"`
	Unit       string `json:"targetingKey"`
	Epoch      uint64 `json:"epoch"`
	Arm        string `json:"arm"`
}

// Expose reports at most MaxBatch exposures in one request, and returns when what they did is durable. What that was is
// told nobody. It sends once; an error that matches ErrUnavailable says that all of it may be sent again. Whether
// and when an exposure is sent must not depend on what comes of it.
func (c *Client) Expose(ctx context.Context, exposures ...Exposure) error {
	if n := len(exposures); n < 1 || n > MaxBatch {
		return fmt.Errorf("%w: exposures has %d, must have from 1 to %d", ErrRequest, n, MaxBatch)
	}
	for i, v := range exposures {
		if err := v.Check(); err != nil {
			return fmt.Errorf("exposure %d: %w", i, err)
		}
	}
	in := struct {
		Exposures []Exposure `json:"exposures"`
	}{exposures}
	return c.request(ctx, http.MethodPost, in, &struct{}{}, "v1", "exposures")
}

// Check says what is wrong with the form of an exposure: the service would refuse all that is sent with it. No error has
// a value of it.
func (v Exposure) Check() error {
	switch {
	case v.Unit == "" || len(v.Unit) > maxEvent:
		return fmt.Errorf("%w: unit has %d bytes, must have from 1 to %d", ErrRequest, len(v.Unit), maxEvent)
	case strings.ContainsRune(v.Unit, utf8.RuneError): // which JSON has for bytes that are none
		return fmt.Errorf("%w: unit must be Unicode, without U+FFFD", ErrRequest)
	case v.Experiment == "" || v.Arm == "" || v.Epoch == 0:
		return fmt.Errorf("%w: experiment, arm and epoch must be those of the plan", ErrRequest)
	}
	return nil
}
