package api

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/base/testneeds"
	"github.com/sotto-dp/sotto/serve"
)

// OpenFeature's clients for servers and for pages, as their authors publish them, evaluate strings,
// booleans, numbers, objects and arms without a value, ask for all flags again with the ETag, see a winner as STATIC and
// what is paused as DISABLED, and are told what is wrong. testdata/npm/clients.mjs has it all.
func TestOpenFeatureClients(t *testing.T) {
	node := testneeds.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/@openfeature/web-sdk"); err != nil {
		testneeds.Missing(t, "run npm ci in serve/api/testdata/npm: OpenFeature's clients are not there")
	}
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", "name: some\narms: [{name: x, value: true}, {name: y, "+
		"value: false}]\n"+
		shop[strings.Index(shop, "policy:"):]+"only: {country: [NL]}\n")
	w.want(200, "POST", "/v1/experiments/some/start", "")
	for name, arms := range map[string]string{
		"color": `[{name: red, value: "#c00"}, {name: blue, value: "#00c"}]`,
		"on":    `[{name: "no", value: false}, {name: "yes", value: true}]`,
		"size":  `[{name: small, value: 1.5}, {name: large, value: 2}]`,
		"bare":  `[classic, {name: onepage}]`,
		"style": `[{name: plain, value: {font: serif, size: 3}}, {name: loud, value: {font: sans, size: 9}}]`,
	} {
		w.want(201, "POST", "/v1/experiments", fmt.Sprintf("name: %s\narms: %s\n%s", name, arms,
			shop[strings.Index(shop, "policy:"):]))
		w.want(200, "POST", "/v1/experiments/"+name+"/start", "")
	}
	key, _, err := w.engine.NewKey(t.Context(), "clients", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(w.front)
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, "clients.mjs")
	c.Dir = "testdata/npm"
	c.Env = append(os.Environ(), "SOTTO_SERVER="+front.URL, "SOTTO_KEY="+key, "SOTTO_ADMIN="+w.key)
	out, err := c.CombinedOutput()
	if want := "server evaluates\nserver is told errors\npage evaluates all, with ETags\n" +
		"the winner is STATIC\nwhat is paused is DISABLED\npage is told 401\n"; err != nil ||
		!strings.HasSuffix(string(out), want) {
		t.Errorf("%v:\n%s", err, out)
	}
}
