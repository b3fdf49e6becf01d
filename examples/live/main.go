// Command live is a web shop whose button has the color that a live experiment chooses: it asks a
// running sotto serve for each visitor, shows its usual color where none is to be had, and reports
// who bought. shop.yaml is the experiment, README.md says how to run it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sotto-dp/sotto/client"
)

// experiment is the name in shop.yaml, and usual what is shown where there is no decision.
const (
	experiment = "shop"
	usual      = "#c00"
)

var page = template.Must(template.New("page").Parse(`<!doctype html>
<title>A shop</title>
<form method="post" action="/buy">
<input type="hidden" name="decision" value="{{.Decision}}">
<button style="background: {{.Color}}; color: white">Buy</button>
</form>
`))

// A shop serves the page, and takes what is bought.
type shop struct {
	decide  *client.Client
	rewards *client.Queue
	log     *slog.Logger
}

func (s shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.front)
	mux.HandleFunc("POST /buy", s.buy)
	return mux
}

// front shows the button. It waits for a decision a fifth of a second, and then no longer.
func (s shop) front(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 200*time.Millisecond)
	defer cancel()
	shown := struct{ Color, Decision string }{Color: usual}
	d, err := s.decide.Decide(ctx, experiment, client.Unit{Name: visitor(w, r)})
	if err == nil {
		err = json.Unmarshal(d.Value, &shown.Color)
	}
	if err != nil {
		s.log.Warn("the usual color is shown", "error", err)
	} else {
		shown.Decision = d.Token
	}
	w.Header().Set("Cache-Control", "no-store") // it is this visitor's
	if err := page.Execute(w, shown); err != nil {
		s.log.Error("the page broke off", "error", err)
	}
}

// buy reports a reward of 1 for the decision that the page had. Who does not buy needs no report:
// when the window has passed the declared default counts.
func (s shop) buy(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if decision := r.PostFormValue("decision"); decision != "" {
		if err := s.rewards.Add(experiment, decision, 1); err != nil {
			s.log.Error("a reward is lost", "error", err)
		}
	}
	fmt.Fprintln(w, "Thank you.")
}

// visitor is the name in the visitor's cookie, which a new one is given.
func visitor(w http.ResponseWriter, r *http.Request) string {
	const name = "visitor"
	if c, err := r.Cookie(name); err == nil && c.Value != "" {
		return c.Value
	}
	c := &http.Cookie{Name: name, Value: rand.Text(), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: 365 * 24 * 3600}
	http.SetCookie(w, c)
	return c.Value
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, log); err != nil {
		log.Error("the shop ends", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger) error {
	c, err := client.New(cmp.Or(os.Getenv("SOTTO_SERVER"), "http://127.0.0.1:8080"), os.Getenv("SOTTO_KEY"))
	if err != nil {
		return fmt.Errorf("SOTTO_SERVER and SOTTO_KEY: %w", err)
	}
	q, err := c.Queue(client.QueueConfig{Log: log})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:8081")
	if err != nil {
		return err
	}
	fmt.Printf("the shop is at http://%s\n", l.Addr())
	server := &http.Server{Handler: shop{c, q, log}.routes(), ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	// first who comes, then what waits
	return errors.Join(err, server.Shutdown(last), q.Close(last))
}
