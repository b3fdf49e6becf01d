package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// The format: JSON, one object a line, a line from the program for each line to it.
//
//	to the program                                          from it
//	{"sotto":1}                                             {"sotto":1,"name":"ucb","mechanism":"laplace"}
//	{"run":{"arms":2,"horizon":1000,"seed":7,               {"play":[[0,10],[1,10]],"turn":1}
//	  "budget":{"epsilon":1},"scale":1},"turn":1}
//	{"release":[[0,10,5.25],[1,10,4.5]],"tail":[0,1,0],     {"play":[[0,20]],"turn":2}
//	  "turn":2}
//	…                                                       {"rest":0,"turn":3} or, of a policy that looks
//	                                                        for the best arm, {"answer":0,"turn":3}
//
// Every line after the first ends in its turn, which counts on from run to run, and its answer repeats it.
//
// A play is an arm and the rounds of it, after which the sum of their rewards is released: arm,
// rewards, sum with noise. Sums are of rewards mapped to [0,1]. The tail bounds the noise on one
// side, P(noise > σ√(2x) + h(x+log)) ≤ e^{−x}, as privacy.Tail has it. The next run begins with the
// next {"run":…}, and its policy afresh; the end of the input ends the program.
//
// A mechanism is a program too, for audits. It is given records, in [0,1], and says so many outputs:
//
//	{"sotto":1}                                             {"sotto":1,"name":"mine","claim":{"epsilon":1}}
//	{"records":[0,1,1],"times":2,"seed":7,"turn":1}         {"outputs":[2.5,1.25],"turn":1}
//
// So is an environment, which pays rewards of an arm:
//
//	{"sotto":1}                                             {"sotto":1,"name":"mine","arms":2}
//	{"arm":1,"times":3,"seed":7,"turn":1}                   {"rewards":[0,1,0.5],"turn":1}

// Version is the version of the format.
const Version = 1

// Limits of what a program may say.
const (
	MaxLine = 1 << 20 // bytes of a line
	maxName = 40
)

// noises are the mechanisms that a program can name.
const (
	laplace  = "laplace"
	gaussian = "gaussian"
	none     = "none"
)

