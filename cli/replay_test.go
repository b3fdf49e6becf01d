package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const liveTrialYAML = `name: pills
arms: [{name: placebo}, {name: low}, {name: high}]
policy: dp-tt
risk: 0.000001
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 200ms
public: true
`

// sotto runs a command.
func sotto(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(in), out: &o, err: &e})
	return code, o.String(), e.String()
}

// A trial on made-up people who come one by one: it is declared, decided and reported over HTTP,
// stops by itself with its answer, everybody gets that from then on, and its transcript is played
// again to the same answer, from the service's address, a file, and standard input.
//
// The rule is wrong with probability at most 1e-6 (its risk); that a reward comes too late makes it
// count 0, and only lowers a mean.
func TestLiveTrial(t *testing.T) {
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"))
	const x = "/v1/experiments/pills"
	s.call(201, "POST", "/v1/experiments", liveTrialYAML)
	s.call(200, "POST", x+"/start", "")
	src := rand.New(rand.NewPCG(1, 2))
	well := map[any]float64{"placebo": 0.05, "low": 0.4, "high": 0.95}
	info := map[string]any{}
	people := 0
	for end := time.Now().Add(time.Minute); info["state"] != "stopped"; {
		if time.Now().After(end) {
			t.Fatalf("after %d people it is %v", people, info)
		}
		var rewards []string
		for range 50 {
			d := s.call(200, "POST", x+"/decisions", fmt.Sprintf(`{"unit": "person %d"}`, people))
			people++
			if d["decision"] == nil {
				break // it has stopped
			}
			if src.Float64() < well[d["arm"]] {
				rewards = append(rewards, fmt.Sprintf(`{"decision": %q, "reward": 1}`, d["decision"]))
			}
		}
		if len(rewards) > 0 { // it may have stopped before anybody was well
			s.call(200, "POST", x+"/rewards/batch", `{"rewards": [`+strings.Join(rewards, ",")+`]}`)
		}
		time.Sleep(50 * time.Millisecond)
		info = s.call(200, "GET", x, "")
	}
	if info["kept"] != "high" {
		t.Fatalf("it keeps %v", info["kept"])
	}
	if d := s.call(200, "POST", x+"/decisions", `{"unit": "somebody else"}`); d["arm"] != "high" ||
		d["reason"] != "static" || d["decision"] != nil {
		t.Errorf("%v", d)
	}

	address := s.url + x + "/transcript"
	var out string
	var r replayedJSON
	for until := time.Now().Add(time.Minute); r.End == nil && time.Now().Before(until); {
		var errs string
		var code int
		code, out, errs = sotto(t, "", "replay", address, "--json") // its last line may be on its way
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
			t.Fatalf("%d %s %s %v", code, out, errs, err)
		}
	}
	if r.End == nil || *r.End != "answer" || r.Answer == nil || *r.Answer != "high" || *r.Kept != "high" ||
		r.Spent.Epsilon == nil || *r.Spent.Epsilon != 1 || r.Rounds < 2 || r.Arms[2].Mean == nil {
		t.Errorf("%s", out)
	}
	released := 0
	for _, a := range r.Arms {
		released += a.Released
	}
	if released > people {
		t.Errorf("%d were released of %d people", released, people)
	}

	file := filepath.Join(t.TempDir(), "pills.jsonl")
	text := fetch(t, address)
	write(t, file, text)
	for _, c := range []struct {
		in   string
		args []string
		want []string
	}{
		{"", []string{"replay", file, "--tip", r.Tip},
			[]string{"answer", "the rule has its answer", "epsilon=1"}},
		{text, []string{"replay", "-"}, []string{"answer", r.Tip}},
		{"", []string{"identify", "--replay", file},
			[]string{"answer       high", "wrong with probability at " +
				"most 1e-06", "The plays and the answer follow from the releases."}},
		{"", []string{"identify", "--replay", file, "--json"},
			[]string{`"answer": "high"`, `"replayed": "answer"`}},
	} {
		code, out, errs := sotto(t, c.in, c.args...)
		for _, want := range c.want {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("%q: %d, %s is not in\n%s%s", c.args, code, want, out, errs)
			}
		}
	}

	same := intervalsOf(t, s.text(200, "GET", x+"/report", ""))
	_, trial, _ := sotto(t, "", "identify", "--replay", file, "--json")
	for what, text := range map[string]string{"replay": out, "identify": trial} {
		if got := intervalsOf(t, text); got != same {
			t.Errorf("%s has the intervals %s, the report %s", what, got, same)
		}
	}

	if got, want := verdictOf(t, out), verdictOf(t, s.text(200, "GET", x+"/report", "")); got != want {
		t.Errorf("replay has the verdict %s, the report %s", got, want)
	}

	lines := strings.SplitAfter(text, "\n")
	damaged := regexp.MustCompile(`"sum":\[-?`).ReplaceAllString(text, "${0}1") // sums may be negative
	cut := strings.Join(lines[:len(lines)-2], "")
	for _, c := range []struct {
		text string
		args []string
		code int
		want string
	}{
		{damaged, nil, exitFailed, "the transcript does not hold: line 3: it does not follow the line before"},
		{lines[0] + strings.Join(lines[2:], ""), nil, exitFailed, "line 2"},
		{text + lines[1], nil, exitFailed, fmt.Sprintf("line %d: it does not follow", len(lines))},
		{text[:len(text)-1], nil, exitFailed, "the line is cut"},
		{cut, []string{"--tip", r.Tip}, exitFailed, "not that of --tip"},
		{"", nil, exitFailed, "there is nothing"},
	} {
		code, out, errs := sotto(t, c.text, append([]string{"replay", "-"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%.60q: %d, %s%s must say %s", c.text, code, out, errs, c.want)
		}
	}
	write(t, file, damaged)
	if code, _, errs := sotto(t, "", "identify", "--replay", file); code != exitUsage ||
		!strings.Contains(errs, "line 3") {
		t.Error(code, errs)
	}
	for _, c := range [][2]string{{"nofile", "nofile"}, {"http://", "is no address"},
		{s.url + "/v1/experiments/other/transcript", "401 Unauthorized: a key is missing"}} {
		if code, _, errs := sotto(t, "", "replay", c[0]); code != exitUsage || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: %d %s", c[0], code, errs)
		}
	}
}

