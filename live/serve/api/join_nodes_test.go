//go:build unix

package api

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// newSharesNode is a process of many on a database in four shares. One that others cannot reach writes none that
// another can.
func newSharesNode(t testing.TB, address string, hidden bool, change ...func(*serve.Config)) (*node, *serve.Shares) {
	t.Helper()
	stores, err := store.PostgresShares(address, 4)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{log: &text{}}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(n.log, t.Output()), nil))
	n.Server = httptest.NewUnstartedServer(nil)
	cfg := serve.Config{Log: log, Advertise: "http://" + n.Listener.Addr().String()}
	if hidden {
		cfg.Advertise = ""
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := serve.OpenShares(t.Context(), cfg, 4, stores)
	if err != nil {
		t.Fatal(err)
	}
	n.Config.Handler, n.engine = Handler(Config{Shares: s, Log: log}), s.Engines()[0]
	n.Start()
	t.Cleanup(func() {
		n.CloseClientConnections()
		n.Close()
		_ = s.Close()
	})
	return n, s
}

// comes waits for what comes in a while.
func comes(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Size(30*time.Second, 3*time.Second)); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// twoOfShares are two processes that write two shares each, and one that writes none, with an admin's key.
func twoOfShares(t testing.TB, change ...func(*serve.Config)) (nodes []*node, shares []*serve.Shares, key string) {
	t.Helper()
	address := pgtest.Database(t)
	for range 2 {
		n, s := newSharesNode(t, address, false, change...)
		nodes, shares = append(nodes, n), append(shares, s)
	}
	comes(t, "the processes do not share out what there is", func() bool {
		for _, s := range shares {
			writes := 0
			for _, e := range s.Engines() {
				if here, _, _ := e.Where(); here {
					writes++
				}
			}
			if writes != 2 {
				return false
			}
		}
		return true
	})
	for i, n := range nodes {
		if here, _, _ := n.engine.Where(); here {
			var err error
			if key, _, err = n.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin); err != nil {
				t.Fatal(err)
			}
			if i > 0 { // the first writes share 0
				nodes[0], nodes[i], shares[0], shares[i] = nodes[i], nodes[0], shares[i], shares[0]
			}
			break
		}
	}
	n, s := newSharesNode(t, address, true, change...)
	return append(nodes, n), append(shares, s), key
}

// newKey is one of a scope.
func newKey(t testing.TB, n *node, admin, scope string) string {
	t.Helper()
	status, said, _ := n.ask(t, admin, "POST", "/v1/keys", `{"name": "sdk", "scopes": ["`+scope+`"]}`)
	_, key, _ := strings.Cut(said, `"key":"`)
	if key, _, _ = strings.Cut(key, `"`); status != 201 {
		t.Fatal(status, said)
	}
	return key
}

