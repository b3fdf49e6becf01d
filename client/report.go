package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// A ReportTask says how a decision is reported on whose reward the service is not to see
// (https://github.com/sotto-dp/sotto, docs/two-servers.md). It is what the service says: package
// client/private holds it against the declaration, and does what it asks.
type ReportTask struct {
	Trust  string        // the declared trust model, such as two-server or local
	Ticket []byte        // names the decision to whoever sums
	After  time.Duration // when the report is due, from the answer on, whatever happens until then
	// Lo and Hi are the range of rewards, and Default is reported if nothing came.
	Lo, Hi, Default float64
	Law, Noise      string // of trust local: its law, and its scale or variance as a fraction
	// of two servers
	Task   string // the id of the task, in base64url
	Time   uint64 // goes into the report as it is
	Grid   int    // rewards are reported as multiples of 1/Grid of the range
	Helper string // the other server's address
	// Terms is all that the service says, in JSON.
	Terms json.RawMessage
}

func (t *ReportTask) UnmarshalJSON(data []byte) error {
	var in struct {
		Trust   string     `json:"trust"`
		Ticket  string     `json:"ticket"`
		AfterMS int64      `json:"after_ms"`
		Range   [2]float64 `json:"range"`
		Default float64    `json:"default"`
		Law     string     `json:"law"`
		Noise   string     `json:"noise"`
		Task    string     `json:"task"`
		Time    uint64     `json:"time"`
		Grid    int        `json:"grid"`
		Helper  string     `json:"helper"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	ticket, err := base64.RawURLEncoding.Strict().DecodeString(in.Ticket)
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	if err != nil || len(ticket) == 0 || in.Trust == "" || in.AfterMS < 0 || in.AfterMS > longest {
		return ErrAnswer
	}
	*t = ReportTask{Trust: in.Trust, Ticket: ticket, After: time.Duration(in.AfterMS) * time.Millisecond,
		Lo: in.Range[0], Hi: in.Range[1], Default: in.Default, Law: in.Law, Noise: in.Noise, Task: in.Task,
		Time: in.Time, Grid: in.Grid, Helper: in.Helper, Terms: bytes.Clone(data)}
	return nil
}

// A Message is what a client reports on a decision under trust local: its reward with noise in it.
type Message struct {
	Ticket []byte
	Value  int64
}

// Messages reports at most MaxBatch messages in one request: a result for each, in their order. An
// error is for all of them. Sending the same message again is harmless; another message on the same
// decision would cost its person the price of a second reward.
func (c *Client) Messages(ctx context.Context, experiment string, messages []Message) ([]Result, error) {
	if len(messages) < 1 || len(messages) > MaxBatch {
		return nil, fmt.Errorf("experiment %q: %w: messages has %d, must have from 1 to %d", experiment,
			ErrRequest, len(messages), MaxBatch)
	}
	type one struct {
		Ticket  string `json:"ticket"`
		Message int64  `json:"message"`
	}
	in := struct {
		Reports []one `json:"reports"`
	}{make([]one, len(messages))}
	for i, m := range messages {
		in.Reports[i] = one{base64.RawURLEncoding.EncodeToString(m.Ticket), m.Value}
	}
	return c.results(ctx, in, len(messages), experiment, "reports")
}

// The media types of the Distributed Aggregation Protocol that this client speaks.
const (
	mediaConfigs = "application/dap-hpke-config-list"
	mediaUpload  = "application/dap-upload-req"
	mediaUpped   = "application/dap-upload-resp"
)

// Upload sends reports of two servers' aggregation, an UploadRequest of DAP, and returns its
// UploadResponse. It shows no key: a report's ticket is what lets it in.
func (c *Client) Upload(ctx context.Context, task string, reports []byte) ([]byte, error) {
	if task == "" || task == "." || task == ".." {
		return nil, fmt.Errorf("%w: task must be an id", ErrRequest)
	}
	return c.raw(ctx, http.MethodPost, mediaUpload, reports, mediaUpped, "tasks", url.PathEscape(task),
		"reports")
}

// ReportConfigs is what the shares of the service itself are encrypted to, an HpkeConfigList of DAP.
func (c *Client) ReportConfigs(ctx context.Context) ([]byte, error) {
	return c.raw(ctx, http.MethodGet, "", nil, mediaConfigs, "hpke_config")
}

// raw sends bytes, without the key, and wants bytes of a kind.
func (c *Client) raw(ctx context.Context, method, kind string, body []byte, want string,
	path ...string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path...).String(),
		bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, data, err := c.send(ctx, r)
	if err == nil && answer.Header.Get("Content-Type") != want {
		err = ErrAnswer
	}
	return data, err
}
