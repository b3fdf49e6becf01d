package helper

import (
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/secagg/dap"
)

//go:embed status.html
var statusPage string

//go:embed openapi.yaml
var openAPI []byte

// status is the page of what the helper has done.
var status = template.Must(template.New("status").Parse(statusPage))

// maxShareRequest bounds a request for a share, in bytes.
const maxShareRequest = 4096

// Handler is the helper over HTTP: the routes of the Distributed Aggregation Protocol that are a
// helper's, GET /hpke_config, and for a task's leader, with its bearer token, PUT
// /tasks/{task}/aggregation_jobs/{job} and PUT /tasks/{task}/aggregate_shares/{share}; a page that
// says what it has promised and spent; GET /livez, /readyz and /openapi.yaml; and the files of
// client, if there are any, below /client/. openapi.yaml has all of it.
func Handler(h *Helper, client fs.FS, log *slog.Logger) http.Handler {
	f := &front{h: h, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", f.status)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /readyz", f.ready)
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("GET /hpke_config", f.config)
	mux.HandleFunc("PUT /tasks/{task}/aggregation_jobs/{id}", f.leader(dap.MediaJob, dap.MaxRequest, f.job))
	mux.HandleFunc("PUT /tasks/{task}/aggregate_shares/{id}", f.leader(dap.MediaShareRequest, maxShareRequest,
		f.share))
	if client != nil {
		files := http.StripPrefix("/client/", http.FileServerFS(client))
		mux.HandleFunc("GET /client/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			files.ServeHTTP(w, r)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

type front struct {
	h   *Helper
	log *slog.Logger
}

// An asked is what a leader asks about a task.
type asked struct {
	task dap.TaskID
	id   dap.ID
	body []byte
}

// leader reads what a leader sends, once it has shown that it is the task's.
func (f *front) leader(media string, most int64, answer func(r *http.Request, in asked) ([]byte, string,
	error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in asked
		var err error
		if in.task, err = dap.ParseTaskID(r.PathValue("task")); err != nil {
			f.problem(w, dap.UnrecognizedTask)
			return
		}
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !f.h.Authorised(in.task, bearer) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, http.StatusUnauthorized, document{Type: "about:blank", Status: http.StatusUnauthorized,
				Title: "the bearer token is not that of the task's leader"})
			return
		}
		if in.id, err = dap.ParseID(r.PathValue("id")); err != nil {
			f.problem(w, dap.InvalidMessage)
			return
		}
		if got := r.Header.Get("Content-Type"); got != media {
			write(w, http.StatusUnsupportedMediaType, document{Type: "about:blank",
				Status: http.StatusUnsupportedMediaType, Title: "the media type must be " + media})
			return
		}
		if in.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most)); err != nil {
			f.problem(w, dap.InvalidMessage)
			return
		}
		out, as, err := answer(r, in)
		if err != nil {
			f.problem(w, err)
			return
		}
		w.Header().Set("Content-Type", as)
		_, _ = w.Write(out)
	}
}

func (f *front) job(r *http.Request, in asked) ([]byte, string, error) {
	out, err := f.h.Job(r.Context(), in.task, in.id, in.body)
	return out, dap.MediaJobResponse, err
}

func (f *front) share(r *http.Request, in asked) ([]byte, string, error) {
	out, err := f.h.Share(r.Context(), in.task, in.body)
	return out, dap.MediaShare, err
}

func (f *front) config(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", dap.MediaConfigs)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=86400")
	_, _ = w.Write(dap.MarshalConfigs(f.h.Key()))
}

func (f *front) ready(w http.ResponseWriter, _ *http.Request) {
	if err := f.h.Ready(); err != nil {
		f.problem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *front) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+
		"base-uri 'none'; "+
		"form-action 'none'; frame-ancestors 'none'")
	if err := status.Execute(w, map[string]any{"CSS": template.CSS(look.CSS()), "Tasks": f.h.Tasks(),
		"Key": f.h.Key().String()}); err != nil {
		f.log.Error("the page was not written whole", "error", err)
	}
}

// A document is a problem as RFC 9457 has it.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// problem answers with what is wrong: a problem type of DAP, or a state of the helper. Anything
// else is its own business.
func (f *front) problem(w http.ResponseWriter, err error) {
	d := document{Type: "about:blank", Title: err.Error(), Status: http.StatusInternalServerError}
	var p dap.Problem
	switch {
	case errors.As(err, &p):
		d.Type, d.Title, d.Status = p.Type(), p.Error(), http.StatusBadRequest
		switch p {
		case dap.UnrecognizedTask:
			d.Status = http.StatusNotFound
		case dap.BatchOverlap, dap.BatchMismatch, dap.StepMismatch:
			d.Status = http.StatusConflict
		}
	case errors.Is(err, ErrClosed):
		d.Status = http.StatusConflict
	case errors.Is(err, ErrUnavailable):
		d.Status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	default:
		f.log.Error("a request was not answered", "error", err)
		d.Title = "the helper cannot answer this"
	}
	write(w, d.Status, d)
}

func write(w http.ResponseWriter, status int, d document) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(d)
}
