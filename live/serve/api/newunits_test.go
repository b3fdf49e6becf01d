package api

import (
	"crypto/tls"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// capped is a running experiment whose front has these settings and the world's clock.
func capped(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := shopOpen(t)
	cfg := w.front.Config
	cfg.clock = w.clock.Now
	if change != nil {
		change(&cfg)
	}
	w.front = Handler(cfg).(*front)
	w.asked = w.front
	w.key = w.keyWith(browserScopes)
	return w
}

// browser asks for a decision, as a browser without a cookie.
func (w *world) browser(from string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/experiments/shop/decisions", nil)
	r.Header.Set("X-API-Key", w.key)
	r.RemoteAddr, r.TLS = from, &tls.ConnectionState{}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	out := httptest.NewRecorder()
	w.asked.ServeHTTP(out, r)
	return out
}

const asked = 20 * 100

// attack asks 100 times a second for 20 s, as one who throws cookies away, and says for how many
// units there were decisions.
func (w *world) attack(from func(i int) (address string, header []string)) (units int) {
	for i := range asked {
		address, header := from(i)
		if w.browser(address, header...).Code == 200 {
			units++
		}
		w.clock.Add(time.Second / 100)
	}
	return units
}

// Whoever throws cookies away is a minute's worth of units, and one a second, whatever headers they
// send. Copies that believe a header which nobody declared, take each address of IPv6 for another,
// or have no cap, are found out.
func TestNewUnits(t *testing.T) {
	if testkit.Race {
		t.Skip("requests come one after the other")
	}
	one := func(int) (string, []string) { return "192.0.2.7:4711", nil }
	six := func(i int) (string, []string) { return fmt.Sprintf("[2001:db8:1:2:%x::1]:4711", i), nil }
	liar := func(i int) (string, []string) {
		a := fmt.Sprintf("198.51.%d.%d", i/250, i%250)
		return "192.0.2.7:4711", []string{"X-Forwarded-For", a, "X-Real-IP", a, "Forwarded", "for=" + a}
	}
	behind := func(i int) (string, []string) { // a proxy adds the last
		return "10.0.0.1:80", []string{"X-Forwarded-For", fmt.Sprintf("198.51.%d.%d, 192.0.2.7", i/250, i%250)}
	}
	apart := func(i int) (string, []string) { // the proxy adds a header of its own
		return "10.0.0.1:80", []string{"X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i/250, i%250),
			"X-Forwarded-For", "192.0.2.7"}
	}
	declared := func(c *Config) { c.ClientHeader = "X-Forwarded-For" }
	const most = 60 + 20
	for name, x := range map[string]struct {
		change func(*Config)
		from   func(int) (string, []string)
		found  bool
	}{
		"one address": {nil, one, false}, "a /64": {nil, six, false}, "who lies": {nil, liar, false},
		"behind a proxy": {declared, behind, false}, "behind one that adds a line": {declared, apart, false},
		"broken: no cap":                     {func(c *Config) { c.NewUnits = math.Inf(1) }, one, true},
		"broken: a header is believed":       {declared, liar, true},
		"broken: each address is of its own": {nil, func(i int) (string, []string) { return fmt.Sprintf("[2001:db8:1:%x::1]:1", i), nil }, true},
	} {
		w := capped(t, x.change)
		got := w.attack(x.from)
		if (got > most) != x.found || !x.found && got < most-1 {
			t.Errorf("%s: %d units, at most %d should be", name, got, most)
		}
		if x.found {
			continue
		}
		if n := w.front.Metrics; n == nil {
			t.Fatal("no metrics")
		}
		text := w.scraped()
		for _, line := range []string{fmt.Sprintf("sotto_new_units_total{answer=\"given\"} %d\n", got),
			fmt.Sprintf("sotto_new_units_total{answer=\"refused\"} %d\n", asked-got)} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: the metrics lack %s", name, line)
			}
		}
		// nobody's address is kept or told
		for _, address := range []string{"192.0.2", "2001:db8", "198.51", "10.0.0"} {
			if strings.Contains(w.log.String()+text, address) {
				t.Errorf("%s: an address is in log or metrics", name)
			}
		}
		if told := strings.Count(w.log.String(), "--client-address-header"); told > 1 ||
			(told == 1) != (name == "who lies") {
			t.Errorf("%s: the log says %q", name, w.log.String())
		}
	}
}

