package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// A reportTaskJSON says how to report on a decision whose reward nobody is to see.
type reportTaskJSON struct {
	Trust   privacy.Trust `json:"trust"`
	Ticket  string        `json:"ticket"`
	AfterMS int64         `json:"after_ms"`
	Range   [2]float64    `json:"range"`
	Default float64       `json:"default"`
	// of trust local, and of secagg
	Law   privacy.NoiseName `json:"law,omitempty"`
	Noise string            `json:"noise,omitempty"` // its scale or variance, a fraction
	// of two servers
	Task   string `json:"task,omitempty"`
	Time   uint64 `json:"time,omitempty"`
	Grid   int    `json:"grid,omitempty"`
	Helper string `json:"helper,omitempty"`

	Cohort *cohortTaskJSON `json:"cohort,omitempty"`
}

func reportTaskOf(t *serve.ReportTask) *reportTaskJSON {
	if t == nil {
		return nil
	}
	out := &reportTaskJSON{Trust: t.Trust, Ticket: base64.RawURLEncoding.EncodeToString(t.Ticket),
		AfterMS: t.After.Milliseconds(), Range: [2]float64{t.Lo, t.Hi}, Default: t.Default,
		Cohort: cohortTaskOf(t.Cohort)}
	switch t.Trust {
	case privacy.TrustLocal, privacy.TrustSecAgg:
		out.Law, out.Noise = t.Noise.Name, fmt.Sprintf("%d/%d", t.Noise.Num, t.Noise.Den)
	case privacy.TrustTwoServer:
		out.Task, out.Time, out.Grid, out.Helper = t.Task.String(), t.Time, t.Grid, t.Helper
	}
	return out
}

type reportsRequest struct {
	Reports []struct {
		Ticket  string      `json:"ticket"`
		Message json.Number `json:"message"`
		Key     *string     `json:"key"` // of trust secagg, instead of a message
	} `json:"reports"`
}

func (q *reportsRequest) check() error {
	if n := len(q.Reports); n < 1 || n > maxRewards {
		return refused(http.StatusBadRequest, "reports", fmt.Sprintf("reports has %d, must have from 1 to %d",
			n, maxRewards))
	}
	for i, r := range q.Reports {
		for name, text := range map[string]string{"ticket": r.Ticket, "message": r.Message.String()} {
			if text == "" && !(name == "message" && r.Key != nil) {
				name = fmt.Sprintf("reports[%d].%s", i, name)
				return refused(http.StatusBadRequest, name, name+" is missing")
			}
		}
	}
	return nil
}

// reports takes reports of trust local, and keys of trust secagg.
func (f *front) reports(w http.ResponseWriter, r *http.Request) (any, error) {
	var in reportsRequest
	if err := read(w, r, maxBatch, &in); err != nil {
		return nil, err
	}
	messages := make([]serve.Message, len(in.Reports))
	for i, one := range in.Reports {
		ticket, err := base64.RawURLEncoding.Strict().DecodeString(one.Ticket)
		if err != nil {
			ticket = nil // which is no decision's
		}
		messages[i] = serve.Message{Ticket: ticket, Body: []byte(one.Message)}
		if one.Key != nil {
			// what is no key, or comes with a message, is refused for its length
			key, _ := base64.RawURLEncoding.Strict().DecodeString(*one.Key)
			messages[i].Body = append(key, one.Message...)
		}
	}
	results, err := f.Engine.Reports(r.Context(), r.PathValue("name"), messages)
	if err != nil {
		return nil, err
	}
	return resultsOf(results), nil
}

// configs says what clients encrypt shares to.
func (f *front) configs(w http.ResponseWriter, r *http.Request) {
	config, err := f.Engine.ReportConfig()
	if err != nil {
		f.answerTo(w, r, err)
		return
	}
	w.Header().Set("Content-Type", dap.MediaConfigs)
	w.Header().Set("Cache-Control", "max-age=3600") // it is the store's, and lasts as long
	_, _ = w.Write(dap.MarshalConfigs(config))
}

// maxUpload is how many reports one request may have.
const maxUpload = 256

// upload takes reports of trust two-server, as DAP has it. Who has a decision's ticket may report on
// it: there is no key.
func (f *front) upload(w http.ResponseWriter, r *http.Request) {
	hush(w)
	statuses, err := f.uploaded(w, r)
	if err != nil {
		f.answerTo(w, r, err)
		return
	}
	w.Header().Set("Content-Type", dap.MediaUploadResponse)
	_, _ = w.Write(dap.MarshalUploadResponse(statuses...))
}

func (f *front) uploaded(w http.ResponseWriter, r *http.Request) (out []dap.UploadStatus, err error) {
	task, err := dap.ParseTaskID(r.PathValue("task"))
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Type") != dap.MediaUpload {
		return nil, refused(http.StatusUnsupportedMediaType, "", "the body must be "+dap.MediaUpload)
	}
	data, err := body(w, r, maxBatch)
	if err != nil {
		return nil, err
	}
	reports, err := dap.ParseReports(data, maxUpload)
	if err != nil {
		return nil, err
	}
	results, err := f.Engine.Upload(r.Context(), task, reports)
	if err != nil {
		return nil, err
	}
	for i, one := range results {
		why := dap.ReportDropped // its decision counts nowhere
		switch {
		case one.Err != nil:
			why = dap.InvalidReport
		case one.Status == serve.Accepted:
			continue
		case one.Status == serve.Late:
			why = dap.BatchCollected
		}
		out = append(out, dap.UploadStatus{ID: reports[i].ID, Reason: why})
	}
	return out, nil
}

// problemOfDAP is an error in DAP's words, nil if it is none of them.
func problemOfDAP(err error) *problem {
	var of dap.Problem
	if !errors.As(err, &of) {
		return nil
	}
	status := http.StatusBadRequest
	if of == dap.UnrecognizedTask {
		status = http.StatusNotFound
	}
	p := refused(status, "", err.Error())
	p.Type = of.Type()
	return p
}