// What is joined of parts that other processes have answered is what one would say who writes all of them, whole, and
// of a length that is its own.
func TestJoinAcrossProcesses(t *testing.T) {
	t.Parallel()
	nodes, shares, key := twoOfShares(t)
	in, of := map[string]int{}, map[int]bool{}
	for _, name := range []string{"shop0", "shop1", "shop2", "shop3", "shop5", "shop6"} {
		x := strings.Replace(shop, "name: shop", "name: "+name, 1)
		if name == "shop6" {
			x += "layer: {name: page, from: 0, to: 1}\n"
		}
		for _, path := range []string{"", "/" + name + "/start"} {
			body := ""
			if path == "" {
				body = x
			}
			if got, said, _ := nodes[1].ask(t, key, "POST", "/v1/experiments"+path, body); got/100 != 2 {
				t.Fatal(path, got, said)
			}
		}
		share, _, _ := shares[1].Of(t.Context(), name)
		in[name], of[share] = share, true
	}
	if len(of) != 4 {
		t.Fatalf("the experiments are in shares %v: the test is none", in)
	}
	named := []string{"/v1/experiments", "/v1/audit", "/v1/allflags", allFlags, "/?sort=name"}
	const hidden = "hidden"
	status, said, _ := nodes[0].ask(t, key, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: "+hidden,
		"public: true", "public: false").Replace(shop))
	if status != 201 {
		t.Fatal(status, said)
	}
	client := newKey(t, nodes[0], key, "decide")
	for _, x := range []struct{ method, path, body string }{{"GET", "/v1/experiments", ""}, {"GET", "/v1/account", ""},
		{"GET", "/v1/flagd", ""}, {"GET", "/api/features/" + client, ""}, {"GET", "/v1/audit", ""},
		{"GET", "/v1/audit?from=2", ""}, {"GET", "/?sort=name", ""}, {"POST", "/v1/allflags", `{"evaluationContext":{"key":"ann"}}`},
		{"POST", allFlags, `{"context":{"targetingKey":"ann","consent":false}}`}, {"GET", "/v1/experiments", "no body is read"},
		{"GET", "/v1/audit", "{}"}} {
		var bodies []string
		for i, n := range nodes {
			got, said, h := n.ask(t, key, x.method, x.path, x.body)
			if got != 200 || len(said) < 20 || len(h["Date"]) != 1 || len(h["Content-Length"]) > 1 {
				t.Errorf("%s %s of process %d: %d %v %q", x.method, x.path, i, got, h, said)
			}
			bodies = append(bodies, said)
			for name, share := range in {
				if !strings.Contains(said, name) && slices.Contains(named, x.path) {
					t.Errorf("%s %s of process %d has no %s of share %d: %s", x.method, x.path, i, name, share, said)
				}
			}
			if x.method == "POST" {
				continue
			}
			out, err := http.Head(n.URL + x.path)
			if err != nil {
				t.Fatal(err)
			}
			_ = out.Body.Close()
			if want := 401; strings.HasPrefix(x.path, "/v1") && out.StatusCode != want {
				t.Errorf("HEAD %s without a key: %d", x.path, out.StatusCode)
			}
			if got, said, _ := n.ask(t, key, "HEAD", x.path, ""); got != 200 || said != "" {
				t.Errorf("HEAD %s of process %d: %d %q", x.path, i, got, said)
			}
		}
		if (bodies[0] != bodies[1] || bodies[0] != bodies[2]) && strings.HasPrefix(x.path, "/v1/audit") { // which says nothing of now
			t.Errorf("%s %s: the processes say %q", x.method, x.path, bodies)
		}
	}
	// whoever is asked knows who asks, and who may see what
	jar := url.Values{"key": {key}}.Encode()
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	out, err := browser.Post(nodes[2].URL+"/login", "application/x-www-form-urlencoded", strings.NewReader(jar))
	if err != nil || len(out.Cookies()) != 1 {
		t.Fatal(out, err)
	}
	_ = out.Body.Close()
	session := out.Cookies()[0].Name + "=" + out.Cookies()[0].Value
	for i, n := range nodes {
		for _, x := range []struct {
			status                  int
			key, method, path, body string
			header                  []string
		}{
			{200, "", "GET", "/v1/experiments/shop0", "", nil}, {200, "", "GET", "/v1/experiments/shop1", "", nil},
			{200, "", "GET", "/v1/experiments/shop6", "", nil}, {200, "", "GET", "/experiments/shop1", "", nil},
			{401, "", "GET", "/v1/experiments/" + hidden, "", nil}, {401, "", "GET", "/v1/experiments/none", "", nil},
			{401, "bogus", "GET", "/v1/experiments/" + hidden, "", nil}, {401, "bogus", "GET", "/v1/experiments/none", "", nil},
			{200, key, "GET", "/v1/experiments/" + hidden, "", nil}, {404, key, "GET", "/v1/experiments/none", "", nil},
			{401, "", "GET", "/experiments/" + hidden, "", nil}, {401, "", "GET", "/experiments/none", "", nil},
			{200, "", "GET", "/experiments/" + hidden, "", []string{"Cookie", session}},
			{404, "", "GET", "/experiments/none", "", []string{"Cookie", session}},
			{401, "", "GET", "/experiments/" + hidden, "", []string{"Cookie", session + "x"}},
			{401, "bogus", "POST", "/v1/track", `{}`, nil}, {202, key, "POST", "/v1/track", event("x", "ann", "1"), nil},
			{401, "", "POST", "/new", "do=check", []string{"Content-Type", "application/x-www-form-urlencoded"}},
			{400, "", "POST", "/new", "do=check&text=x", []string{"Content-Type", "application/x-www-form-urlencoded", "Cookie", session,
				"Sec-Fetch-Site", "same-origin"}},
		} {
			if got, said, _ := n.ask(t, x.key, x.method, x.path, x.body, x.header...); got != x.status {
				t.Errorf("%s %s of process %d, key %q, %v: %d, want %d: %s", x.method, x.path, i, x.key, x.header, got, x.status, said)
			}
		}
	}
}