// A live experiment that looks for no best arm is no trial.
func TestLiveTrialIsATrial(t *testing.T) {
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"))
	s.call(201, "POST", "/v1/experiments", strings.NewReplacer("dp-tt", "dp-klucb",
		"risk: 0.000001\n", "").Replace(liveTrialYAML))
	s.call(200, "POST", "/v1/experiments/pills/start", "")
	file := filepath.Join(t.TempDir(), "pills.jsonl")
	write(t, file, fetch(t, s.url+"/v1/experiments/pills/transcript"))
	if code, _, errs := sotto(t, "", "identify", "--replay", file); code != exitUsage ||
		!strings.Contains(errs, "sotto replay plays it again") {
		t.Error(code, errs)
	}
	if code, out, errs := sotto(t, "", "replay", file); code != exitOK || !strings.Contains(out, "not yet") {
		t.Error(code, out, errs)
	}
}

// A transcript of contexts has the model that the service hands out, to the last digit.
func TestReplayModel(t *testing.T) {
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"))
	s.call(201, "POST", "/v1/experiments", liveModelYAML)
	const at = "/v1/experiments/front"
	s.call(200, "POST", at+"/start", "")
	file := filepath.Join(t.TempDir(), "front.jsonl")
	write(t, file, fetch(t, s.url+at+"/transcript"))
	if code, _, errs := sotto(t, "", "replay", file, "--model"); code != exitFailed ||
		!strings.Contains(errs, "model: nothing was released yet") {
		t.Error(code, errs)
	}
	for i := range 8 {
		s.call(200, "POST", at+"/rank", fmt.Sprintf(`{"event": "%d", "actions": [{"id": "a"}, {"id": "b"}]}`, i))
	}
	for n := 0; !strings.Contains(fetch(t, s.url+at), `"state":"stopped"`); n++ {
		if time.Sleep(200 * time.Millisecond); n == 100 {
			t.Fatal(fetch(t, s.url+at))
		}
	}
	write(t, file, fetch(t, s.url+at+"/transcript"))
	code, out, errs := sotto(t, "", "replay", file, "--model")
	var short bytes.Buffer
	if err := json.Compact(&short, []byte(out)); err != nil || code != exitOK || errs != "" ||
		strings.TrimSpace(short.String()) != strings.TrimSpace(fetch(t, s.url+at+"/model")) {
		t.Errorf("%d, %s, %v: %s, and the service %s", code, errs, err, out, fetch(t, s.url+at+"/model"))
	}
	if code, out, errs := sotto(t, "", "replay", file); code != exitOK ||
		!strings.Contains(out, "the best action by what was learnt is given from then on") {
		t.Error(code, out, errs)
	}
}

