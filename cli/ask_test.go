package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const shopLive = `
name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c"}}]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 24h
`

// shopServe is a running service with an experiment, and the environment that commands ask it by.
func shopServe(t *testing.T) *served {
	t.Helper()
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"))
	s.call(201, "POST", "/v1/experiments", shopLive)
	s.call(200, "POST", "/v1/experiments/shop/start", "")
	t.Setenv("SOTTO_SERVER", s.url)
	t.Setenv("SOTTO_KEY", s.key)
	return s
}

// tryCommand runs one, and wants an exit code and nothing of the canary.
func tryCommand(t *testing.T, code int, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), args, streams{in: strings.NewReader(stdin), out: &out,
		err: &errs}); got != code {
		t.Errorf("%q: exit code %d, want %d: %s", args, got, code, errs.String())
	}
	for _, text := range []string{out.String(), errs.String()} {
		if where := spilled([]byte(text), nil); where != "" {
			t.Errorf("%q: a reward is in what it says: %s", args, where)
		}
	}
	return out.String(), errs.String()
}

// sotto decide and sotto reward, as a shell has them.
func TestDecideReward(t *testing.T) {
	s := shopServe(t)
	line := regexp.MustCompile(`^(red|blue)\t([-\w]{58})\n$`)
	out, _ := tryCommand(t, exitOK, "", "decide", "shop", "--unit", "visitor 7")
	m := line.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%q", out)
	}
	if again, _ := tryCommand(t, exitOK, "visitor 7\n", "decide", "shop", "--unit", "-"); again != out {
		t.Errorf("by standard input it is %q, was %q", again, out)
	}
	var d struct {
		Decision, Arm, Reason string
		Value                 any
		Propensity            float64
		Expires               string `json:"expires_at"`
	}
	out, _ = tryCommand(t, exitOK, "", "decide", "shop", "--unit", "visitor 7", "--json")
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Decision != m[2] || d.Arm != m[1] ||
		d.Reason != "split" || d.Value == nil || d.Propensity == 0 || d.Expires == "" {
		t.Errorf("%s, %v", out, err)
	}
	s.call(201, "POST", "/v1/experiments", strings.Replace(shopLive, "shop", "some", 1)+
		"only: {country: [NL], plan: [pro]}\n")
	s.call(200, "POST", "/v1/experiments/some/start", "")
	for country, counts := range map[string]bool{"NL": true, "DE": false} {
		out, _ := tryCommand(t, exitOK, "", "decide", "some", "--unit", country, "--context",
			"plan=pro", "--context", "note=a;b=c",
			"--context", "country="+country)
		if line.MatchString(out) != counts {
			t.Errorf("%s: %q", country, out)
		}
	}
	for _, x := range []struct {
		stdin, want string
		args        []string
	}{
		{"", "accepted\n", []string{"shop", m[2], fmt.Sprint(canary)}},
		{"", "accepted\n", []string{"shop", m[2], "-7312894561"}},
		{fmt.Sprintln(canary), "accepted\n", []string{"shop", m[2], "-"}},
		{"", "{\n  \"status\": \"accepted\"\n}\n", []string{"--json", "shop", m[2], "1"}},
	} {
		if out, _ := tryCommand(t, exitOK, x.stdin, append([]string{"reward"}, x.args...)...); out != x.want {
			t.Errorf("%q: %q", x.args, out)
		}
	}
	const usual = "the reward must be a finite number"
	for _, x := range []struct {
		stdin, want string
		args        []string
	}{
		{"", "decision is not one of this experiment", []string{"shop", "forged", fmt.Sprint(canary)}},
		{"", "no such experiment", []string{"none", m[2], fmt.Sprint(canary)}},
		{"", usual, []string{"shop", m[2], "0.7312894561x"}},
		{"", usual, []string{"shop", m[2], "7312894561e999"}},
		{"", "reward must be a finite number", []string{"shop", m[2], "NaN"}},
		{"", "reward must be a finite number", []string{"shop", m[2], "-Inf"}},
		{"0.7312894561 0.7312894561", usual, []string{"shop", m[2], "-"}},
		{"", "there are 1 arguments", []string{"shop", m[2]}},
		{"", "there are 3 arguments", []string{"shop", m[2], "0.7312894561", "--json"}},
		{"", "--wait is -1s, must not be negative", []string{"--wait=-1s", "shop", m[2], "1"}},
		{"", "--server and SOTTO_KEY: the request is wrong: base URL",
			[]string{"--server", "shop", "shop", m[2],
				"1"}},
		{"", "--key-file: ", []string{"--key-file", "none", "shop", m[2], "1"}},
	} {
		if _, got := tryCommand(t, exitUsage, x.stdin,
			append([]string{"reward"}, x.args...)...); !strings.Contains(
			got, x.want) {
			t.Errorf("%q: %s", x.args, got)
		}
	}
	file := filepath.Join(t.TempDir(), "shop.key")
	for key, code := range map[string]int{s.key: exitOK, "sotto_wrong": exitUsage} {
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs := tryCommand(t, code, "", "decide", "shop", "--unit", "x", "--key-file",
			file); strings.Contains(
			errs, key) {
			t.Error(errs)
		}
	}
	s.call(200, "POST", "/v1/experiments/shop/stop", `{"arm": "blue"}`)
	if out, _ := tryCommand(t, exitOK, "", "decide", "shop", "--unit", "new"); out != "blue\t\n" {
		t.Errorf("%q", out)
	}
	t.Setenv("SOTTO_KEY", "")
	if _, errs := tryCommand(t, exitUsage, "", "decide", "shop"); !strings.Contains(errs,
		"the key is missing") {
		t.Error(errs)
	}
	t.Setenv("SOTTO_KEY", s.key)
	s.stop()
	if _, errs := tryCommand(t, exitFailed, "", "reward", "--wait", "150ms", "shop", m[2],
		fmt.Sprint(canary)); !strings.Contains(errs, "not available") {
		t.Error(errs)
	}
}

