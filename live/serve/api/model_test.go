package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// mixed has features of all kinds, crosses and hashes.
const mixed = `
name: mixed
contextual:
  context:
    device: {values: [phone, desktop, 3, true, 1e+06]}
    user.age: {range: [0, 100], clip: true}
    user.city: {buckets: 7, seed: 9007199254740993}
    note: {cross_only: true}
  action:
    topic: {values: [war, sport, "Zürich – 日本"]}
    length: {range: [-8, 0]}
  id: {buckets: 5, seed: 3}
  cross:
    - {of: [device, topic]}
    - {of: [user.age, topic]}
    - {of: [note, user.city, length, id], buckets: 11, seed: 12345678901234567}
    - {of: [user.age, length]}
  actions: 8
  unknown: ignore
policy: {policy: adac-oful, greed: 1}
horizon: 100000
budget: {rho: 10}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 10s
floor: 0.2
stop: {keep: policy}
public: true
`

// mixedAsk is a random context with its actions, some of which miss features or have unknown ones.
func mixedAsk(src *rand.Rand, event string) map[string]any {
	pick := func(of ...any) any { return of[src.IntN(len(of))] }
	words := []any{"", "a", "words of more than thirty-two bytes, with Zürich", "🙂", 0.1, 0.0, 1e21, 1234567.5, 1e-7, 12.0, false}
	context := map[string]any{"device": pick("phone", "desktop", 3, true, 1000000, "unknown", nil), "note": pick(words...)}
	user := map[string]any{"age": src.Float64()*140 - 20, "city": pick(words...)}
	if src.IntN(2) == 0 {
		context["user"] = user
	} else {
		context["user.age"], context["user.city"], context["more"] = user["age"], user["city"], 1
	}
	actions := []any{}
	for i := range 1 + src.IntN(8) {
		features := map[string]any{"topic": pick("war", "sport", "Zürich – 日本", nil)}
		if src.IntN(4) > 0 {
			features["length"] = -8 * src.Float64()
		}
		actions = append(actions, map[string]any{"id": fmt.Sprint("a-", src.IntN(1000), "-", i), "features": features})
	}
	excluded := []string{}
	if len(actions) > 1 && src.IntN(3) == 0 {
		excluded = append(excluded, actions[src.IntN(len(actions))].(map[string]any)["id"].(string))
	}
	return map[string]any{"event": event, "context": context, "actions": actions, "excluded": excluded}
}