func (w *world) scraped() string {
	key := w.key
	defer func() { w.key = key }()
	w.key = w.keyWith(serve.ScopeMetrics)
	return w.want(200, "GET", "/metrics", "")
}

// What is refused, and what is not: new units alone, of that address alone.
func TestNewUnitsAlone(t *testing.T) {
	w := capped(t, func(c *Config) { c.NewUnits = .1 })
	const here, other = "192.0.2.1:1", "192.0.2.2:1"
	first := w.browser(here)
	for range 5 {
		if out := w.browser(here); out.Code != 200 {
			t.Fatal(out.Body)
		}
	}
	for _, ask := range [][2]string{{"/v1/experiments/shop/decisions", ""},
		{"/ofrep/v1/evaluate/flags/shop", `{"context": {}}`}, {"/ofrep/v1/evaluate/flags", `{"context": {}}`}} {
		out := w.ask("POST", ask[0], ask[1], "X-Forwarded-Proto", "https") // from 192.0.2.1 too
		if out.Code != 429 || out.Header().Get("Retry-After") != "10" || len(out.Result().Cookies()) > 0 ||
			!strings.Contains(out.Body.String(), "too many new units") {
			t.Errorf("%s: %d %v %s", ask[0], out.Code, out.Header(), out.Body)
		}
	}
	cookie := first.Result().Cookies()[0]
	if out := w.browser(here, "Cookie", cookie.Name+"="+cookie.Value); out.Code != 200 ||
		out.Body.String() != first.Body.String() {
		t.Errorf("who has a cookie: %s", out.Body)
	}
	if out := w.browser(other); out.Code != 200 {
		t.Errorf("of another address: %s", out.Body)
	}
	page := w.key
	w.key = ""
	token := client.SignUnit(w.keyWith(serve.ScopeSign), "shop", "ann", w.clock.Now().Add(time.Minute))
	w.key = page
	w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`, token))
	w.key = w.keyWith(serve.ScopeDecide)
	for i := range 100 {
		w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit": "unit %d"}`, i))
	}
	w.key = page
	w.clock.Add(10 * time.Second)
	if a, b := w.browser(here), w.browser(here); a.Code != 200 || b.Code != 429 {
		t.Errorf("after ten seconds: %d and %d", a.Code, b.Code)
	}
	// who is given no unit is none
	w.key = w.keyWith(serve.ScopeAdmin)
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"now": true, "confirm": "shop"}`)
	w.key = page
	w.clock.Add(10 * time.Second)
	for range 100 {
		if out := w.browser(here); out.Code != 200 {
			t.Fatal(out.Body)
		}
	}
}

// Whether a unit is refused has nothing to do with what others reported: two services of the same
// visitors, whose rewards differ, refuse the same. A copy that refuses where rewards are high is
// found out.
func TestNewUnitsTellNothing(t *testing.T) {
	play := func(value string, broken bool) (answers string) {
		w := capped(t, func(c *Config) { c.NewUnits = .2 })
		for i := range 60 {
			out := w.browser("192.0.2.1:1")
			if broken && value == "1" && i%7 == 0 {
				w.front.fresh.take(w.front.from(httptest.NewRequest("GET", "/", nil)))
			}
			answers += fmt.Sprint(out.Code, out.Header().Get("Retry-After"), " ")
			if out.Code == 200 {
				_, text, _ := strings.Cut(out.Body.String(), `"decision":"`)
				token, _, _ := strings.Cut(text, `"`)
				w.want(200, "POST", "/v1/experiments/shop/rewards", reward(token, value))
			}
			w.pass(2 * time.Second)
		}
		return answers
	}
	if zero, one := play("0", false), play("1", false); zero != one || !strings.Contains(zero, "429") {
		t.Errorf("rewards of 0: %s\nrewards of 1: %s", zero, one)
	}
	if play("0", true) == play("1", true) {
		t.Error("a copy that tells is not found out")
	}
}