// A hello is what a program says of itself.
type hello struct {
	Name      string  // of the policy
	Mechanism string  // laplace, gaussian or none
	Scale     float64 // of its noise, in units of what the budget needs
	Identify  bool    // it looks for the best arm
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// readHello reads the first line of a program.
func readHello(line []byte) (hello, error) {
	var in struct {
		Sotto     json.Number
		Name      string
		Mechanism string
		Scale     *float64
		Bandit    string
	}
	const form = `{"sotto":1,"name":"mine","mechanism":"laplace"}`
	if err := strict(line, &in); err != nil {
		return hello{}, bad(line, form, err)
	}
	h := hello{Name: in.Name, Mechanism: in.Mechanism, Scale: 1, Identify: in.Bandit == "identify"}
	if in.Scale != nil {
		h.Scale = *in.Scale
	}
	if err := named(in.Sotto, h.Name); err != nil {
		return h, err
	}
	switch {
	case h.Mechanism != laplace && h.Mechanism != gaussian && h.Mechanism != none:
		return h, fmt.Errorf("mechanism is %q, must be laplace, gaussian, or none for no privacy", clip(h.Mechanism))
	case !(h.Scale > 0) || h.Scale > 1e6:
		return h, fmt.Errorf("scale is %v, must be above 0 and at most 1e6: times the noise that the budget "+
			"needs", h.Scale)
	case h.Scale != 1 && h.Mechanism == none:
		return h, fmt.Errorf("scale is %v, must be missing where mechanism is none", h.Scale)
	case in.Bandit != "" && in.Bandit != "regret" && in.Bandit != "identify":
		return h, fmt.Errorf("bandit is %q, must be regret or identify", clip(in.Bandit))
	}
	return h, nil
}

// named checks the version and the name that a program says.
func named(version json.Number, name string) error {
	switch {
	case version.String() != strconv.Itoa(Version):
		return fmt.Errorf("sotto is %q, must be %d, the version of the format", clip(version.String()), Version)
	case !nameForm.MatchString(name) || len(name) > maxName:
		return fmt.Errorf("name is %q, must be of a-z, 0-9, dash and underscore, a letter first, at most %d of them",
			clip(name), maxName)
	}
	return nil
}

// A begin is what a program is told of a run.
type begin struct {
	Arms    int             `json:"arms"`
	Horizon int             `json:"horizon,omitempty"` // 0: it stops by itself
	Seed    uint64          `json:"seed"`              // of the program's own coins, below 2⁵³
	Budget  json.RawMessage `json:"budget"`
	Scale   float64         `json:"scale"` // of the noise in a sum
	Risk    float64         `json:"risk,omitempty"`
}

// writeBegin appends the line that begins a run.
func writeBegin(to []byte, b begin) ([]byte, error) {
	text, err := json.Marshal(struct {
		Run begin `json:"run"`
	}{b})
	return append(append(to, text...), '\n'), err
}

// writeRelease appends the line that has what a batch has released.
func writeRelease(to []byte, plays []policy.Play, r privacy.Released) []byte {
	to = append(to, `{"release":[`...)
	next := 0
	for i := range plays {
		if !plays[i].Release || next >= r.Len() {
			continue
		}
		if next > 0 {
			to = append(to, ',')
		}
		to = strconv.AppendInt(append(to, '['), int64(plays[i].Arm), 10)
		to = strconv.AppendInt(append(to, ','), int64(r.N(next)), 10)
		to = append(number(append(to, ','), r.Sum(next)), ']')
		next++
	}
	to = append(to, ']')
	if r.Len() > 0 {
		t := r.Tail()
		to = number(append(to, `,"tail":[`...), t.Sigma)
		to = number(append(to, ','), t.H)
		to = append(number(append(to, ','), t.Log), ']')
	}
	return append(to, "}\n"...)
}

// number appends a finite number as JSON has it.
func number(to []byte, x float64) []byte { return strconv.AppendFloat(to, x, 'g', -1, 64) }

// An answer is what a program wants: its batch is filled, or it has an answer.
type answer struct {
	plays  []policy.Play
	stops  bool
	answer int
}

const answerForm = `{"play":[[ARM,ROUNDS],…],"turn":TURN}`

// sameTurn checks the turn that an answer says, which is empty where it says none.
func sameTurn(said string, turn int) error {
	if said != strconv.Itoa(turn) {
		return fmt.Errorf("turn is %q, must be %d, that of the line which it answers: a program says a line "+
			"for each that it is given", clip(said), turn)
	}
	return nil
}

// read reads a program's answer to a turn, for so many arms, in place of the last; a play has at most so
// many rounds.
func (a *answer) read(line []byte, turn, arms, most int, identify bool) error {
	var in struct {
		Turn, Play, Rest, Answer json.RawMessage
	}
	a.plays, a.stops = a.plays[:0], false
	if err := strict(line, &in); err != nil {
		return bad(line, answerForm, err)
	}
	given, same := 0, sameTurn(string(in.Turn), turn)
	for _, yes := range []bool{in.Play != nil, in.Rest != nil, in.Answer != nil} {
		if yes {
			given++
		}
	}
	switch {
	case given != 1:
		return bad(line, answerForm+`, {"rest":ARM,"turn":TURN} or {"answer":ARM,"turn":TURN}, one of them`, nil)
	case same != nil:
		return same
	case in.Play != nil:
		return a.readPlays(in.Play, arms, most)
	case in.Rest != nil && identify:
		return errors.New("rest is there, must be missing where the best arm is looked for: say answer")
	case in.Answer != nil && !identify:
		return errors.New("answer is there, must be missing where regret counts: say rest")
	}
	name, n := "rest", in.Rest
	if in.Answer != nil {
		name, n = "answer", in.Answer
	}
	arm, err := strconv.Atoi(string(n))
	if err != nil || arm < 0 || arm >= arms {
		return fmt.Errorf("%s is %s, must be an arm from 0 to %d", name, clip(string(n)), arms-1)
	}
	if in.Answer != nil {
		a.stops, a.answer = true, arm
		return nil
	}
	a.plays = append(a.plays, policy.Play{Arm: arm, Rounds: policy.Forever})
	return nil
}

// readPlays reads [[arm,rounds],…], which is known to be JSON.
func (a *answer) readPlays(text []byte, arms, most int) error {
	var all [][]json.RawMessage // no numbers: null would be 0
	if err := json.Unmarshal(text, &all); err != nil {
		return bad(text, "[[ARM,ROUNDS],…] in whole numbers", nil)
	}
	switch {
	case len(all) == 0:
		return errors.New("play is empty, must have at least one arm")
	case len(all) > arms:
		return fmt.Errorf("play has more than %d items, must have each arm once at most", arms)
	}
	seen := make([]bool, arms)
	for i, one := range all {
		if len(one) != 2 {
			return bad(text, "[[ARM,ROUNDS],…] in whole numbers", nil)
		}
		p, err := play(string(one[0]), string(one[1]), arms, most)
		if err != nil {
			return fmt.Errorf("play %d: %w", i, err)
		}
		if seen[p.Arm] {
			return fmt.Errorf("play has arm %d twice, must have each arm once at most", p.Arm)
		}
		seen[p.Arm] = true
		a.plays = append(a.plays, p)
	}
	return nil
}

// play is one play, of its words.
func play(arm, rounds string, arms, most int) (policy.Play, error) {
	p := policy.Play{Release: true}
	var err error
	if p.Arm, err = strconv.Atoi(arm); err != nil || p.Arm < 0 || p.Arm >= arms {
		return p, fmt.Errorf("arm is %s, must be a whole number from 0 to %d", clip(arm), arms-1)
	}
	if p.Rounds, err = strconv.Atoi(rounds); err != nil || p.Rounds < 1 || p.Rounds > most {
		return p, fmt.Errorf("rounds is %s, must be a whole number from 1 to %d", clip(rounds), most)
	}
	return p, nil
}

// strict reads one JSON object, whose fields are known, and nothing after it.
func strict(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the object")
	}
	return nil
}

