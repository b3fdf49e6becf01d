package api

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/secagg/dap"
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
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open,
		HelperSecret: func(string) []byte { return make([]byte, 32) }})
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

// Under trust two-server a client learns the leader's key, and uploads as DAP says, without a key of the
// service: what is not taken is in the answer, and what is no upload is a problem in DAP's words.
func TestUpload(t *testing.T) {
	helper, err := dap.DeriveKey(make([]byte, 32), 3)
	if err != nil {
		t.Fatal(err)
	}
	w := gathered(t, strings.Replace(localShop, "trust: local", fmt.Sprintf("trust: two-server\ngrid: 1\n"+
		"helper: {url: \"http://127.0.0.1:1\", key: %s}", helper.Config()), 1))
	bad := strings.Replace(localShop, "trust: local", "trust: two-server\ngrid: 1\n"+
		"helper: {url: \"http://127.0.0.1:1\", key: none}", 1)
	if got := w.want(400, "POST", "/v1/experiments", bad); !strings.Contains(got, `"field":"helper.key"`) {
		t.Error(got)
	}
	admin := w.key
	w.key = ""
	leader, err := dap.ParseConfigs([]byte(w.want(200, "GET", "/hpke_config", "")))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Report struct {
			Trust, Task, Ticket, Helper string
			Time                        uint64
			Grid                        int
		}
	}
	report := func() dap.Report {
		w.key = admin
		text := w.want(200, "POST", "/v1/experiments/shop/decisions", "")
		w.key = ""
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		id, err := dap.ParseTaskID(d.Report.Task)
		if err != nil || d.Report.Trust != "two-server" || d.Report.Grid != 1 || d.Report.Helper != "http://127.0.0.1:1" {
			t.Fatal(text, err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(d.Report.Ticket)
		if err != nil {
			t.Fatal(err)
		}
		ticket, err := dap.ParseTicket(raw)
		if err != nil {
			t.Fatal(err)
		}
		r, err := dap.NewReport(dap.Task{ID: id, Grid: 1}, leader, helper.Config(), d.Report.Time, ticket, 1, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, c := report(), report(), report()
	path := "/tasks/" + d.Report.Task + "/reports"
	c.Ticket.Number++ // of another decision
	upload := func(all ...dap.Report) []dap.UploadStatus {
		t.Helper()
		var body bytes.Buffer
		for _, r := range all {
			body.Write(r.Marshal())
		}
		out, err := dap.ParseUploadResponse([]byte(w.want(200, "POST", path, body.String(), "Content-Type",
			dap.MediaUpload)))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := upload(a, b, a); len(got) != 0 {
		t.Errorf("not taken: %v", got)
	}
	if got := upload(a, c); len(got) != 1 || got[0] != (dap.UploadStatus{ID: c.ID, Reason: dap.InvalidReport}) {
		t.Errorf("not taken: %v", got)
	}
	for _, bad := range []struct{ status, path, body, kind, want string }{
		{"400", path, "", dap.MediaUpload, "invalidMessage"},
		{"400", path, string(a.Marshal()) + "x", dap.MediaUpload, "invalidMessage"},
		{"415", path, string(a.Marshal()), "application/json", "application/dap-upload-req"},
		{"404", "/tasks/" + strings.Repeat("A", 43) + "/reports", string(a.Marshal()), dap.MediaUpload, "unrecognizedTask"},
		{"400", "/tasks/x/reports", string(a.Marshal()), dap.MediaUpload, "invalidMessage"},
		{"413", path, strings.Repeat("x", maxBatch+1), dap.MediaUpload, "bytes"},
	} {
		out := w.ask("POST", bad.path, bad.body, "Content-Type", bad.kind)
		if fmt.Sprint(out.Code) != bad.status || !strings.Contains(out.Body.String(), bad.want) {
			t.Errorf("%s: %d %s", bad.path, out.Code, out.Body)
		}
	}
	w.clock.Add(time.Minute)
	if got := upload(b); len(got) != 1 || got[0].Reason != dap.BatchCollected {
		t.Errorf("not taken: %v", got)
	}
	w.key = admin
	w.want(409, "POST", "/v1/experiments/shop/rewards", `{"decision": "x", "reward": 1}`)
}

// All reports of a decision count where the experiment says so. Each needs an id; one of metrics alone needs no
// reward; and no answer says what was there before.
func TestReportsThatAddUp(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: sums", "default: 0",
		"default: 0, aggregate: sum").Replace(shop)+
		"metrics: [{name: basket, range: [0, 200], aggregate: max, budget: {epsilon: 0.25}}]\n")
	const x = "/v1/experiments/sums"
	w.want(200, "POST", x+"/start", "")
	if text := w.want(200, "GET", x, ""); !strings.Contains(text, "the service keeps what its reports add up to") ||
		!strings.Contains(text, `"aggregate":"sum"`) {
		t.Error(text)
	}
	var d decisionJSON
	if err := json.Unmarshal([]byte(w.want(200, "POST", x+"/decisions", `{"unit":"ann"}`)), &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   int
		body   string
		answer string
	}{
		{200, `"id": "order 1", "reward": 0.5`, `{"status":"accepted"}`},
		{200, `"id": "order 1", "reward": 0.5`, `{"status":"accepted"}`},
		{200, `"id": "order 2", "metrics": {"basket": 3}`, `{"status":"accepted"}`},
		{400, `"reward": 0.731`, `"field":"id"`},
		{400, `"id": "order 3"`, `"field":"reward"`},
		{400, `"id": "order 3", "reward": null, "metrics": {}`, `"field":"reward"`},
		{400, `"metrics": {"basket": 3}`, `"field":"reward"`},
		{400, `"id": 3, "reward": 1`, `"field":"id"`},
		{400, `"id": "` + strings.Repeat("x", 257) + `", "reward": 1`, `"field":"id"`},
	} {
		body := fmt.Sprintf(`{"decision": %q, %s}`, *d.Decision, c.body)
		if text := w.want(c.code, "POST", x+"/rewards", body); !strings.Contains(text, c.answer) || strings.Contains(text, "0.731") {
			t.Errorf("%s is answered %s", c.body, text)
		}
	}
	body := fmt.Sprintf(`{"rewards":[{"decision": %q, "id": "order 4", "reward": 1}, {"decision": %[1]q, "reward": 1}]}`, *d.Decision)
	if text := w.want(200, "POST", x+"/rewards/batch", body); !strings.Contains(text, `{"status":"accepted"},{"error":"id: is missing`) {
		t.Error(text)
	}
	w.want(200, "POST", x+"/rank", `{"event": "visit 7", "actions": [{"id": "red"}, {"id": "blue"}]}`)
	w.want(400, "POST", x+"/events/visit%207/reward", `{"reward": 1}`)
	w.want(200, "POST", x+"/events/visit%207/reward", `{"reward": 1, "id": "order 5"}`)
}
