package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/serve"
	"github.com/sotto-dp/sotto/serve/store"
)

const localShop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: 8}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [-1, 3], default: 0}
window: 1m
sticky: false
trust: local
`

// gathered is a running experiment whose rewards are hidden; the curator is the real one.
func gathered(t *testing.T, text string) *world {
	t.Helper()
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	w.want(201, "POST", "/v1/experiments", text)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	return w
}

// A decision says how to report, a report is answered as a reward is, and rewards in the open are a
// conflict.
func TestLocalReports(t *testing.T) {
	w := gathered(t, localShop)
	const x = "/v1/experiments/shop"
	var d struct {
		Decision string
		Report   struct {
			Trust, Ticket, Law, Noise string
			AfterMS                   int64 `json:"after_ms"`
			Range                     [2]float64
		}
	}
	text := w.want(200, "POST", x+"/decisions", "")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if r := d.Report; r.Trust != "local" || r.Law != "laplace" || !strings.HasSuffix(r.Noise, "/64") ||
		r.AfterMS != 30000 || r.Range != [2]float64{-1, 3} {
		t.Errorf("%s", text)
	}
	one := func(ticket, message string) string {
		return fmt.Sprintf(`{"reports": [{"ticket": %q, "message": %s}]}`, ticket, message)
	}
	for _, message := range []string{"-12345", "12345", "0"} {
		if got := w.want(200, "POST", x+"/reports", one(d.Report.Ticket, message)); !strings.Contains(got, "accepted") {
			t.Error(got)
		}
	}
	for _, bad := range []string{"", "{}", `{"reports": []}`, one("", "1"), one(d.Report.Ticket, `"x731"`),
		one(d.Report.Ticket, "[731]"), one(d.Report.Ticket, "null")} {
		if got := w.want(400, "POST", x+"/reports", bad); strings.Contains(got, "731") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	for _, bad := range []string{one(d.Report.Ticket, "731.5"), one(d.Report.Ticket, "1e300"), one("x", "1"),
		one(d.Decision, "1")} {
		got := w.want(200, "POST", x+"/reports", bad)
		if !strings.Contains(got, `"error"`) || strings.Contains(got, "731") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	w.want(409, "POST", x+"/rewards", fmt.Sprintf(`{"decision": %q, "reward": 1}`, d.Decision))
	w.want(409, "POST", x+"/rewards/batch", fmt.Sprintf(`{"rewards": [{"decision": %q, "reward": 1}]}`, d.Decision))
	w.want(409, "PATCH", x, `{"trust": "central"}`)
	w.want(400, "POST", "/ofrep/v1/evaluate/flags/shop", `{"context": {"targetingKey": "ann"}}`)
	w.clock.Add(time.Minute)
	if got := w.want(200, "POST", x+"/reports", one(d.Report.Ticket, "1")); !strings.Contains(got, "late") {
		t.Error(got)
	}
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: open", 1))
	w.want(200, "POST", "/v1/experiments/open/start", "")
	w.want(409, "POST", "/v1/experiments/open/reports", one(d.Report.Ticket, "1"))
}
