// Package servetest gives tests a decision service of their own, over HTTP.
package servetest

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A Service is a real one on a store in memory, which can be opened again at the same address.
type Service struct {
	URL    string
	Engine *serve.Engine // the one that was opened last

	t      testing.TB
	disk   *store.Memory
	front  atomic.Pointer[http.Handler]
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// New is a service with an engine of these settings but for the store, for pages of some origins. It
// ends with the test.
func New(t testing.TB, cfg serve.Config, origins ...string) *Service {
	t.Helper()
	s := &Service{t: t, disk: store.NewMemory()}
	s.Open(cfg, origins...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.before.Load(); f == nil || *f == nil || !(*f)(w, r) {
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Open opens an engine on the service's store, as after a crash of the last one.
func (s *Service) Open(cfg serve.Config, origins ...string) {
	s.t.Helper()
	cfg.Store = s.disk.Open
	e, err := serve.Open(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = e.Close() })
	s.Engine = e
	h := api.Handler(api.Config{Engine: e, Origins: origins})
	s.front.Store(&h)
}

// ServeHTTP answers as the service does, without asking what Before has set.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.front.Load()).ServeHTTP(w, r)
}

// Before has each request seen by f first, which says whether it has answered. nil is nobody.
func (s *Service) Before(f func(http.ResponseWriter, *http.Request) bool) { s.before.Store(&f) }

// Key makes a key.
func (s *Service) Key(scopes serve.Scope) string {
	s.t.Helper()
	key, _, err := s.Engine.NewKey(s.t.Context(), "test", scopes)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// Start creates and starts the experiment of a declaration.
func (s *Service) Start(declaration string) {
	s.t.Helper()
	x, err := decl.Reader{}.Parse("test", []byte(declaration))
	if err == nil {
		err = s.Engine.Create(s.t.Context(), *x)
	}
	if err == nil {
		err = s.Engine.Start(s.t.Context(), x.Name)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
