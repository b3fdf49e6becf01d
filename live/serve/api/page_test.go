package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// A page of another origin decides and is clicked at in a real browser, with a key that everybody
// can read and units that the shop's server has signed; the reward arrives though the page is left
// at once.
func TestPage(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", "off", 1))
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", "some", 1)+"only: {country: [NL]}\n")
	w.want(200, "POST", "/v1/experiments/some/start", "")
	w.want(201, "POST", "/v1/experiments", "name: bare\narms: [classic, onepage]\n"+shop[strings.Index(shop, "policy:"):])
	w.want(200, "POST", "/v1/experiments/bare/start", "")
	sign, key := w.keyWith(serve.ScopeSign), w.keyWith(browserScopes)
	type request struct{ path, body, mode, origin string }
	var mu sync.Mutex
	var seen []request
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen = append(seen, request{r.Method + " " + r.URL.Path, string(b), r.Header.Get("Sec-Fetch-Mode"),
			r.Header.Get("Origin")})
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		w.front.ServeHTTP(out, r)
	}))
	page := template.Must(template.ParseFiles("testdata/page.html"))
	until := w.clock.Now().Add(time.Hour)
	said := make(chan []any, 1)
	shopFront := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			out.Header().Set("Content-Type", "text/html")
			if err := page.Execute(out, map[string]any{"Service": service.URL, "Key": key,
				"Ann": client.SignUnit(sign, client.AnyExperiment, "ann", until),
				"Bob": client.SignUnit(sign, "shop", "bob", until)}); err != nil {
				t.Error(err)
			}
		case "/said":
			var got []any
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			said <- got
		default:
			http.NotFound(out, r)
		}
	}))
	address := shopFront.Listener.Addr().String()
	elsewhere := strings.Replace(address, "127.0.0.1", "localhost", 1)
	w.front.Origins = []string{"http://" + address, "http://" + elsewhere}
	service.Start()
	defer service.Close()
	shopFront.Start()
	defer shopFront.Close()
	testkit.Browse(t, shopFront.URL)
	var got []any
	select {
	case got = <-said:
	case <-time.After(time.Minute):
		t.Fatalf("the page says nothing; the service saw %q", seen)
	}
	ann, bob := w.decide("ann"), w.decide("bob")
	want := []any{
		fmt.Sprintf("%s %s split %s shop", ann.Arm,
			map[string]string{"red": "#c00", "blue": "[object Object]"}[ann.Arm],
			*ann.Decision),
		true, // an arm without a value is shown by its name
		true, true,
		"red disabled null false",
		"split", "default",
		"sotto: none: 404 experiment \"none\": there is no such experiment",
		"sotto: shop: 403 " + serve.ErrSignature.Error(),
		true, false, // a visitor who is named by the service's cookie
		"sotto: reward must be a finite number",
		"too late",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Fatalf("the page says\n%q, want\n%q", got, want)
		}
	}
	// The same page by another name is of another site: a cookie would make it a new unit each time.
	testkit.Browse(t, "http://"+elsewhere+"/?elsewhere")
	select {
	case got = <-said:
	case <-time.After(time.Minute):
		t.Fatal("the page of another site says nothing")
	}
	if len(got) != 2 || !strings.Contains(fmt.Sprint(got[0]), "sotto: shop: 403 unit_token is missing") ||
		got[1] != "split" {
		t.Errorf("elsewhere: %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, x := range []request{
		{"POST /v1/experiments/shop/rewards", fmt.Sprintf(`{"decision":%q,"reward":0.25}`,
			*ann.Decision), "no-cors",
			shopFront.URL},
		{"POST /v1/experiments/shop/rewards", fmt.Sprintf(`{"decision":%q,"reward":0.75}`,
			*bob.Decision), "cors",
			shopFront.URL},
		{"POST /v1/experiments/shop/activations", fmt.Sprintf(`{"decision":%q,"shown":true}`, *bob.Decision),
			"cors", shopFront.URL},
	} {
		if !slices.Contains(seen, x) {
			t.Errorf("the service did not see %q but %q", x, seen)
		}
	}
	for _, x := range seen {
		if strings.HasPrefix(x.path, "OPTIONS") {
			t.Errorf("the browser asks whether it may ask: %q", x)
		}
	}
	if strings.Contains(w.log.String(), key) {
		t.Error("the log has the key")
	}
}