// Whoever reads the model gives what the service gives that keeps what was learnt: in Go and in JavaScript, of a
// thousand random contexts.
func TestModel(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", mixed)
	const x = "/v1/experiments/mixed"
	if got := w.want(409, "GET", x+"/model", ""); !strings.Contains(got, "nothing was released yet") {
		t.Error(got)
	}
	w.want(200, "POST", x+"/start", "")
	src := rand.New(rand.NewPCG(1, 2))
	rank := func(ask map[string]any) (text, action, reason string) {
		t.Helper()
		b, err := json.Marshal(ask)
		if err != nil {
			t.Fatal(err)
		}
		var out rankJSON
		if err := json.Unmarshal([]byte(w.want(200, "POST", x+"/rank", string(b))), &out); err != nil {
			t.Fatal(err)
		}
		return string(b), out.Action, string(out.Reason)
	}
	for i := range 120 {
		event := fmt.Sprint("event ", i)
		rank(mixedAsk(src, event))
		w.want(200, "POST", x+"/events/"+fmt.Sprint("event%20", i)+"/reward", fmt.Sprintf(`{"reward": %v}`, src.IntN(2)))
	}
	w.want(200, "POST", x+"/stop", "")
	info := ""
	for n := 0; n < 100 && !strings.Contains(info, `"state":"stopped"`); n++ {
		w.pass(time.Second)
		info = w.want(200, "GET", x, "")
	}
	if !strings.Contains(info, `"kept":"policy"`) {
		t.Fatal(info)
	}
	page := w.want(200, "GET", "/experiments/mixed", "")
	if !strings.Contains(page, "everybody gets the best action by what was learnt") {
		t.Error("the page does not say what is kept")
	}
	w.key = "" // it is public
	text := w.want(200, "GET", x+"/model", "")
	if file := w.want(200, "GET", "/experiments/mixed/model.json", ""); file != text ||
		!strings.Contains(page, `<a href="/experiments/mixed/model.json">model</a>`) {
		t.Errorf("the page's file is %s", file)
	}
	m, err := feature.ReadModel([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w.key = w.keyWith(serve.ScopeDecide)
	var asks, want []string
	for i := range 1000 {
		ask := mixedAsk(src, fmt.Sprint("later ", i))
		line, action, reason := rank(ask)
		var q rankRequest
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		var actions []feature.Action
		for _, a := range q.Actions {
			actions = append(actions, feature.Action(a))
		}
		if best, err := m.Best(q.Context, actions, q.Excluded...); err != nil || actions[best].ID != action || reason != "static" {
			t.Fatalf("%s: the service gives %s, %s, and the model %d, %v", line, action, reason, best, err)
		}
		asks, want = append(asks, line), append(want, action)
	}
	dir := t.TempDir()
	for name, data := range map[string]string{"sotto.mjs": strings.Replace(string(script), "sotto-model.js", "sotto-model.mjs", 1),
		"sotto-model.mjs": string(modelScript), "model.json": text, "asks.json": "[" + strings.Join(asks, ",") + "]",
		"run.mjs": `
import { readFileSync } from 'node:fs';
import { readModel } from './sotto.mjs';
const text = readFileSync('model.json', 'utf8');
const m = await readModel(text);
for (const q of JSON.parse(readFileSync('asks.json'))) console.log(m.best(q.context, q.actions, q.excluded).id);
const bad = async (json) => { try { await readModel(json); console.log('read'); } catch (e) { console.log(e.message); } };
await bad('x');
await bad({ ...m, format: 'sotto-model/2' });
await bad({ ...m, theta: m.theta.slice(1) });
await bad({ ...m, theta: null });
const strict = await readModel({ ...JSON.parse(text), map: { ...m.map, ignore: false } });
for (const c of [{ device: 'car' }, { colour: 1 }, { device: [1] }]) {
  try { strict.best(c, [{ id: 'a' }]); } catch (e) { console.log(e.message); }
}
try { m.best({}, [{ id: 'a' }], ['a']); } catch (e) { console.log(e.message); }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(testkit.Program(t, "node"), "run.mjs")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want = append(want, "sotto: model: is no JSON", "sotto: model: format is sotto-model/2, must be sotto-model/1",
		fmt.Sprintf("sotto: model: theta has %d numbers, must have %d", len(m.Theta)-1, len(m.Theta)),
		"sotto: model: map, unit or theta is missing, or no such",
		"sotto: context.device: is car, must be one of phone, desktop, 3, true, 1e+06",
		"sotto: context.colour: is not declared", "sotto: context.device: is no string, finite number or boolean",
		"sotto: excluded: has all 1 actions, must leave one")
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%d: the script says %q, must say %q", i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

// An experiment with arms has none; over the client a refusal is one that it has a name for.
func TestModelErrors(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", shop)
	if got := w.want(409, "GET", "/v1/experiments/shop/model", ""); !strings.Contains(got, "model: it has arms, must be contextual") {
		t.Error(got)
	}
	w.want(404, "GET", "/v1/experiments/none/model", "")
	w.want(201, "POST", "/v1/experiments", segments)
	on := httptest.NewServer(http.HandlerFunc(w.asked.ServeHTTP))
	defer on.Close()
	c, err := client.New(on.URL, w.keyWith(serve.ScopeDecide))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Model(t.Context(), "segments"); !errors.Is(err, client.ErrScope) {
		t.Error(err)
	}
	if c, err = client.New(on.URL, w.keyWith(serve.ScopeRead)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Model(t.Context(), "segments"); !errors.Is(err, client.ErrRequest) || !strings.Contains(err.Error(), "nothing was released yet") {
		t.Error(err)
	}
}