// bad is the error of a line that has not the form of an answer.
func bad(line []byte, form string, why error) error {
	text := clip(string(bytes.TrimSpace(line)))
	if why == nil {
		return fmt.Errorf("its line is %q, must be %s", text, form)
	}
	return fmt.Errorf("its line is %q, must be %s: %s", text, form, clip(why.Error())) // it can quote the line
}

// clip shortens what a program says for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// mechanism is the noise that a program names, at a budget, and its scale.
func (h hello) mechanism(b privacy.Budget) (privacy.Mechanism, float64, error) {
	if b == nil {
		b = privacy.None{}
	}
	switch h.Mechanism {
	case laplace:
		x, err := privacy.LaplaceScale(b)
		return privacy.Laplace{Scale: x * h.Scale}, x * h.Scale, err
	case gaussian:
		x, err := privacy.GaussianSigma(b)
		return privacy.Gaussian{Sigma: x * h.Scale}, x * h.Scale, err
	}
	return privacy.Exact{}, 0, nil
}

// budgets are the kinds of budget that the noise meets.
func (h hello) budgets() []string {
	switch h.Mechanism {
	case laplace:
		return []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}
	case gaussian:
		return []string{"rho", "epsilon,delta", "alpha,epsilon"}
	}
	return nil
}

// seed is a program's, of a number in [0,1).
func seed(x float64) uint64 { return uint64(math.Floor(x * (1 << 53))) }