const liveModelYAML = `
name: front
contextual: {id: {values: [a, b]}, actions: 2}
policy: {policy: adac-oful, greed: 1}
horizon: 8
budget: {rho: 10}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 200ms
floor: 0.1
stop: {keep: policy}
public: true
`

// intervalsOf are the arms' intervals in a report, a replay or a trial, as they are written.
func intervalsOf(t *testing.T, text string) string {
	t.Helper()
	var in struct {
		Arms []struct {
			Interval *[2]json.Number `json:"interval"`
		} `json:"arms"`
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil || len(in.Arms) == 0 || in.Arms[0].Interval == nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := json.Marshal(in.Arms)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// verdictOf is the verdict in a report or a replay, as it is written.
func verdictOf(t *testing.T, text string) string {
	t.Helper()
	var in struct{ Verdict json.RawMessage }
	var b bytes.Buffer
	if err := json.Unmarshal([]byte(text), &in); err != nil || json.Compact(&b, in.Verdict) != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b.String()
}

// fetch reads what everybody may.
func fetch(t *testing.T, address string) string {
	t.Helper()
	c := replayCommand{Source: address}
	body, err := c.fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What an intervals' table rests on is said under it, and is nothing of most experiments.
func TestReplaySaysTheCondition(t *testing.T) {
	for _, x := range []decl.Experiment{{}, {Missing: decl.MissingDrop}} {
		var out bytes.Buffer
		if err := printReplayed(&out, replayedJSON{Condition: x.IntervalCondition()}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), intervalNote+"\nIntervals hold only if whether a decision is "+
			"reported does not go by its reward."); got != (x.Missing != "") {
			t.Errorf("the condition is said: %v\n%s", got, out.String())
		}
	}
}

// Metrics are printed below the arms, with what their intervals are.
func TestReplayPrintsMetrics(t *testing.T) {
	mean, less := 12.5, -2.25
	var out bytes.Buffer
	if err := printReplayed(&out, replayedJSON{Metrics: &serve.Measures{Control: "blue", Says: "What they are.",
		Each: []serve.Measure{{Name: "basket", Arms: []serve.MeasuredArm{
			{Arm: "red", Released: 40, Mean: &mean, Interval: &[2]float64{11, 14}, Difference: &less,
				DifferenceInterval: &[2]float64{-4, -0.5}},
			{Arm: "blue", Released: 20}}}}}}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"difference to blue", "basket red 40 12.5 [11, 14] -2.25 [-4, -0.5]",
		"basket blue 20 – – – – What they are. " + replayHolds} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
}

// Cells are printed with their verdicts, and another assignment with what it is worth.
func TestReplayPrintsCells(t *testing.T) {
	x, err := decl.Parse("shop.yaml", []byte("name: shop\narms: [red, blue]\npolicy: split\nbudget: {epsilon: 1}\n"+
		"unit: {of: visit}\nwindow: 1m\nby: {device: [phone]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := &serve.Replayed{Experiment: *x, Keep: -1, Answer: -1}
	r.Arms = []serve.ArmInfo{{Released: 4000, Releases: 4, Sum: 2000}, {Released: 4000, Releases: 4,
		Sum: 2000}}
	for c, name := range x.Cells() {
		r.Cells = append(r.Cells, serve.CellInfo{Name: name, Arms: []serve.ArmInfo{
			{Released: 2000, Releases: 2, Sum: 400 + 1200*float64(c)},
			{Released: 2000, Releases: 2, Sum: 1600 - 1200*float64(c)}}})
	}
	of, err := replayedOf(r)
	if err != nil {
		t.Fatal(err)
	}
	if of.Assigned, err = assignedOf(r, "phone: blue, else: red"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printReplayed(&out, of); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"device arm decisions private mean", "against phone", "phone blue 2000 0.8",
		"phone: blue is better than red", "other: red is better than blue",
		"other: red, phone: blue would have brought a decision 0.8, in", "less red for everybody:"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	for _, c := range [][2]string{{"phone", "must be cell: arm"}, {"phone: red, phone: blue", "twice"},
		{"phone: red", `no arm for "other"`}, {"phone: red, else: pink", "which is no arm"}, {"tv: red, else: red", `names "tv"`}} {
		if _, err := assignedOf(r, c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
	r.Experiment.By = decl.By{}
	if _, err := assignedOf(r, "phone: red"); err == nil || !strings.Contains(err.Error(), "does not declare by") {
		t.Errorf("%v", err)
	}
}

const liveContextsYAML = `
name: front
contextual:
  context: {device: {values: [phone, desktop]}}
  action: {topic: {values: [news, sport]}}
  cross: [{of: [device, topic]}]
  actions: 2
  rules: [{name: product, play: first, clip: 2, budget: {rho: 0.1}}]
policy: {policy: adac-oful, greed: 1, lambda: 30}
budget: {rho: 1}
horizon: 1e5
unit: {of: visit}
window: 1s
floor: 0.5
public: true
`

// The transcript of an experiment with contexts is played again while it runs and when it has
// stopped: no arm is kept then, since there are none.
func TestReplayContexts(t *testing.T) {
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"))
	const x = "/v1/experiments/front"
	s.call(201, "POST", "/v1/experiments", liveContextsYAML)
	s.call(200, "POST", x+"/start", "")
	s.call(200, "POST", x+"/rank", `{"event": "e", "context": {"device": "phone"}, "actions": `+
		`[{"id": "a", "features": {"topic": "news"}}, {"id": "b", "features": {"topic": "sport"}}]}`)
	address := s.url + x + "/transcript"
	for _, stopped := range []bool{false, true} {
		says := "not yet"
		if stopped {
			s.call(200, "POST", x+"/stop", "")
			says = "by the operator, and the first action is given from then on"
		}
		var r replayedJSON
		for until := time.Now().Add(time.Minute); ; { // its last line may be on its way
			r = replayedJSON{}
			code, out, errs := sotto(t, "", "replay", address, "--json")
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
				t.Fatalf("%d %s %s %v", code, out, errs, err)
			}
			if (r.End != nil) == stopped || time.Now().After(until) {
				break
			}
		}
		if (r.End != nil) != stopped || r.Kept != nil || r.Contexts == nil || r.Contexts.Dim != 9 ||
			len(r.Contexts.Rules) != 1 {
			t.Errorf("stopped %t: %+v", stopped, r)
		}
		code, out, errs := sotto(t, "", "replay", address)
		for _, want := range []string{says, "adac-oful, vectors of 9 components", "product", replayHolds} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("%d, %q is not in\n%s%s", code, want, out, errs)
			}
		}
	}
}
