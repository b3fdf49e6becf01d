package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// forwarded marks a request that another process has passed on. It is not passed on again: two that
// take each other for the writer would do so for ever.
const forwarded = "Sotto-Forwarded"

// warnEvery is how often the log says that requests cannot be passed on.
const warnEvery = 10 * time.Second

// A forwarder passes requests on to the process that writes, whole, and its answers back: the
// writer looks at the key, the body and the time. It keeps nothing and says nothing of them.
type forwarder struct {
	proxy  *httputil.ReverseProxy
	warned atomic.Int64
	mark   func(to http.Header, of *http.Request) // adds to what is passed on; nil adds nothing
}

type toKey struct{}

func newForwarder(log *slog.Logger, failed func(http.ResponseWriter, *http.Request)) *forwarder {
	f := &forwarder{}
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
			p.Out.Header.Set(forwarded, "1")
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
			now := time.Now().UnixNano()
			if last := f.warned.Load(); r.Context().Err() == nil && now-last > int64(warnEvery) &&
				f.warned.CompareAndSwap(last, now) {
				log.Error("requests cannot be passed on to the process that writes", "error", err)
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
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), toKey{}, to))
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
	return true
}