// An attacker with many networks gets a bounded table, and an address is forgotten when its time is
// over.
func TestNewUnitsMemory(t *testing.T) {
	if testkit.Race {
		t.Skip("requests come one after the other")
	}
	now := time.Unix(1_000_000_000, 0)
	u := newCap(1, func() time.Time { return now })
	at := func(i int) netip.Prefix {
		p, err := netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}).Prefix(32)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 10 * maxNetworks {
		if !u.take(at(i)) {
			t.Fatal("a new network is refused")
		}
		if n := len(u.now) + len(u.before); n > 2*maxNetworks {
			t.Fatalf("%d networks", n)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 16<<20 {
		t.Errorf("the table has %d bytes", used)
	} else {
		t.Logf("%d networks in %d KB", len(u.now)+len(u.before), used>>10)
	}
	// two turns without a visit, and nothing is left, nor a timer
	for range 2 {
		u.mu.Lock()
		u.forget()
		u.mu.Unlock()
	}
	if len(u.now)+len(u.before) > 0 || u.turn != nil {
		t.Error("it remembers")
	}
	// what is undone is forgotten at once
	u.take(at(1))
	u.giveBack(at(1))
	if len(u.now)+len(u.before) > 0 {
		t.Error("it remembers a unit that was none")
	}
	// by itself, in time
	u = newCap(1000, nil)
	u.fill = time.Millisecond
	u.take(at(1))
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		u.mu.Lock()
		left, turn := len(u.now)+len(u.before), u.turn
		u.mu.Unlock()
		if left == 0 && turn == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it remembers for ever")
		}
	}
}

// A clock that is set back gives nothing, and a rate of next to nothing is one a day.
func TestNewUnitsClock(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	u := newCap(1e-300, func() time.Time { return now })
	p := netip.MustParsePrefix("192.0.2.1/32")
	if !u.take(p) || u.take(p) || u.retryAfter() != 24*3600 {
		t.Error("not one a day")
	}
	now = now.Add(-time.Hour)
	if u.take(p) {
		t.Error("a clock that is set back gives one")
	}
	now = now.Add(24*time.Hour + time.Second)
	if !u.take(p) {
		t.Error("a day later there is none")
	}
}

func TestParseClientHeader(t *testing.T) {
	for text, want := range map[string]string{"x-real-ip": "X-Real-Ip", "X-Forwarded-For": "X-Forwarded-For",
		"CF-Connecting-IP": "Cf-Connecting-Ip", "": "", "X Real": "", "Forwarded": "", "forwarded": "",
		"X-Forwarded-Proto": "", "Authorization": "", "Sotto-Forwarded": "", "Sotto-From": "", "x:y": "", "Cookie": ""} {
		if got, err := ParseClientHeader(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A process that passes a request on says where it is from, as it sees that itself: no client can say it.
func TestForwardedAddress(t *testing.T) {
	for header, want := range map[string]string{"": "10.0.0.1", "X-Forwarded-For": "192.0.2.9", "X-Real-Ip": "192.0.2.9"} {
		w := capped(t, func(c *Config) { c.ClientHeader = header })
		var got netip.Prefix
		writer := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set(forwarded, answerTo("this", r.Header.Get(forwarded)))
			got = w.front.from(r)
		}))
		w.front.passer = newForwarder(w.front.Log, "this", nil)
		w.front.passer.mark = w.front.tellFrom
		in := httptest.NewRequest("POST", "/", nil)
		in.RemoteAddr = "10.0.0.1:5"
		in.Header.Set("X-Forwarded-For", "198.51.100.1, 192.0.2.9")
		in.Header.Set("X-Real-Ip", "192.0.2.9")
		in.Header.Set(passedFrom, "203.0.113.1")
		if direct := w.front.from(in).Addr().String(); direct != want {
			t.Errorf("%q: it is from %v, must be %s", header, direct, want)
		}
		if !w.front.passer.pass(httptest.NewRecorder(), in, writer.URL, t.Context()) {
			t.Fatal("not passed on")
		}
		writer.Close()
		if got.Addr().String() != want {
			t.Errorf("%q: the writer takes it to be from %v, must be %s", header, got, want)
		}
	}
}
