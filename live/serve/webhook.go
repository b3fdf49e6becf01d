package serve

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A Stop is what a webhook is told, as JSON: what everybody may see, and no more.
type Stop struct {
	Experiment string `json:"experiment"`
	State      State  `json:"state"`
	// Answer is the arm that is kept. Where a rule looks for it and did not stop by itself it is no answer, as
	// no risk of error is promised: then it is Leader, or Kept if an operator or the declaration named it.
	Answer string    `json:"answer,omitempty"`
	Leader string    `json:"leader,omitempty"`
	Kept   string    `json:"kept,omitempty"`
	Time   time.Time `json:"time"` // of the stop
}

// SignatureHeader of a webhook's request is "sha256=" and the HMAC-SHA256 of its body, in
// hexadecimal digits, with the secret that WebhookSecret says, as it is written, for a key.
const SignatureHeader = "Sotto-Signature"

// How a webhook is told: each try may take hookWithin; after one that failed the next waits, twice
// as long each time, at most hookWait; after hookTries none comes.
const (
	hookWithin = 10 * time.Second
	hookWait   = time.Hour
	hookTries  = 80 // three days
)

// WebhookSecret is what the requests to an experiment's webhook are signed with.
func (e *Engine) WebhookSecret(name string) (string, error) {
	x, err := e.find(name)
	if err != nil {
		return "", err
	}
	return string(x.hookKey), nil
}

// announce begins to tell the webhook of an experiment what a guard has done, or that it has stopped, if
// that is durable and nobody has. It is told at least once: again after a restart, if nobody knows.
func (e *Engine) announce(ctx context.Context, x *served) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.decl.Webhook == "" || x.telling {
		return
	}
	body := x.news()
	if body == nil {
		return
	}
	x.telling = true
	e.hooks.Go(func() { e.tell(ctx, x, body) })
}

// CloudEvents 1.0 in JSON, in structured mode.
const (
	CloudEventsType    = "application/cloudevents+json"
	CloudEventsVersion = "1.0"
)

// A cloudEvent is one that a webhook is told.
type cloudEvent struct {
	Version string    `json:"specversion"`
	ID      string    `json:"id"`     // the same whenever the same is told
	Source  string    `json:"source"` // the experiment's address, less the service's
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time"`
	Content string    `json:"datacontenttype"`
	Data    any       `json:"data"`
}

// message is what is told, as JSON: as it is, or as a CloudEvent.
func (x *served) message(kind string, at time.Time, what any) []byte {
	body, _ := json.Marshal(what) // there is nothing in it that JSON cannot hold
	if x.decl.WebhookForm != decl.FormCloudEvents {
		return body
	}
	id := sha256.Sum256(append([]byte(x.decl.Name+" "+kind+" "), body...))
	body, _ = json.Marshal(cloudEvent{Version: CloudEventsVersion, ID: hex.EncodeToString(id[:16]),
		Source: "/v1/experiments/" + x.decl.Name, Type: "io.github.sotto-dp.experiment." + kind, Subject: x.decl.Name, Time: at,
		Content: "application/json", Data: json.RawMessage(body)})
	return body
}

// news is what the webhook is to be told next, nil if there is nothing; heard notes that it was.
func (x *served) news() []byte {
	if len(x.rec.Harms) > 0 {
		return x.message("guard", x.rec.Harms[0].Time, x.rec.Harms[0])
	}
	if x.rec.Ended == 0 || x.rec.Told || x.rec.Keep < 0 {
		return nil
	}
	out, kept := Stop{Experiment: x.decl.Name, State: Stopped, Time: time.UnixMilli(x.rec.Ended).UTC()},
		x.decl.Arms[x.rec.Keep].Name
	switch s := x.rec.Stop; {
	case x.decl.Risk == 0 || x.rec.Why == endAnswer:
		out.Answer = kept
	case s != nil && s.Leader:
		out.Leader = kept
	default:
		out.Kept = kept
	}
	return x.message("stopped", out.Time, out)
}

func (x *served) heard(body []byte) {
	switch x.telling = false; {
	case !bytes.Equal(body, x.news()): // who told it before a restart has noted it
	case len(x.rec.Harms) > 0:
		x.rec.Harms = x.rec.Harms[1:]
	default:
		x.rec.Told = true
	}
	x.todo |= theRecord
}

// tell tells a webhook until it has taken it, and notes that.
func (e *Engine) tell(ctx context.Context, x *served, body []byte) {
	wait, kind := e.cfg.hookPause, "application/json"
	if x.decl.WebhookForm == decl.FormCloudEvents {
		kind = CloudEventsType + "; charset=utf-8"
	}
	for try := 1; ; try++ {
		err := post(ctx, x.decl.Webhook, kind, x.hookKey, body)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		e.cfg.Log.Error("serve: a webhook has failed", "experiment", x.decl.Name, "try", try, "error", err)
		if try == hookTries {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, hookWait)
	}
	if err := e.do(ctx, &job{on: x, act: func(x *served, _ *store.Commit, _ int64) error {
		x.heard(body)
		return nil
	}}); err != nil && ctx.Err() == nil {
		e.cfg.Log.Error("serve: a webhook will be told again", "experiment", x.decl.Name, "error", err)
	}
}

// post tells a webhook once. What it answers is not read, and no redirect is followed: who was
// named is told, and nobody else.
func post(ctx context.Context, to, kind string, key, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", "sotto")
	r.Header.Set(SignatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	client := http.Client{Timeout: hookWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // which has the whole address
			err = of.Err
		}
		return err
	}
	_, _ = io.CopyN(io.Discard, got.Body, 1<<10)
	_ = got.Body.Close()
	if got.StatusCode < 200 || got.StatusCode > 299 {
		return fmt.Errorf("it answered %d", got.StatusCode)
	}
	return nil
}
