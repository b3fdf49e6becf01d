package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/page"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// An update is an event as a page reads it.
type update struct {
	id   string
	HTML map[string]string
	Data page.Data
}

// events reads what a watcher got.
func events(t *testing.T, text string) (out []update) {
	t.Helper()
	for block := range strings.SplitSeq(text, "\n\n") {
		var u update
		id, rest, ok := strings.Cut(block, "\nevent: update\ndata: ")
		if !ok {
			continue
		}
		u.id = strings.TrimPrefix(id, "id: ")
		if err := json.Unmarshal([]byte(rest), &u); err != nil {
			t.Fatal(err, rest)
		}
		out = append(out, u)
	}
	return out
}

func (x *watcher) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b strings.Builder
	for _, s := range x.got {
		b.WriteString(s.text)
	}
	return b.String()
}

// apply does to the data of a page what an event says.
func apply(d *page.Data, u update) {
	d.ID = u.Data.ID
	for _, c := range u.Data.Course {
		d.Course[c.Arm].Points = append(d.Course[c.Arm].Points[:c.From:c.From], c.Points...)
	}
	d.Hours.Rows = append(d.Hours.Rows[:u.Data.Hours.From:u.Data.Hours.From], u.Data.Hours.Rows...)
	d.Days.Rows = append(d.Days.Rows[:u.Data.Days.From:u.Data.Days.From], u.Data.Days.Rows...)
}

