package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Who is held is given the fallback at every door, and /v1 and OFREP tell it from who is not in the experiment
// otherwise. All others have decisions at each. The stop of the holdout is told to who follows the experiment's flag.
func TestHoldout(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	w.want(201, "POST", "/v1/experiments", `{"name": "quarter", "arms": ["open", "held"], "policy": "split", "holds": "held",
		"budget": {"epsilon": 1}, "unit": {"of": "person"}, "reward": {"range": [0, 1], "default": 0}, "window": "1m"}`)
	w.want(200, "POST", "/v1/experiments/quarter/start", "")
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "arms: [", "holdout: quarter\nfallback: blue\narms: [", 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	held := 0
	for i := range 12 {
		unit := fmt.Sprint("u", i)
		out := strings.Contains(w.want(200, "POST", "/v1/experiments/quarter/decisions", `{"unit": "`+unit+`"}`), `"held"`)
		if out {
			held++
		}
		flag := w.want(200, "POST", oneFlag+"shop", `{"context": {"targetingKey": "`+unit+`"}}`)
		if strings.Contains(flag, `"holdout":true`) != out || out && !strings.Contains(flag, `"DEFAULT"`) {
			t.Errorf("held %v: %s", out, flag)
		}
		if got := w.want(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "`+unit+`"}`); out !=
			strings.Contains(got, `"reason":"holdout"`) || out && !strings.Contains(got, `"decision":null,"arm":"blue"`) {
			t.Errorf("held %v: %s", out, got)
		}
		for j, ask := range doors(w, unit) {
			if j == 3 { // a cookie is another unit
				continue
			}
			got, most := ask("true"), 0
			if strings.Contains(got, `"quarter"`) { // it is of all flags
				most = 1
			}
			if out && (strings.Count(got, `"decision":"`) > most || !strings.Contains(got, "blue")) {
				t.Errorf("door %d, of who is held: %s", j, got)
			}
		}
	}
	if held == 0 || held == 12 {
		t.Fatalf("%d of 12 are held", held)
	}
	is := func() [8]byte {
		return versionOf(w.front.Engine.List(t.Context()), serve.Key{Scopes: serve.ScopeDecide, Experiment: "shop"})
	}
	before := is()
	w.want(200, "PATCH", "/v1/experiments/quarter", `{"description": "of the year"}`)
	w.pass(2 * time.Second)
	if is() != before {
		t.Error("another description is told")
	}
	w.want(200, "POST", "/v1/experiments/quarter/stop", `{"now": true, "confirm": "quarter"}`)
	if is() == before {
		t.Error("the stop of the holdout is not told")
	}
	w.want(409, "PATCH", "/v1/experiments/shop", `{"holdout": "other"}`)
}
