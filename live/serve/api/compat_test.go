package api

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

func basic(key string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":")) }

// messages are a batch as Segment has it.
func messages(batch string) string { return `{"batch": [` + batch + `], "sentAt": null}` }

// purchase is a message of a unit.
func purchase(unit string) string {
	return fmt.Sprintf(`{"type": "track", "userId": %q, "event": "checkout"}`, unit)
}

// Of a batch the messages of type track count, by user or else by anonymous ID, once; its sender's clock may be wrong.
func TestSegmentBatch(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		w.front.clock = w.clock.Now
		key := w.keyWith(serve.ScopeReward)
		w.key = ""
		send := func(body string, header ...string) {
			if got := w.want(200, "POST", compat.SegmentPath, body, append(header, "Authorization", basic(key))...); got !=
				`{"success":true}`+"\n" {
				t.Error(got)
			}
		}
		w.pass(10 * time.Second)
		send(messages(purchase("unit 0") + "," + purchase("unit 0") + `, {"type": "identify", "userId": 7},
			{"type": "track", "anonymousId": "unit 1", "userId": null, "event": "checkout", "properties": {"total": 3, "value": 0.5}}`))
		// an hour slow, 9 s after the decision and 11 s before it
		send(`{"sentAt": "2001-09-09T00:46:50Z", "batch": [
			{"type": "track", "userId": "unit 2", "event": "checkout", "timestamp": "2001-09-09T00:46:49Z"},
			{"type": "track", "userId": "unit 3", "event": "checkout", "originalTimestamp": "2001-09-09T00:46:39Z"}]}`)
		send(messages(purchase("nobody") + `, {"type": "track", "userId": "unit 4", "event": "other"}`))
		send(messages(`{"type": "page"}`))
		send(messages(strings.Repeat(`{"type": "page"},`, 1200) + strings.Repeat(purchase("unit 5")+",", 1200) + purchase("unit 6")))
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, _ = z.Write([]byte(messages(purchase("unit 7"))))
		_ = z.Close()
		send(small.String(), "Content-Encoding", "gzip")
	})
	if got != [2]float64{1 + .5 + 1 + 1 + 1 + 1, 3} {
		t.Errorf("%v", got)
	}
}

// What is wrong with a batch is told by its form alone, in Segment's words, with its place and without its value.
func TestSegmentRefuses(t *testing.T) {
	w := shopOpen(t)
	key := w.keyWith(serve.ScopeReward)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = z.Close()
	track := func(more string) string { return messages(`{"type": "page"}, {"type": "track", ` + more + `}`) }
	for _, c := range []struct {
		body, key, field string
		status           int
	}{
		{`{}`, key, `"batch"`, 400}, {messages(""), key, `"batch"`, 400}, {`6543`, key, "", 400},
		{messages(strings.Repeat("{},", 2500) + "{}"), key, `"batch"`, 400},
		{messages("6543"), key, `"batch[0].type"`, 400}, {messages("null"), key, `"batch[0].type"`, 400},
		{messages(`{"type": 6543}`), key, `"batch[0].type"`, 400},
		{track(`"userId": "ann"`), key, `"batch[1].event"`, 400},
		{track(`"event": "checkout"`), key, `"batch[1].userId"`, 400},
		{track(`"event": "checkout", "userId": 6543`), key, `"batch[1].userId"`, 400},
		{track(`"event": "checkout", "anonymousId": "` + strings.Repeat("6543", 1025) + `"`), key, `"batch[1].anonymousId"`, 400},
		{track(`"event": "` + strings.Repeat("6543", 65) + `", "userId": "ann"`), key, `"batch[1].event"`, 400},
		{track(`"event": "checkout", "userId": "ann", "messageId": 6543`), key, `"batch[1].messageId"`, 400},
		{track(`"event": "checkout", "userId": "ann", "timestamp": "6543"`), key, `"batch[1].timestamp"`, 400},
		{track(`"event": "checkout", "userId": "ann", "properties": 6543`), key, `"batch[1].properties"`, 400},
		{track(`"event": "checkout", "userId": "ann", "properties": {"value": "6543"}`), key, `"batch[1].properties.value"`, 400},
		{`{"batch": [{}], "sentAt": "6543"}`, key, `"sentAt"`, 400},
		{messages(`{"type": "page", "name": "` + strings.Repeat(" ", 32<<10) + `"}`), key, `"batch[0].type"`, 400},
		{strings.Repeat(" ", compat.MaxSegmentBatch) + `{}`, key, "", 400},
		{"gzip" + bomb.String(), key, "", 400}, {"gzip6543", key, "", 400},
		{messages(purchase("ann")), "sotto_unknown", "", 401}, {messages(purchase("ann")), "", "", 401},
		{messages(purchase("ann")), w.keyWith(serve.ScopeDecide), "", 403},
		{messages(purchase("ann")), w.keyWith(browserScopes), "", 403},
	} {
		w.key = ""
		header := []string{"Authorization", basic(c.key)}
		body, zipped := strings.CutPrefix(c.body, "gzip")
		if zipped {
			header = append(header, "Content-Encoding", "gzip")
		}
		out := w.ask("POST", compat.SegmentPath, body, header...)
		if out.Code != c.status || !strings.Contains(out.Body.String(), `"success":false`) ||
			!strings.Contains(out.Body.String(), c.field) || strings.Contains(out.Body.String(), "6543") {
			t.Errorf("%.80q: %d %s, want %d %s", c.body, out.Code, out.Body, c.status, c.field)
		}
	}
	if out := w.ask("POST", "/v1/track", event("checkout", "ann", "1"), "Authorization", basic(key)); out.Code != 401 {
		t.Errorf("elsewhere a browser sends such a key by itself, and it is taken: %d", out.Code)
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}
