package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
	"github.com/sotto-dp/sotto/secagg/dap"
)

func declaration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t *testing.T, text string) *decl.Experiment {
	t.Helper()
	x, err := decl.Reader{}.Parse("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func get(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d", path, w.Code)
	}
	return w.Body.String()
}

// The page pins the script that the shop serves, by its own hash, and the helper's key and the task
// of the shop's own declaration. The library's address is no other's.
func TestPins(t *testing.T) {
	x := parse(t, declaration(t))
	h, err := routes(x, "https://leader.example", "sotto_0123")
	if err != nil {
		t.Fatal(err)
	}
	front, task := get(t, h, "/"), ""
	if id, err := x.Task(); err == nil {
		task = id.ID.String()
	}
	sum := sha512.Sum384([]byte(get(t, h, library)))
	for _, want := range []string{`"integrity":{"/client/sotto-private.js":"sha384-` +
		base64.StdEncoding.EncodeToString(sum[:]) + `"}`, `"helper":"` + x.Helper.Key + `"`,
		`"task":"` + task + `"`} {
		if !strings.Contains(front, want) {
			t.Errorf("the page has no %s:\n%s", want, front)
		}
	}
	text := declaration(t)
	text = text[:strings.Index(text, "trust: ")]
	if h, err = routes(parse(t, text+"trust: local\n"), "https://leader.example", "sotto_0123"); err != nil {
		t.Fatal(err)
	}
	n, err := parse(t, text+"trust: local\n").Noise()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`"noise":"%d/%d"`, n.Num, n.Den); !strings.Contains(strings.ReplaceAll(
		get(t, h, "/"), `\/`, "/"), want) {
		t.Errorf("the page has no %s", want)
	}
	text = strings.Replace(text, "report_after: 1m\n", "", 1)
	if _, err := routes(parse(t, text), "https://leader.example", "sotto_0123"); err == nil ||
		!strings.Contains(err.Error(), "trust is central") {
		t.Errorf("trust central is %v", err)
	}
}

// A visitor in Chromium clicks when the button has its color, and tells the leader of it in shares:
// one report on one decision comes, and no reward in the open. If the shop's declaration has
// another helper key than the leader's, nothing is reported.
func TestChromium(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	text := strings.Replace(declaration(t), "report_after: 1m", "report_after: 3s", 1)
	other, err := dap.DeriveKey(bytes.Repeat([]byte("other"), 8), 1)
	if err != nil {
		t.Fatal(err)
	}
	x := parse(t, text)
	twin := parse(t, strings.Replace(text, x.Helper.Key, other.Config().String(), 1))
	for _, test := range []struct {
		what    string
		shop    *decl.Experiment
		reports bool
	}{{"the same declaration", x, true}, {"another helper key", twin, false}} {
		t.Run(test.what, func(t *testing.T) {
			var front http.Handler
			shop := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				front.ServeHTTP(w, r)
			}))
			s := servetest.New(t, serve.Config{HelperSecret: func(string) []byte { return make([]byte, 32) }},
				"http://"+shop.Listener.Addr().String())
			decided, reported := make(chan bool, 16), make(chan []byte, 16)
			s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(b))
				switch {
				case r.Method != http.MethodPost:
				case strings.HasSuffix(r.URL.Path, "/decisions"):
					decided <- true
				default:
					reported <- b
				}
				return false
			})
			s.Start(text)
			got, err := routes(test.shop, s.URL,
				s.Key(serve.ScopeBrowser|serve.ScopeDecide|serve.ScopeReward))
			if err != nil {
				t.Fatal(err)
			}
			usual := make(chan bool, 1)
			front = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/clicked":
					usual <- true
					return
				case "/":
					defer func() {
						_, _ = io.WriteString(w, `<script>
const seen = setInterval(() => {
  const button = document.querySelector('#buy');
  if (button.style.background === 'rgb(204, 204, 204)') return;
  clearInterval(seen); button.click(); fetch('/clicked');
}, 20);
</script>`)
					}()
				}
				got.ServeHTTP(w, r)
			})
			shop.Start()
			defer shop.Close()
			testkit.Browse(t, shop.URL)
			wait := func(what string, c <-chan bool) {
				t.Helper()
				select {
				case <-c:
				case <-time.After(time.Minute):
					t.Fatal("no " + what)
				}
			}
			wait("decision", decided)
			wait("click", usual)
			if !test.reports { // 3 s would be the report's time
				select {
				case <-reported:
					t.Error("a report went out by another declaration")
				case <-time.After(5 * time.Second):
				}
				return
			}
			select {
			case body := <-reported:
				if some, err := dap.ParseReports(body, dap.MaxJob); err != nil || len(some) != 1 {
					t.Errorf("%d reports, %v", len(some), err)
				}
			case <-time.After(time.Minute):
				t.Fatal("no report")
			}
		})
	}
}