// Clients of others, at a process that does not write the share of what they ask for, earn rewards that are in a release:
// GO Feature Flag's provider for servers, and GrowthBook's client for Go.
func TestOthersClientsAcrossProcesses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sum float64
	at := clock.At(time.Now())
	nodes, shares, key := twoOfShares(t, func(cfg *serve.Config) {
		cfg.Clock = at.Now
		cfg.Curator = func(c release.Config) (release.Curator, error) {
			cur, err := seeded(c)
			return teller{cur.(release.StepCurator), func(_ int, steps int64) {
				mu.Lock()
				defer mu.Unlock()
				sum += float64(steps) / (1 << 20)
			}}, err
		}
	})
	post := func(path, body string) {
		t.Helper()
		if got, said, _ := nodes[1].ask(t, key, "POST", path, body); got/100 != 2 {
			t.Fatal(path, got, said)
		}
	}
	names := []string{"shop", "planned"}
	for i, text := range []string{stringShop, strings.Replace(plannedShop, "name: shop", "name: planned", 1)} {
		post("/v1/experiments", text)
		post("/v1/experiments/"+names[i]+"/start", "")
	}
	at.Add(2 * time.Second)             // until there is a plan
	other := func(name string) string { // which does not write it
		share, ok, err := shares[0].Of(t.Context(), name)
		if !ok || err != nil || share == 0 {
			t.Fatalf("%s is in share %d, %v, %v", name, share, ok, err)
		}
		for i, s := range shares[:2] {
			if here, _, _ := s.Engines()[share].Where(); !here {
				return nodes[i].URL
			}
		}
		t.Fatalf("both processes write share %d", share)
		return ""
	}
	comes(t, "there is no plan", func() bool {
		got, _, _ := nodes[2].ask(t, key, "GET", "/v1/experiments/planned/plan", "")
		return got == 200
	})
	for i, n := range growthBook(t, other("planned"), newKey(t, nodes[0], key, "decide"), "planned", nil) {
		if n == "" {
			t.Error("it has no arm")
		}
		post("/v1/track", fmt.Sprintf(`{"events": [{"name": "checkout", "targetingKey": "Zoë %d", "value": 0.5}]}`, i))
	}
	if out := runScript(t, "goff.mjs", "@openfeature/go-feature-flag-provider", other("shop"), key); !strings.HasSuffix(out,
		"server evaluates\n") {
		t.Error(out)
	}
	at.Add(2 * time.Minute)
	for _, name := range names {
		post("/v1/experiments/"+name+"/stop", "")
		comes(t, name+" does not stop", func() bool {
			at.Add(time.Second)
			_, said, _ := nodes[2].ask(t, key, "GET", "/v1/experiments/"+name, "")
			return strings.Contains(said, `"state":"stopped"`)
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if want := growers*.5 + .25; sum != want {
		t.Errorf("rewards of %v are released, must be %v", sum, want)
	}
}
