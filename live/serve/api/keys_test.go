package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/serve"
)

// A key of one experiment decides and rewards there, and is refused everywhere else; all flags are
// that one.
func TestKeyOfOneExperiment(t *testing.T) {
	w := shopOpen(t)
	other := strings.NewReplacer("name: shop", "name: other").Replace(shop)
	w.want(201, "POST", "/v1/experiments", other)
	w.want(200, "POST", "/v1/experiments/other/start", "")
	w.want(404, "POST", "/v1/keys", `{"name": "x", "scopes": ["decide"], "experiment": "none"}`)
	for _, scopes := range []string{`"read"`, `"admin"`, `"decide", "sign"`, `"metrics", "reward"`} {
		got := w.want(400, "POST", "/v1/keys", `{"name": "x", "scopes": [`+scopes+`], "experiment": "shop"}`)
		if !strings.Contains(got, `"field":"scopes"`) {
			t.Error(got)
		}
	}
	var k keyJSON
	if err := json.Unmarshal([]byte(w.want(201, "POST", "/v1/keys",
		`{"name": "x", "scopes": ["decide", "reward"], "experiment": "shop"}`)), &k); err != nil ||
		k.Experiment != "shop" {
		t.Fatalf("%+v, %v", k, err)
	}
	if got := w.want(200, "GET", "/v1/keys", ""); !strings.Contains(got, `"experiment":"shop"`) {
		t.Error(got)
	}
	w.key = k.Key
	w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*w.decide("ann").Decision, "1"))
	w.want(200, "POST", "/ofrep/v1/evaluate/flags/shop", `{"context": {"targetingKey": "ann"}}`)
	got := w.want(200, "POST", "/ofrep/v1/evaluate/flags", `{"context": {"targetingKey": "ann"}}`)
	if strings.Count(got, `"key":`) != 1 || !strings.Contains(got, `"key":"shop"`) {
		t.Error(got)
	}
	for _, path := range []string{"/v1/experiments/other/decisions", "/v1/experiments/other/rewards",
		"/v1/experiments/none/decisions", "/ofrep/v1/evaluate/flags/other"} {
		w.want(403, "POST", path, `{"context": {"targetingKey": "ann"}}`)
	}
	w.want(403, "GET", "/v1/experiments", "")
	w.want(403, "GET", "/v1/experiments/other", "")
}

// The last key of the scope admin is revoked with ?last=true alone; by the form, who is told so types
// its name again.
func TestRevokeLastAdminKey(t *testing.T) {
	for _, byForm := range []bool{false, true} {
		w := newWorld(t)
		id := strconv.FormatInt(w.engine.Who(w.key).ID, 10)
		w.want(400, "DELETE", "/v1/keys/"+id+"?last=yes", "")
		if got := w.want(409, "DELETE", "/v1/keys/"+id, ""); !strings.Contains(got, "?last=true") {
			t.Error(got)
		}
		if byForm {
			b, at := w.login(w.key), "/keys/"+id+"/revoke"
			if page := b.want(200, "GET", at, ""); strings.Contains(page, `name="last"`) {
				t.Error(page)
			}
			page := b.want(409, "POST", at, form("confirm", "admin"))
			if !strings.Contains(page, "the last key") || !strings.Contains(page, `name="last" value="true"`) {
				t.Error(page)
			}
			b.want(400, "POST", at, form("confirm", "wrong", "last", "true"))
			b.want(400, "POST", at, form("confirm", "admin", "last", "yes"))
			w.want(200, "GET", "/v1/keys", "")
			b.want(303, "POST", at, form("confirm", "admin", "last", "true"))
		} else {
			w.want(204, "DELETE", "/v1/keys/"+id+"?last=true", "")
		}
		w.want(401, "GET", "/v1/keys", "")
	}
	w := newWorld(t) // with another one nothing is asked
	w.keyWith(serve.ScopeAdmin)
	w.want(204, "DELETE", "/v1/keys/"+strconv.FormatInt(w.engine.Who(w.key).ID, 10), "")
}

// A form without a tick is told so in the words of its page, and makes no key.
func TestKeyFormWithoutTicks(t *testing.T) {
	w := newWorld(t)
	page := w.login(w.key).want(400, "POST", "/keys", form("name", "the shop's server"))
	if !strings.Contains(page, `role="alert"><p>What it may do: nothing is ticked, tick at least one</p>`) ||
		!strings.Contains(page, "<legend>What it may do</legend>") || len(w.engine.Keys()) != 1 {
		t.Error(page)
	}
}
