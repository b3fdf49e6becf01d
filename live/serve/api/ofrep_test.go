package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
)

// A flagSeen is what OpenFeature's clients read.
type flagSeen struct {
	Key, Variant, Reason, ErrorCode, ErrorDetails string
	Value                                         any
	Metadata                                      map[string]any
}

// ofrepWorld has shop running, and beside it a free experiment, one that is paused, a draft, one
// that stopped with the winner blue, one that stopped without, and one that is archived.
func ofrepWorld(t *testing.T) *world {
	w := shopOpen(t)
	for _, x := range []struct {
		name, change string
		then         []string // operation and body
	}{
		{"free", "sticky: false\n", []string{"start", ""}},
		{"paused", "", []string{"start", "", "pause", ""}},
		{"draft", "", nil},
		{"won", "", []string{"start", "", "stop", `{"arm":"blue"}`}},
		{"given-up", "", []string{"start", "", "stop", ""}},
		{"gone", "", []string{"start", "", "stop", "", "archive", ""}},
	} {
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", x.name, 1)+x.change)
		for i := 0; i < len(x.then); i += 2 {
			w.want(200, "POST", "/v1/experiments/"+x.name+"/"+x.then[i], x.then[i+1])
		}
	}
	return w
}

const (
	oneFlag  = "/ofrep/v1/evaluate/flags/"
	allFlags = "/ofrep/v1/evaluate/flags"
	ann      = `{"context":{"targetingKey":"ann"}}`
)

// What one flag is answered: the contract of OFREP 0.3.0, line by line.
func TestOFREPFlag(t *testing.T) {
	w := ofrepWorld(t)
	admin := w.key
	long := `{"context":{"targetingKey":"` + strings.Repeat("x", 5000) + `"}}`
	for _, x := range []struct {
		name, flag, body, key string
		status                int
		code, reason          string
		counts                bool
	}{
		{"a unit", "shop", ann, admin, 200, "", "SPLIT", true},
		{"with a context", "shop", `{"context":{"targetingKey":"ann","plan":"free","x":{"y":[1]}}}`, admin, 200,
			"", "SPLIT", true},
		{"with more", "shop", `{"context":{"targetingKey":"ann"},"more":1}`, admin, 200, "", "SPLIT", true},
		{"free, a unit", "free", ann, admin, 200, "", "SPLIT", true},
		{"free, nobody", "free", `{"context":{}}`, admin, 200, "", "SPLIT", true},
		{"paused", "paused", ann, admin, 200, "", "DISABLED", false},
		{"draft", "draft", ann, admin, 200, "", "DISABLED", false},
		{"stopped with a winner", "won", ann, admin, 200, "", "STATIC", false},
		{"stopped without", "given-up", ann, admin, 200, "", "STATIC", false},
		{"archived", "gone", ann, admin, 200, "", "STATIC", false},
		{"no flag", "none", ann, admin, 404, "FLAG_NOT_FOUND", "", false},
		{"a strange name", "a%2Fb%20", ann, admin, 404, "FLAG_NOT_FOUND", "", false},
		{"nobody", "shop", `{"context":{}}`, admin, 400, "TARGETING_KEY_MISSING", "", false},
		{"an empty key", "shop", `{"context":{"targetingKey":""}}`, admin, 400, "TARGETING_KEY_MISSING", "",
			false},
		{"a null key", "shop", `{"context":{"targetingKey":null}}`, admin, 400, "TARGETING_KEY_MISSING", "",
			false},
		{"a number for a key", "shop", `{"context":{"targetingKey":7}}`, admin, 400, "INVALID_CONTEXT", "",
			false},
		{"a long key", "shop", long, admin, 400, "INVALID_CONTEXT", "", false},
		{"half a surrogate", "shop", `{"context":{"targetingKey":"\ud800"}}`, admin, 400, "INVALID_CONTEXT", "",
			false},
		{"no context", "shop", `{}`, admin, 400, "INVALID_CONTEXT", "", false},
		{"a null context", "shop", `{"context":null}`, admin, 400, "INVALID_CONTEXT", "", false},
		{"a list for a context", "shop", `{"context":[]}`, admin, 400, "INVALID_CONTEXT", "", false},
		{"nothing", "shop", ``, admin, 400, "PARSE_ERROR", "", false},
		{"no JSON", "shop", `{"context":`, admin, 400, "PARSE_ERROR", "", false},
		{"a list", "shop", `[]`, admin, 400, "PARSE_ERROR", "", false},
		{"no UTF-8", "shop", "{\"context\":{\"targetingKey\":\"\xff\"}}", admin, 400, "PARSE_ERROR", "", false},
		{"too large", "shop", `{"context":{"x":"` + strings.Repeat("x", maxContext) + `"}}`, admin, 413,
			"GENERAL", "", false},
		{"no key", "shop", ann, "", 401, "", "", false},
		{"a wrong key", "shop", ann, "sotto_wrong", 401, "", "", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w.key = x.key
			out := w.ask("POST", oneFlag+x.flag, x.body)
			var got flagSeen
			if err := json.Unmarshal(out.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, out.Body)
			}
			if out.Code != x.status || got.ErrorCode != x.code || got.Reason != x.reason {
				t.Fatalf("%d %s", out.Code, out.Body)
			}
			if x.status == 401 {
				if out.Header().Get("WWW-Authenticate") == "" {
					t.Error("401 does not say how")
				}
				return
			}
			name := strings.ReplaceAll(strings.ReplaceAll(x.flag, "%2F", "/"), "%20", " ")
			if got.Key != name || x.code != "" && got.Value != nil {
				t.Errorf("%s", out.Body)
			}
			if x.status != 200 {
				return
			}
			want := map[string]any{"red": "#c00", "blue": map[string]any{"hex": "#00c", "n": 3.0}}[got.Variant]
			if want == nil || !reflect.DeepEqual(got.Value, want) {
				t.Errorf("the value of %q is %v", got.Variant, got.Value)
			}
			if x.flag == "won" && got.Variant != "blue" {
				t.Errorf("the winner is %q", got.Variant)
			}
			for name, v := range got.Metadata { // it is flat
				switch v.(type) {
				case string, float64, bool:
				default:
					t.Errorf("metadata has %q, which is %T", name, v)
				}
			}
			token, counts := got.Metadata["decision"].(string)
			if _, expires := got.Metadata["expires_at"]; counts != x.counts || expires != x.counts {
				t.Errorf("%v", got.Metadata)
			}
			if counts {
				w.want(200, "POST", "/v1/experiments/"+x.flag+"/rewards", reward(token, "1"))
			}
		})
	}
	// Nothing of a person, and no code of OFREP's, is in what is answered when the service fails.
	w.key = admin
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{oneFlag + "shop", allFlags} {
		r := httptest.NewRequest("POST", path, strings.NewReader(ann)).WithContext(gone)
		r.Header.Set("X-API-Key", w.key)
		out := httptest.NewRecorder()
		w.front.ServeHTTP(out, r)
		if out.Code != 503 || out.Header().Get("Retry-After") != "1" || out.Body.String() !=
			`{"errorDetails":"the service cannot write now: send it again"}`+"\n" {
			t.Errorf("%s: %d %s", path, out.Code, out.Body)
		}
	}
}