// A decision may begin with a hyphen, even with that of a flag.
func TestDecisionsBeginLikeFlags(t *testing.T) {
	var got []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Decision string
			Reward   float64
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		got = append(got, in.Decision)
		fmt.Fprintf(w, `{"status": "%v"}`, in.Reward)
	}))
	defer h.Close()
	t.Setenv("SOTTO_SERVER", h.URL)
	t.Setenv("SOTTO_KEY", "key")
	for _, begin := range []string{"-h", "-x", "--json", "--", "-", "--help", "_-", "-1"} {
		token := begin + strings.Repeat("a", 58-len(begin))
		if out, _ := tryCommand(t, exitOK, "", "reward", "shop", token, "-1"); out != "-1\n" ||
			got[len(got)-1] != token {
			t.Errorf("%s: %q of %q", token, out, got)
		}
		if out, _ := tryCommand(t, exitOK, "", "reward", "shop", "--", token, "-1"); out != "-1\n" {
			t.Errorf("after --: %s: %q", token, out)
		}
	}
}

// Lines of JSON, in more than one batch; what is wrong is said by its line, and without its value.
func TestRewardLines(t *testing.T) {
	s := shopServe(t)
	tokens := make([]string, 7)
	for i := range tokens {
		d := s.call(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit": "%d"}`, i))
		tokens[i] = d["decision"].(string)
	}
	var all strings.Builder
	if out, errs := tryCommand(t, exitUsage, "", "reward", "--id", "a", "shop", "-"); !strings.Contains(errs, `--id is "a", must be left out where reports are lines of JSON`) {
		t.Error(out, errs)
	}
	for i := range 1203 { // each many times: it counts once
		fmt.Fprintf(&all, "{\"decision\": %q, \"reward\": %v}\n\n", tokens[i%len(tokens)], canary)
	}
	if out, _ := tryCommand(t, exitOK, all.String(), "reward", "shop", "-"); out != "1203 accepted\n" {
		t.Error(out)
	}
	if out, _ := tryCommand(t, exitOK, "", "reward", "--id", "order 1", "shop", tokens[0], fmt.Sprint(canary)); out != "accepted\n" {
		t.Error(out)
	}
	if out, _ := tryCommand(t, exitOK, fmt.Sprintf(`{"decision": %q, "id": "order 2", "reward": 1}`, tokens[0]), "reward", "shop",
		"-"); out != "1 accepted\n" {
		t.Error(out)
	}
	good := fmt.Sprintf("{\"decision\": %q, \"reward\": %v}\n", tokens[0], canary)
	forged := `{"decision": "forged", "reward": 0.7312894561}` + "\n"
	out, errs := tryCommand(t, exitUsage, good+forged+good, "reward", "--json", "shop", "-")
	if out != `{"line":1,"status":"accepted"}`+"\n"+
		`{"line":2,"error":"the request is wrong: the decision is not one of this experiment"}`+"\n"+
		`{"line":3,"status":"accepted"}`+"\n" || !strings.Contains(errs, "1 were refused, first "+
		"that of line 2") {
		t.Errorf("%s%s", out, errs)
	}
	for bad, want := range map[string]string{
		`{"decision": "x", "reward": "0.7312894561"}`:                    "reward must be a number that a float64 can hold",
		`{"decision": "x", "reward": 7312894561e999}`:                    "reward must be a number that a float64 can hold",
		`{"decision": 0.7312894561, "reward": 1}`:                        "decision must be a string",
		`{"decision": "x", "id": 7, "reward": 1}`:                        "id must be a string",
		`{"decision": "x", "id": "a", "metrics": {"0.7312894561": "1"}}`: "metrics must be an object of numbers",
		`{"decision": "x", "metrics": {"a": 0.7312894561}}`:              "reward is missing",
		`{"decision": "x", "reward": NaN}`:                               "it must be {",
		`{"decision": "x", "reward": 0.7312894561.5}`:                    "it must be {",
		`{"decision": "x", "reward": 1, "0.7312894561": 1}`:              "it must be {",
		`{"decision": "x", "reward": 1} 0.7312894561`:                    "it must be {",
		`0.7312894561`:                  "it must be {",
		`{"reward": 0.7312894561}`:      "decision is missing",
		`{"decision": "x"}`:             "reward is missing",
		strings.Repeat(" ", 5000) + "x": "it is too long",
	} {
		out, errs := tryCommand(t, exitUsage, good+bad+"\n"+good, "reward", "--json", "shop", "-")
		if !strings.Contains(errs, "line 2: "+want) || out != `{"line":1,"status":"accepted"}`+"\n" {
			t.Errorf("%s: %s%s", bad, out, errs)
		}
	}
	if out, _ := tryCommand(t, exitOK, "", "reward", "shop", "-"); out != "" {
		t.Error(out)
	}
}

// The commands that docs/clients.md shows for shells do what it says.
func TestClientsPageShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash: the commands for shells are not run")
	}
	s := shopServe(t)
	page, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Shells\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir, ran := t.TempDir(), 0
	d := s.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "visitor 8"}`)
	if err := os.WriteFile(filepath.Join(dir, "rewards.jsonl"), fmt.Appendf(nil,
		"{\"decision\": %q, \"reward\": %v}\n", d["decision"], canary), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, block := range codeBlocks(section) {
		_, block, found := strings.Cut(block+"\n", "SOTTO_KEY=sotto_…\n") // which are set
		if !found {
			block = codeBlocks(section)[i]
		}
		c := exec.Command(bash, "-euo", "pipefail", "-c", block)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if want := []string{"accepted\n", "1 accepted\n"}[min(i, 1)]; err != nil || string(out) != want {
			t.Errorf("%s: %v: %s", block, err, out)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("%d blocks, want 2", ran)
	}
}