// A page that was open all the time, one that was closed for a while and comes back with the last
// event that it had, and one that is opened anew have the same, also over a restart of the service;
// who has everything is sent nothing, and a login that ends ends its events.
func TestEvents(t *testing.T) {
	if testkit.Race {
		t.Skip("TestEventsEnd has the races")
	}
	synctest.Test(t, func(t *testing.T) {
		disk := store.NewMemory()
		var e *serve.Engine
		var h http.Handler
		start := func() {
			var err error
			if e, err = serve.Open(t.Context(), serve.Config{Store: disk.Open, Curator: seeded}); err != nil {
				t.Fatal(err)
			}
			h = Handler(Config{Engine: e})
		}
		start()
		defer func() { h.(*front).pages.Close(); _ = e.Close() }()
		key, made, err := e.NewKey(t.Context(), "reader", serve.ScopeRead)
		if err != nil {
			t.Fatal(err)
		}
		x := mustParse(t, strings.NewReplacer("1m", "5s", "public: true", "public: false").Replace(shop))
		if err := e.Create(t.Context(), *x); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		open := func(header ...string) (*watcher, func()) {
			ctx, stop := context.WithCancel(t.Context())
			w := &watcher{header: http.Header{}}
			r := httptest.NewRequestWithContext(ctx, "GET", "/experiments/shop/events", nil)
			r.Header.Set("X-API-Key", key)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			done := make(chan bool)
			go func() { defer close(done); h.ServeHTTP(w, r) }()
			synctest.Wait()
			return w, func() { stop(); <-done }
		}
		unit := 0
		pass := func(seconds int) {
			for range seconds {
				for range 3 {
					unit++
					if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(unit)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
			}
			synctest.Wait()
		}
		time.Sleep(30 * time.Millisecond)
		first, stop := open()
		pass(12)
		stop()
		got := events(t, first.text())
		if len(got) != 13 || len(got[0].HTML) < 3 { // all of it, and one a second
			t.Fatalf("%d events: %s", len(got), first.text())
		}
		d := got[0].Data
		for _, u := range got[1:] {
			apply(&d, u)
		}
		pass(20)
		back, stop := open("Last-Event-ID", got[12].id)
		for _, u := range events(t, back.text()) {
			for _, c := range u.Data.Course {
				if c.From == 0 && len(d.Course[c.Arm].Points) > 1 {
					t.Errorf("it is sent everything again: %+v", u)
				}
			}
			apply(&d, u)
		}
		stop()
		fresh, stop := open()
		want := events(t, fresh.text())
		stop()
		if a, b := fmt.Sprint(d.Course, d.Hours.Rows, d.Days.Rows), fmt.Sprint(want[0].Data.Course,
			want[0].Data.Hours.Rows, want[0].Data.Days.Rows); len(want) != 1 || a != b ||
			d.ID != want[0].Data.ID ||
			len(d.Course[0].Points) == 0 {
			t.Errorf("it has\n%s\nmust have\n%s", a, b)
		}
		same, stop := open("Last-Event-ID", d.ID)
		if got := same.text(); got != "retry: 2000\n\n" {
			t.Errorf("it has everything, and is sent %s", got)
		}
		stop()
		// over a restart
		time.Sleep(20 * time.Second)
		synctest.Wait()
		quiet, stop := open("Last-Event-ID", d.ID)
		id := d.ID
		for _, u := range events(t, quiet.text()) {
			id = u.id
		}
		stop()
		h.(*front).pages.Close()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		start()
		time.Sleep(time.Second)
		again, stop := open("Last-Event-ID", id)
		for i, u := range events(t, again.text()) { // once, since the bins of the first hours are forgotten
			if i > 0 || u.Data.Early != nil {
				t.Errorf("after a restart it is sent %+v", u)
			}
			id = u.id
		}
		stop()
		more, stop := open("Last-Event-ID", id)
		if got := more.text(); got != "retry: 2000\n\n" {
			t.Errorf("then it is sent %s", got)
		}
		stop()
		// heartbeats at fixed times, and an end where the key is revoked
		time.Sleep(time.Duration(15-time.Now().Second()%15) * time.Second)
		beats, stop := open("Last-Event-ID", id)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := strings.Count(beats.text(), ":\n\n"); n != 3 {
			t.Errorf("%d heartbeats: %q", n, beats.text())
		}
		if err := e.RevokeKey(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		before := beats.text()
		for range 31 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if got := beats.text(); got != before {
			t.Errorf("a revoked key is sent %q", got)
		}
		stop()
	})
}

// Events of a private experiment end in the instant in which their key is revoked, also those of a
// login, and nobody else's: neither those of another key, nor of an experiment that everybody may see.
func TestEventsOfRevokedKey(t *testing.T) {
	if testkit.Race {
		t.Skip("TestEventsEnd has the races")
	}
	synctest.Test(t, func(t *testing.T) {
		disk := store.NewMemory()
		e, err := serve.Open(t.Context(), serve.Config{Store: disk.Open, Curator: seeded})
		if err != nil {
			t.Fatal(err)
		}
		h := Handler(Config{Engine: e})
		defer func() { h.(*front).pages.Close(); _ = e.Close() }()
		for _, text := range []string{strings.Replace(shop, "public: true", "public: false", 1),
			strings.Replace(shop, "name: shop", "name: open", 1)} {
			if err := e.Create(t.Context(), *mustParse(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		newKey := func() (string, int64) {
			secret, k, err := e.NewKey(t.Context(), "reader", serve.ScopeRead)
			if err != nil {
				t.Fatal(err)
			}
			return secret, k.ID
		}
		key, id := newKey()
		other, _ := newKey()
		session, _ := e.Session(key)
		ended := map[string]bool{}
		var mu sync.Mutex
		ctx, stop := context.WithCancel(t.Context())
		for name, x := range map[string][3]string{
			"a key":              {"shop", "X-API-Key", key},
			"a login":            {"shop", "Cookie", "sotto_session=" + session},
			"another key":        {"shop", "X-API-Key", other},
			"what all may see":   {"open", "X-API-Key", key},
			"a login, of public": {"open", "Cookie", "sotto_session=" + session},
		} {
			r := httptest.NewRequestWithContext(ctx, "GET", "/experiments/"+x[0]+"/events", nil)
			r.Header.Set(x[1], x[2])
			go func() {
				h.ServeHTTP(&watcher{header: http.Header{}}, r)
				mu.Lock()
				defer mu.Unlock()
				ended[name] = true
			}()
		}
		check := func(when string, want map[string]bool) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !maps.Equal(ended, want) {
				t.Errorf("%s these have ended: %v", when, ended)
			}
		}
		time.Sleep(20 * time.Second) // it was asked a while ago whether they may
		check("before", map[string]bool{})
		newKey()
		check("after another key was made", map[string]bool{})
		from := time.Now()
		if err := e.RevokeKey(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		check("then", map[string]bool{"a key": true, "a login": true})
		if took := time.Since(from); took > time.Second/2 { // a commit waits for others
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Minute)
		check("a minute later", map[string]bool{"a key": true, "a login": true})
		stop()
		synctest.Wait()
	})
}

// Events end when the service does, at once; a reader who does not read is dropped, and the others
// are sent what is new.
func TestEventsEnd(t *testing.T) {
	w := shopOpen(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, w.front, slog.New(slog.DiscardHandler)) }()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /experiments/shop/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		lines := bufio.NewScanner(c)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
		}
	}
	from := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(from); took > answerWithin/2 {
		t.Errorf("it ends after %v", took)
	}
}

func mustParse(t *testing.T, text string) *serve.Experiment {
	t.Helper()
	x, err := decl.Reader{}.Parse("shop", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}