// What all flags are answered, and what an ETag saves.
func TestOFREPFlags(t *testing.T) {
	w := ofrepWorld(t)
	bulk := func(body string, header ...string) (*httptest.ResponseRecorder, map[string]flagSeen) {
		t.Helper()
		out := w.ask("POST", allFlags, body, header...)
		var got struct{ Flags []flagSeen }
		if out.Code == 200 {
			if err := json.Unmarshal(out.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
		}
		flags := map[string]flagSeen{}
		for _, f := range got.Flags {
			flags[f.Key] = f
		}
		return out, flags
	}
	out, flags := bulk(ann)
	tag := out.Header().Get("ETag")
	for name, reason := range map[string]string{"shop": "SPLIT", "paused": "DISABLED", "won": "STATIC",
		"given-up": "STATIC"} {
		if flags[name].Reason != reason {
			t.Errorf("%s: %+v", name, flags[name])
		}
	}
	if len(flags) != 4 || tag == "" || out.Header().Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%v %s", out.Header(), out.Body)
	}
	// each is as it is alone
	for name, f := range flags {
		var one flagSeen
		if err := json.Unmarshal([]byte(w.want(200, "POST", oneFlag+name, ann)), &one); err != nil ||
			!reflect.DeepEqual(one, f) {
			t.Errorf("%+v, alone %+v, %v", f, one, err)
		}
	}
	before := w.want(200, "GET", "/v1/experiments/shop", "")
	for _, x := range []struct {
		know string
		want int
	}{{"", 200}, {tag, 304}, {"W/" + tag, 304}, {`"other", ` + tag, 304}, {"*", 304}, {`"other"`, 200},
		{strings.Trim(tag, `"`), 200}} {
		out, _ := bulk(ann, "If-None-Match", x.know)
		if out.Code != x.want || out.Header().Get("ETag") != tag || (out.Body.Len() == 0) != (x.want == 304) {
			t.Errorf("If-None-Match: %s: %d %v %s", x.know, out.Code, out.Header(), out.Body)
		}
	}
	if after := w.want(200, "GET", "/v1/experiments/shop", ""); after != before {
		t.Errorf("to ask again counts: %s, was %s", after, before)
	}
	if out, _ := bulk(`{"context":{"targetingKey":"bob"}}`, "If-None-Match", tag); out.Code != 200 {
		t.Errorf("another unit is answered %d", out.Code)
	}
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"arm":"red","now":true,"confirm":"shop"}`)
	out, flags = bulk(ann, "If-None-Match", tag)
	if out.Code != 200 || flags["shop"].Reason != "STATIC" || flags["shop"].Variant != "red" {
		t.Errorf("after the end: %d %s", out.Code, out.Body)
	}
	for body, want := range map[string]string{`{"context":{}}`: "TARGETING_KEY_MISSING",
		`{}`: "INVALID_CONTEXT", `x`: "PARSE_ERROR", `{"context":7}`: "INVALID_CONTEXT"} {
		var bad flagSeen
		if err := json.Unmarshal([]byte(w.want(400, "POST", allFlags, body)), &bad); err != nil ||
			bad.ErrorCode != want || bad.Key != "" {
			t.Errorf("%s: %+v, %v", body, bad, err)
		}
	}
}

// Who is given an arm that was declared without a value is shown its name, whatever asks and in every
// state: a caller's default in its place would be counted for an arm that nobody saw. What was
// declared stays as it was, since its hash is in the transcript.
func TestArmWithoutValue(t *testing.T) {
	w := newWorld(t)
	const one = "/v1/experiments/bare"
	info := w.want(201, "POST", "/v1/experiments", "name: bare\narms: [a<b, {name: onepage}, {name: third, value: null}]\n"+
		shop[strings.Index(shop, "policy:"):])
	if !strings.Contains(info, `"arms":[{"name":"a\u003cb","value":null},{"name":"onepage","value":null},`+
		`{"name":"third","value":null}]`) {
		t.Error(info)
	}
	check := func(state string) {
		t.Helper()
		for i := range 12 {
			ask := fmt.Sprintf(`{"context":{"targetingKey":"%s %d"}}`, state, i)
			var flag flagSeen
			if err := json.Unmarshal([]byte(w.want(200, "POST", oneFlag+"bare", ask)), &flag); err != nil ||
				flag.Value != flag.Variant || flag.Variant == "" {
				t.Errorf("%s: %+v, %v", state, flag, err)
			}
			var all struct{ Flags []flagSeen }
			if err := json.Unmarshal([]byte(w.want(200, "POST", allFlags, ask)), &all); err != nil ||
				state != "draft" && !reflect.DeepEqual(all.Flags, []flagSeen{flag}) {
				t.Errorf("%s: %+v, alone %+v, %v", state, all, flag, err)
			}
			for _, asked := range []string{fmt.Sprintf(`{"unit":"%s %d"}`, state, i), `{"force":"third"}`} {
				var d struct{ Arm, Value string }
				if err := json.Unmarshal([]byte(w.want(200, "POST", one+"/decisions", asked)), &d); err != nil ||
					d.Value != d.Arm || d.Arm == "" {
					t.Errorf("%s: %+v, %v", state, d, err)
				}
			}
		}
	}
	check("draft")
	for _, do := range []string{"start", "pause", "resume", "stop"} {
		w.want(200, "POST", one+"/"+do, "")
		check(do)
	}
}

// All flags of a page are those that its key and its visitor's signature are good for. A signature
// that is good for none is refused, whoever it names.
func TestOFREPFlagsOfSome(t *testing.T) {
	w := ofrepWorld(t)
	sign := w.keyWith(serve.ScopeSign)
	keyOf := func(experiment string) string {
		secret, _, err := w.engine.NewKeyFor(t.Context(), experiment, "page", browserScopes)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	soon := w.clock.Now().Add(time.Minute)
	for _, x := range []struct {
		key, signedFor string
		until          time.Time
		status         int
		want           []string
	}{
		{"", "*", soon, 200, []string{"given-up", "paused", "shop", "won"}},
		{"", "shop", soon, 200, []string{"shop"}},
		{"", "won", soon, 200, []string{"won"}},
		{"shop", "shop", soon, 200, []string{"shop"}},
		{"shop", "*", soon, 200, []string{"shop"}},
		{"", "draft", soon, 200, nil}, // it is good, and there is nothing yet
		{"won", "shop", soon, 403, nil},
		{"", "none", soon, 403, nil},
		{"", "shop", w.clock.Now(), 403, nil},
	} {
		w.key = keyOf(x.key)
		ask := fmt.Sprintf(`{"context": {"targetingKey": %q}}`, client.SignUnit(sign, x.signedFor, "ann", x.until))
		out := w.ask("POST", allFlags, ask)
		var all struct{ Flags []flagSeen }
		if err := json.Unmarshal(out.Body.Bytes(), &all); err != nil || out.Code != x.status {
			t.Errorf("%+v: %d %s, %v", x, out.Code, out.Body, err)
		}
		var got []string
		for _, f := range all.Flags {
			got = append(got, f.Key)
			var one flagSeen
			if err := json.Unmarshal([]byte(w.want(200, "POST", oneFlag+f.Key, ask)), &one); err != nil ||
				!reflect.DeepEqual(one, f) {
				t.Errorf("%+v: %+v, alone %+v, %v", x, f, one, err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
