// Command private is a web shop whose button has the color that a live experiment chooses, and
// whose visitors tell nobody whether they bought: their browsers report it in two shares, or with
// noise. The shop serves the library that does so and says whom to believe, from its own copy of
// the declaration: the service that decides is trusted with neither. README.md says how to run it.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sotto-dp/sotto/client/browser"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
)

// library is where the shop has the library for pages.
const library = "/client/" + browser.Name

var page = template.Must(template.New("page").Parse(`<!doctype html>
<title>A shop</title>
{{.Imports}}
<button id="buy" style="background: #ccc; color: white">Buy</button>
<script type="module">
  const button = document.querySelector('#buy');
  let bought = () => {};
  try {
    const { connect } = await import('sotto');
    const sotto = connect({leader: {{.Leader}}, key: {{.Key}}, pins: {{.Pins}}});
    const d = await sotto.decide({{.Name}});
    button.style.background = d.value;
    bought = () => sotto.outcome(d, 1); // kept in the browser until the report's time
  } catch (failed) {
    console.warn('the usual color is shown', failed);
    button.style.background = '#c00';
  }
  button.addEventListener('click', () => { bought(); button.textContent = 'Thank you'; });
</script>
`))

// pin is what the page believes of the experiment, whatever the service says.
func pin(x *decl.Experiment) (map[string]any, error) {
	switch t := x.TrustModel(); t {
	case privacy.TrustTwoServer:
		task, err := x.Task()
		return map[string]any{"trust": t, "helper": x.Helper.Key, "task": task.ID.String()}, err
	case privacy.TrustLocal:
		n, err := x.Noise()
		return map[string]any{"trust": t, "law": n.Name, "noise": fmt.Sprintf("%d/%d", n.Num, n.Den)}, err
	default:
		return nil, fmt.Errorf("trust is %s, must be %s or %s: pages of others report in the open", t,
			privacy.TrustTwoServer, privacy.TrustLocal)
	}
}

// imports names the library, with the hash that the browser holds it against.
func imports() (template.HTML, error) {
	b, err := json.Marshal(map[string]map[string]string{"imports": {"sotto": library},
		"integrity": {library: browser.Integrity()}})
	return template.HTML(`<script type="importmap">` + string(b) + `</script>`), err
}

// routes is the shop: its page, and the library. leader and key are what pages ask.
func routes(x *decl.Experiment, leader, key string) (http.Handler, error) {
	pinned, err := pin(x)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.Name, err)
	}
	named, err := imports()
	if err != nil {
		return nil, err
	}
	var front bytes.Buffer
	if err := page.Execute(&front, map[string]any{"Imports": named, "Leader": leader, "Key": key,
		"Name": x.Name, "Pins": map[string]any{x.Name: pinned}}); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(front.Bytes()) // who has gone is told nothing
	})
	mux.Handle("GET /client/", http.StripPrefix("/client/", http.FileServerFS(browser.FS())))
	return mux, nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		slog.Error("the shop ends", "error", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("which experiment? go run ./examples/private DECLARATION")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	x, err := decl.Reader{}.Parse(args[0], text)
	if err != nil {
		return err
	}
	key := os.Getenv("SOTTO_KEY")
	if key == "" {
		return errors.New("SOTTO_KEY is missing, a key of the scope browser: everybody can read it")
	}
	h, err := routes(x, cmp.Or(os.Getenv("SOTTO_SERVER"), "http://127.0.0.1:8080"), key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:8081")
	if err != nil {
		return err
	}
	fmt.Printf("the shop is at http://%s\n", l.Addr())
	// It keeps nothing: an interrupt may end it as it is.
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second}
	return server.Serve(l)
}
