package process

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/policy"
)

// Whatever a program writes, what is read of it is within its bounds, and is what encoding/json reads.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"play":[[0,10],[1,10]],"turn":7}`, `{"rest":1,"turn":7}`, `{"answer":0,"turn":7}`, `{"play":[[0,1e3]],"turn":7}`, `{"play":[],"turn":7}`,
		`{"play":[[0,1],[0,2]],"turn":7}`, `{"play":[ [ 2 , 7 ] ],"turn":"7" }`, `{"play":[[0,NaN]],"turn":7}`, `[`, `null`, `{"play":null,"turn":7}`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, line []byte, identify bool) {
		var a answer
		if a.read(line, 7, 3, 100, identify) != nil {
			return
		}
		var want struct {
			Play         [][]int
			Rest, Answer *int
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("%q is read, and encoding/json says %v", line, err)
		}
		switch {
		case a.stops:
			if want.Answer == nil || a.answer != *want.Answer || a.answer < 0 || a.answer > 2 {
				t.Fatalf("%q: the answer is %d", line, a.answer)
			}
			return
		case want.Rest != nil:
			if len(a.plays) != 1 || a.plays[0] != (policy.Play{Arm: *want.Rest, Rounds: policy.Forever}) {
				t.Fatalf("%q is read as %v", line, a.plays)
			}
			return
		}
		if len(a.plays) == 0 || len(a.plays) != len(want.Play) {
			t.Fatalf("%q is read as %v", line, a.plays)
		}
		for i, p := range a.plays {
			if w := want.Play[i]; len(w) != 2 || p != (policy.Play{Arm: w[0], Rounds: w[1], Release: true}) ||
				p.Arm < 0 || p.Arm > 2 || p.Rounds < 1 || p.Rounds > 100 {
				t.Fatalf("%q is read as %v", line, a.plays)
			}
		}
	})
}

// Numbers are as many as were asked for, and null is none of them.
func TestAnswerOfNumbers(t *testing.T) {
	if got, err := readNumbers([]byte(`{"rewards":[0,0.5],"turn":3}`), "rewards", 3, 2); err != nil || got[0] != 0 || got[1] != 0.5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range []struct{ line, says string }{
		{`{"rewards":[0.5,null],"turn":3}`, "rewards[1] is null, must be a number"},
		{`{"rewards":null,"turn":3}`, `must be {"rewards":[NUMBER,…],"turn":TURN}`},
		{`{"rewards":[1],"turn":3}`, "rewards has 1 numbers, must have 2"},
		{`{"rewards":[1,1e999],"turn":3}`, "1e999"},
		{`{"rewards":[1,1]}`, `turn is "", must be 3`},
		{`{"rewards":[1,1],"turn":2}`, `turn is "2", must be 3`},
		{`{"outputs":[1,1],"turn":3}`, `must be {"rewards":[NUMBER,…],"turn":TURN}`},
	} {
		if got, err := readNumbers([]byte(c.line), "rewards", 3, 2); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s is %v, and the error %v, must have %q", c.line, got, err, c.says)
		}
	}
}

// What a program says of itself is read, or refused.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"sotto":1,"name":"mine","mechanism":"laplace","scale":2,"bandit":"identify"}`))
	f.Add([]byte(`{"sotto":1,"name":"mine","mechanism":"none"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := readHello(line)
		if err == nil && (!(h.Scale > 0) || !nameForm.MatchString(h.Name) || h.Mechanism == "") {
			t.Fatalf("%q is read as %+v", line, h)
		}
	})
}
