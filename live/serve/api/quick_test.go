package api

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// A quick answer is what json.Marshal says, or left to it.
func TestQuickAnswersAreJSON(t *testing.T) {
	texts := []string{"", "red", "a b", `"`, `\`, "<b>", "é", "\x00", "\u2028", "\xff", "&", "~", "\x7f"}
	values := []string{"", "1", `"red"`, `{"a":1}`, `{"a": 1}`, `"<"`, "null", `"é"`, `{`, "1e400"}
	numbers := []float64{0, 1e-7, 1e-6, 0.1, 1.0 / 3, 0.95, 1, 2, math.NaN(), 5e-324}
	times := []time.Time{time.UnixMilli(1_700_000_000_123).UTC(), time.UnixMilli(0).UTC(), {},
		time.UnixMilli(1_700_000_000_000), time.UnixMilli(1 << 58).UTC()}
	r := rand.New(rand.NewPCG(1, 1))
	quicks := 0
	hold := func(v any) {
		t.Helper()
		q, is := v.(quick)
		if !is {
			t.Fatalf("%T is not quick", v)
		}
		got, ok := q.appendTo(nil)
		if !ok {
			return
		}
		quicks++
		if want, err := json.Marshal(v); err != nil || string(got) != string(want) {
			t.Errorf("%s, must be %s (%v)", got, want, err)
		}
	}
	for _, text := range texts {
		hold(statusJSON{text})
	}
	for range 20_000 {
		d := decisionJSON{Arm: texts[r.IntN(len(texts))], Value: json.RawMessage(values[r.IntN(len(values))]),
			Propensity: numbers[r.IntN(len(numbers))], Reason: serve.Reason(texts[r.IntN(3)])}
		if token := texts[r.IntN(len(texts))]; r.IntN(4) > 0 {
			d.Decision = &token
		}
		if r.IntN(2) > 0 {
			d.Expires = &times[r.IntN(len(times))]
		}
		if r.IntN(3) == 0 {
			d.ActivateBy = &times[r.IntN(len(times))]
		}
		hold(d)
	}
	if quicks < 500 {
		t.Errorf("%d are quick", quicks)
	}
}

// What is read quickly is what encoding/json reads: FuzzQuickRead begins with these.
var readQuickly = []string{`{}`, `{"unit":"ann"}`, `{"unit": "ann"}`, `{"unit":"a\"b"}`, `{"unit":"é"}`, `{"unit":"ann","unit":"b"}`,
	`{"unit":""}`, `{"decision":"t","reward":1}`, `{"decision": "t", "reward": 0.25}`, `{"decision":"t","reward":-1e-3}`,
	`{"decision":"t","reward":1e999}`, `{"decision":"t","reward":01}`, `{"decision":"t","reward":NaN}`,
	`{"decision":"t","reward":1,"id":"x"}`, `{"decision":"t","reward":null}`, `{"decision":"t","reward":[1]}`,
	`{"decision":"t","reward":"1"}`, `{"decision":"t","reward":1}}`, `{"decision":"t","reward":0x1p-2}`, `{"decision":"","reward":1_0}`}

func FuzzQuickRead(f *testing.F) {
	for _, text := range readQuickly {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d decisionRequest
		if d.readFrom(data) {
			var slow struct {
				Unit string `json:"unit"`
			}
			if err := decodeInto(data, &slow, true); err != nil || slow.Unit != d.Unit {
				t.Errorf("%q is read as %q, must be %q, %v", data, d.Unit, slow.Unit, err)
			}
		} else if d.Unit != "" {
			t.Errorf("%q is half read", data)
		}
		var q rewardRequest
		if q.readFrom(data) {
			var slow struct {
				Decision string   `json:"decision"`
				Reward   *float64 `json:"reward"`
			}
			if err := decodeInto(data, &slow, true); err != nil || slow.Decision != q.Decision ||
				slow.Reward == nil || *slow.Reward != *q.Reward {
				t.Errorf("%q is read as %q and %v, must be %+v, %v", data, q.Decision, *q.Reward, slow, err)
			}
		} else if q.Decision != "" || q.Reward != nil {
			t.Errorf("%q is half read", data)
		}
	})
}

func TestQuickRead(t *testing.T) {
	n := 0
	for _, text := range readQuickly {
		var d decisionRequest
		var q rewardRequest
		if d.readFrom([]byte(text)) || q.readFrom([]byte(text)) {
			n++
		}
	}
	if n != 7 {
		t.Errorf("%d of the forms are read quickly, must be 7", n)
	}
}
