package api

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// Whatever a body says, it is read or refused, in a problem that has nothing of it but a field's
// name; what is read is finite and whole.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{``, `{}`, `null`, `[]`, `{"unit":"x"}`, `{"decision":"d","reward":0.731}`,
		`{"decision":"d","reward":NaN}`, `{"decision":"d","reward":1e999}`,
		`{"rewards":[{"decision":"d","reward":1}]}`,
		`{"rewards":[{"decision":"d"}]}`, `{"name":"n","scopes":["read"]}`, `{"arm":"red"}`, `{"0.731":1}`,
		"{\"unit\":\"\xff\"}", `{"unit":"\ud800"}`, `{"a":{"a":{"a":`,
		`{"decision":"d","reward":1,"metrics":{"0.731":1}}`,
		`{"decision":"d","reward":1,"metrics":{"x":"0.731"}}`,
		`{"decision":"d","shown":false}`, `{"end":null,"floor":0.731,"window":"1h","off":["red"]}`,
		`{"budget":{"epsilon":731}}`, `{"actions":[{"id":"x","features":{"n":731}}]}`, `{"value":731,"x":1}`,
		`{"contextFeatures":[{"a":731}],"actions":[{"id":"x","features":[{"b":{"c":731}}]}],"eventId":"731"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, into := range []request{&decisionRequest{}, &rewardRequest{}, &batchRequest{},
			&stopRequest{}, &keyRequest{}, &activationRequest{}, &changeRequest{}, &rankRequest{},
			&eventRewardRequest{}, &emptyRequest{}, &personalRank{}, &personalReward{}} {
			err := decodeAs([]byte(body), into, !strings.Contains(fmt.Sprintf("%T", into), "personal"))
			var p *problem
			if err != nil && (!errors.As(err, &p) || p.Status != 400 && p.Status != 409 ||
				p.Detail == "" || len(p.Detail) > 200 ||
				strings.Contains(p.Detail, "731")) {
				t.Errorf("%q: %v", body, err)
			}
			if q, ok := into.(*rewardRequest); ok && err == nil {
				if r := q.report(); r.Token == "" || math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0) {
					t.Errorf("%q: %+v", body, r)
				}
			}
		}
	})
}
