package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/helper"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// A leader and the helper of package helper, each with a database of its own, release what was reported,
// with the noise of both; the helper has booked every share, and one that is killed in the middle goes on.
func TestLeaderAndHelper(t *testing.T) {
	at := store.SQLite(filepath.Join(t.TempDir(), "helper"))
	first, err := helper.Open(t.Context(), helper.Config{Store: at})
	if err != nil {
		t.Fatal(err)
	}
	key := first.Key()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var front atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := front.Load(); h != nil {
			(*h).ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer server.Close()
	shop := strings.NewReplacer("trust: local", fmt.Sprintf("trust: two-server\ngrid: 1024\nhelper: {url: %q, key: %s}",
		server.URL, key), "first: 20", "first: 400").Replace(localShop)
	x := parse(t, shop)
	run := func() *helper.Helper {
		h, err := helper.Open(t.Context(), helper.Config{Store: at,
			Tasks: []helper.Task{{Declared: &x, Secret: shared}}})
		if err != nil {
			t.Fatal(err)
		}
		handler := helper.Handler(h, nil, nil)
		front.Store(&handler)
		return h
	}
	c := newClock()
	e := open(t, Config{Store: store.SQLite(filepath.Join(t.TempDir(), "leader")), Clock: c.Now,
		HelperSecret: func(string) []byte { return shared }, gatherPause: time.Millisecond})
	begin(t, e, shop)
	p := &party{}
	p.config = key
	var sums [2]float64
	for i, d := range decided(t, e, 800) {
		value := uint64(i % 1025)
		reportOne(t, e, p.report(t, e, d, value))
		sums[d.Arm] += float64(value) / 1024
	}
	c.Add(time.Minute)
	until(t, e, c, func(i Info) bool { return i.Trouble == "its helper answers 502" })
	h := run()
	info := until(t, e, c, released(400))
	_ = h.Close()
	h = run() // again, on what was durable
	defer h.Close()
	info = until(t, e, c, released(800))
	law, err := x.Noise()
	if err != nil {
		t.Fatal(err)
	}
	reach := 2 * float64(law.Reach()) * release.ExactStep // of two noises, each with probability 2^-64
	for a, got := range info.Arms {
		if off := got.Sum - sums[a]; got.Released != 400 || off > reach || off < -reach || off == 0 {
			t.Errorf("arm %d: %d decisions with the sum %v, must be 400 with %v", a, got.Released, got.Sum, sums[a])
		}
	}
	if all := h.Tasks(); len(all) != 1 {
		t.Errorf("the helper has %+v", all)
	}
	replayed(t, e)
}
