package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// forwarded marks a request that another process has passed on, with the name of its database. It is
// not passed on again: two that take each other for the writer would do so for ever. One of another
// database is refused: whoever sent it has read an address in a copy of this one. With /livez it is an
// ask, and in its answer the proof that who was asked is on this database: neither has the name in it.
const forwarded = "Sotto-Forwarded"

// ask asks who is at an address to prove that it is on a database.
func ask(database string) string {
	nonce := rand.Text()
	return nonce + "." + proof(database, "asks", nonce)
}

// knows says whether who asks is on a database. Empty names are of none.
func knows(database, with string) bool {
	nonce, by, ok := strings.Cut(with, ".")
	return ok && database != "" && hmac.Equal([]byte(by), []byte(proof(database, "asks", nonce)))
}

// answerTo proves to who asks that it is answered on a database.
func answerTo(database, with string) string {
	nonce, _, _ := strings.Cut(with, ".")
	return proof(database, "answers", nonce)
}

func proof(database, what, nonce string) string {
	mac := hmac.New(sha256.New, []byte(database))
	mac.Write([]byte(what + " " + nonce))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// warnEvery is how often the log says that requests cannot be passed on.
const warnEvery = 10 * time.Second

// Who is at an address is asked within proveWithin, and if the answer is not good, again after proveEvery.
const (
	proveWithin = 2 * time.Second
	proveEvery  = 500 * time.Millisecond
)

// A forwarder passes requests on to the process that writes, whole, and its answers back: the
// writer looks at the key, the body and the time. It keeps nothing and says nothing of them.
type forwarder struct {
	proxy    *httputil.ReverseProxy
	mark     func(to http.Header, of *http.Request) // adds to what is passed on; nil adds nothing
	refuse   func(http.ResponseWriter, *http.Request, error)
	log      *slog.Logger
	database string // its name
	warned   atomic.Int64

	proof sync.Mutex      // of what follows
	of    context.Context // which ends when the address is another
	good  bool
	asked time.Time
	line  *line     // nil where there is none
	tried time.Time // when there was none
}

type toKey struct{}

func newForwarder(log *slog.Logger, database string,
	failed func(http.ResponseWriter, *http.Request)) *forwarder {
	f := &forwarder{log: log, database: database}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			to, _ := p.In.Context().Value(toKey{}).(*url.URL)
			p.SetURL(to)
			p.SetXForwarded()
			if proto := p.In.Header.Get("X-Forwarded-Proto"); proto != "" { // of a proxy before
				p.Out.Header.Set("X-Forwarded-Proto", proto)
			}
			if f.mark != nil {
				f.mark(p.Out.Header, p.In)
			}
			p.Out.Host = p.In.Host
			p.Out.Header.Set(forwarded, f.database)
		},
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: time.Second}).DialContext,
			TLSHandshakeTimeout:   2 * time.Second,
			ResponseHeaderTimeout: 2 * answerWithin,
			MaxIdleConnsPerHost:   256,
			IdleConnTimeout:       time.Minute,
			DisableCompression:    true, // what the client asked for goes through
			ForceAttemptHTTP2:     true,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				f.warn("requests cannot be passed on to the process that writes", "error", err)
			}
			failed(w, r)
		},
	}
	return f
}

// pass passes a request on, until somebody else writes; ok is false if it cannot be.
func (f *forwarder) pass(w http.ResponseWriter, r *http.Request, address string,
	until context.Context) (ok bool) {
	if address == "" || r.Header.Get(forwarded) != "" {
		return false
	}
	to, err := url.Parse(address)
	if err != nil || to.Host == "" {
		return false
	}
	if !f.proved(to, until) {
		return false
	}
	if onLine(r) {
		if l := f.lineTo(to, until); l != nil {
			data, err := body(w, r, maxLineBody)
			if err != nil {
				f.refuse(w, r, err)
				return true
			}
			of := http.Header{}
			if f.mark != nil {
				f.mark(of, r)
			}
			return l.pass(w, r, data, of.Get(passedFrom))
		}
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), toKey{}, to))
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
	return true
}

// warn logs an error, seldom.
func (f *forwarder) warn(what string, more ...any) {
	now := time.Now().UnixNano()
	if last := f.warned.Load(); now-last > int64(warnEvery) && f.warned.CompareAndSwap(last, now) {
		f.log.Error(what, more...)
	}
}

// proved says whether who is at an address has proved to be on this database, before anything of a
// request goes there: who is on another database does not know the name, and is not told it.
func (f *forwarder) proved(to *url.URL, until context.Context) bool {
	f.proof.Lock()
	defer f.proof.Unlock()
	if f.of != until {
		f.of, f.good, f.asked, f.tried = until, false, time.Time{}, time.Time{}
		f.hangUp()
	}
	if f.good || time.Since(f.asked) < proveEvery {
		return f.good
	}
	ctx, cancel := context.WithTimeout(until, proveWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.JoinPath("/livez").String(), nil)
	if err != nil {
		return false
	}
	with := ask(f.database)
	r.Header.Set(forwarded, with)
	out, err := f.proxy.Transport.RoundTrip(r)
	if err == nil {
		f.good = out.Header.Get(forwarded) == answerTo(f.database, with)
		_ = out.Body.Close()
	}
	if f.asked = time.Now(); !f.good && until.Err() == nil {
		f.warn("requests are not passed on: nobody at the address of the process that writes proves to be on "+
			"this database", "address", to.String(), "error", err)
	}
	return f.good
}

// lineEvery is how often who has no line, as an older program, is asked for one.
const lineEvery = 10 * time.Second

// lineTo is the line to who is at an address, nil if there is none.
func (f *forwarder) lineTo(to *url.URL, until context.Context) *line {
	f.proof.Lock()
	defer f.proof.Unlock()
	switch {
	case f.of != until:
		return nil
	case f.line != nil && !f.line.over():
		return f.line
	case time.Since(f.tried) < lineEvery:
		return nil
	}
	ctx, cancel := context.WithTimeout(until, proveWithin)
	defer cancel()
	l, err := callLine(ctx, f.proxy.Transport, to, f.database)
	if f.line = l; l == nil {
		if f.tried = time.Now(); err != nil && until.Err() == nil {
			f.warn("there is no line to the process that writes: requests are passed on one by one", "error", err)
		}
		return nil
	}
	context.AfterFunc(until, l.end) // who waits asks again, of another
	return l
}

// hangUp ends the line. The lock is held.
func (f *forwarder) hangUp() {
	if f.line != nil {
		f.line.end()
		f.line = nil
	}
}
