package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
	files "github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

var updateRules = flag.Bool("update", false, "write the line numbers of rules.json anew")

// Rules, and what no transcript can show, name lines of files that have what they say.
func TestRulesAreThere(t *testing.T) {
	all, err := rulesOf()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Rules) == 0 || len(all.CannotShow) == 0 {
		t.Fatal("there are no rules")
	}
	for _, rules := range []map[string]CertifiedRule{all.Rules, all.CannotShow} {
		for name, rule := range rules {
			if rule.Statement == "" || len(rule.Test) == 0 {
				t.Errorf("%s has no statement or no test", name)
			}
			for _, p := range slices.Concat(rule.Proof, rule.Test) {
				checkPlace(t, name, p)
			}
		}
	}
}

// checkPlace holds that a line has what a rule names there, and with -update writes where it is.
func checkPlace(t *testing.T, rule string, p CertifiedPlace) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", p.File))
	if err != nil {
		t.Errorf("%s: %v", rule, err)
		return
	}
	lines := strings.Split(string(b), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, p.Name) })
	switch {
	case at < 0:
		t.Errorf("%s: %s has no %q", rule, p.File, p.Name)
	case at+1 != p.Line:
		t.Errorf("%s: %s has %q at line %d, and not at %d: go test ./live/serve -run RulesAreThere -update",
			rule, p.File, p.Name, at+1, p.Line)
		if *updateRules {
			old := fmt.Sprintf("\"line\": %d,\n\t\t\t\t\t\"name\": %q", p.Line, p.Name)
			text, _ := os.ReadFile("rules.json")
			_ = os.WriteFile("rules.json", []byte(strings.ReplaceAll(string(text), old,
				fmt.Sprintf("\"line\": %d,\n\t\t\t\t\t\"name\": %q", at+1, p.Name))), 0o644)
		}
	}
}

// A certified transcript is one with its certificate.
type certified struct {
	name string
	text []byte
	cert []byte
}

// certifiedOnes are transcripts of each kind that can be certified, and one that a service has just written, to
// units with more than one decision.
func certifiedOnes(t *testing.T) (out []certified) {
	t.Helper()
	files, err := filepath.Glob("testdata/certificates/*.jsonl")
	old, _ := filepath.Glob(pastDir + "/sqlite/*/transcript.jsonl")
	if err != nil || len(files) < 5 || len(old) < 7 {
		t.Fatalf("%d and %d transcripts, %v", len(files), len(old), err)
	}
	for _, f := range append(files, old...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, certified{name: f, text: text})
	}
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now})
	begin(t, e, strings.Replace(declare("dp-klucb"), "unit: {of: visit}", "unit: {of: visit, assignments: 2}\n"+
		"metrics: [{name: basket, budget: {epsilon: 0.3}}]", 1))
	visit(t, e, c, 4)
	out = append(out, certified{name: "fresh", text: []byte(published(t, e))})
	out = append(out, trials(t)...)
	for i := range out {
		cert, err := Prove(bytes.NewReader(out[i].text), catalog.Catalog{})
		if err == nil {
			out[i].cert, err = json.Marshal(cert)
		}
		if err != nil {
			t.Fatalf("%s: %v", out[i].name, err)
		}
	}
	return out
}

// trials are transcripts of sotto identify, of each private rule, and in ρ; of data that run out, at a cap, and of a
// simulation.
func trials(t *testing.T) (out []certified) {
	t.Helper()
	log := files.Log{Summary: files.Summary{Names: []string{"old", "new", "other"}}, Rewards: make([][]float64, 3)}
	r := rand.New(rand.NewPCG(5, 5))
	for a := range log.Rewards {
		for range 2000 {
			log.Rewards[a] = append(log.Rewards[a], float64(5*r.IntN(3+a)))
		}
	}
	add := func(name string, budget privacy.Budget, limit int) {
		rule, err := trial.NewRule(name, 3, 0.05, budget, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := trial.Run(t.Context(), trial.Config{Rule: rule, Log: log, Hi: 20, Cap: limit, Transcript: &text}); err != nil &&
			!errors.Is(err, trial.ErrUnfinished) {
			t.Fatal(err)
		}
		out = append(out, certified{name: "trial of " + name, text: text.Bytes()})
	}
	for _, e := range catalog.IdentifyPolicies() {
		if e.Private && e.Seeks() == catalog.GoalConfidence {
			add(e.Name, privacy.Pure{Epsilon: 0.7}, 0)
		}
	}
	add(catalog.DefaultRule, privacy.ZCDP{Rho: 0.3}, 0)
	add("dp-race", privacy.ZCDP{Rho: 0.1}, 100)
	in, err := bandit.BernoulliInstance(0.9, 0.9, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := trial.NewRule(catalog.DefaultRule, 3, 0.05, privacy.Pure{Epsilon: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{100, 100_000} {
		var text bytes.Buffer
		if _, err := (trial.Simulation{Rule: rule, Source: bandit.Fixed(in), Runs: 1, Seed: 3, Hi: 1, Cap: limit}).Play(t.Context(), 0,
			&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, certified{name: "simulated trial", text: text.Bytes()})
	}
	return out
}

// A paper is a certificate and a transcript, and what the checker says of them.
type paper struct {
	name       string
	cert, text []byte
	accepted   bool
	said       string
}

// judging runs contrib/check.py on files, as its main does for one pair, in one process: a hundred of them take
// as long to start as to check.
const judging = `
import contextlib, io, json, sys
sys.path.insert(0, "../../contrib")
import check
for i in range(int(sys.argv[2])):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = check.main(["check.py", "%s/%d.json" % (sys.argv[1], i), "%s/%d.jsonl" % (sys.argv[1], i)])
    print(json.dumps([code, out.getvalue()]))
`

// judge has the checker judge them all. It must say one line of each.
func judge(t *testing.T, all []paper) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	// it is short enough to be read; and go test looks whether a file that was read has changed
	program, err := os.ReadFile("../../contrib/check.py")
	if n := bytes.Count(program, []byte("\n")); err != nil || n > 500 {
		t.Fatalf("the checker has %d lines, must have at most 500: %v", n, err)
	}
	dir := t.TempDir()
	for i, j := range all {
		for file, content := range map[string][]byte{fmt.Sprint(i, ".json"): j.cert, fmt.Sprint(i, ".jsonl"): j.text} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", judging, dir, fmt.Sprint(len(all)))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(all) {
		t.Fatalf("%d verdicts of %d", len(lines), len(all))
	}
	for i, line := range lines {
		var code int
		if err := json.Unmarshal(line, &[]any{&code, &all[i].said}); err != nil {
			t.Fatal(err)
		}
		if all[i].accepted = code == 0; strings.Count(all[i].said, "\n") != 1 || code != 0 && code != 1 ||
			all[i].accepted != strings.HasPrefix(all[i].said, "holds: ") {
			t.Errorf("%s: %d: %q", all[i].name, code, all[i].said)
		}
	}
}

// The checker accepts the certificate of each kind, and refuses each with the transcript of another.
func TestCertificates(t *testing.T) {
	all := certifiedOnes(t)
	var pairs []paper
	for i, x := range all {
		pairs = append(pairs, paper{name: x.name, cert: x.cert, text: x.text},
			paper{name: x.name + " with another's transcript", cert: x.cert, text: all[(i+1)%len(all)].text})
	}
	judge(t, pairs)
	for i, p := range pairs {
		if p.accepted != (i%2 == 0) {
			t.Errorf("%s: %s", p.name, p.said)
		}
	}
}

// What cannot be certified is refused by name.
func TestNoCertificate(t *testing.T) {
	for file, want := range map[string]string{"": "there is nothing", "{}\n": "line 1"} {
		if _, err := Prove(strings.NewReader(file), catalog.Catalog{}); !errors.Is(err, ErrTranscript) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
	for _, c := range []struct {
		rule   string
		budget privacy.Budget
		want   string
	}{{"dp-sed", privacy.Approx{Epsilon: 1, Delta: 1e-6}, "the budget is"}, {"ttucb", privacy.None{}, "the budget is"}} {
		rule, err := trial.NewRule(c.rule, 2, 0.05, c.budget, nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		log := files.Log{Summary: files.Summary{Names: []string{"a", "b"}}, Rewards: [][]float64{{1, 0, 1}, {0, 0, 1}}}
		if _, err := trial.Run(t.Context(), trial.Config{Rule: rule, Log: log, Transcript: &text}); !errors.Is(err, trial.ErrUnfinished) {
			t.Fatal(err)
		}
		if _, err := Prove(&text, catalog.Catalog{}); !errors.Is(err, ErrNoCertificate) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s at %v: %v", c.rule, c.budget, err)
		}
	}
	if _, err := Prove(strings.NewReader(`{"trial":2,"rule":"dp-se"}`+"\n"), catalog.Catalog{}); !errors.Is(err, trial.ErrTranscript) {
		t.Error(err)
	}
}

// A forgery is a certificate and the lines of a transcript, to be changed.
type forgery struct {
	cert  map[string]any
	lines []map[string]any
	r     *rand.Rand
}

func decodeAny(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (x certified) forge(t *testing.T, r *rand.Rand) *forgery {
	f := &forgery{cert: decodeAny(t, x.cert), r: r}
	for line := range bytes.Lines(x.text) {
		f.lines = append(f.lines, decodeAny(t, chain.Object(line)))
	}
	return f
}

// inOrder writes an object as transcripts do: its time first, and the fields in their order where readers go by it.
func inOrder(line map[string]any) ([]byte, error) {
	rest := maps.Clone(line)
	delete(rest, "at")
	if c := rest["change"]; c != nil {
		rest["change"] = fieldsOf(c, &Change{})
	}
	whole := any(rest)
	for field, of := range map[string]any{"live": &header{}, "end": &ending{}, "cohort": &cohortLine{}} {
		if rest[field] != nil {
			whole = fieldsOf(rest, of)
		}
	}
	object, err := json.Marshal(whole)
	if line["at"] == nil { // of a trial
		return object, err
	}
	return fmt.Appendf(nil, `{"at":%q,%s`, line["at"], object[1:]), err
}

// fieldsOf writes x in the order of a type's fields, if it has no others.
func fieldsOf(x, of any) any {
	object, err := json.Marshal(x)
	if err != nil || json.Unmarshal(object, of) != nil {
		return x
	}
	again, err := json.Marshal(of)
	if err != nil || len(again) != len(object) {
		return x
	}
	return json.RawMessage(again)
}

// written is the transcript with its chain made anew.
func (f *forgery) written(t *testing.T) (text []byte, tip string) {
	t.Helper()
	for _, line := range f.lines {
		object, err := inOrder(line)
		if err != nil {
			t.Fatal(err)
		}
		var linked []byte
		linked, tip = chain.Link(tip, object)
		text = append(text, linked...)
	}
	return text, tip
}

// at follows names and indices.
func at(x any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := x.(map[string]any)
			x = m[p]
		case int:
			l, _ := x.([]any)
			if p >= len(l) {
				return nil
			}
			x = l[p]
		}
	}
	return x
}

func object(x any, path ...any) map[string]any { m, _ := at(x, path...).(map[string]any); return m }
func list(x any, path ...any) []any            { l, _ := at(x, path...).([]any); return l }

func float(x any) float64 {
	n, _ := x.(json.Number)
	v, _ := n.Float64()
	return v
}

func times(x any, by float64) json.Number {
	return json.Number(strings.TrimSuffix(fmt.Sprintf("%.17g", float(x)*by), ".0"))
}

func whole(x any, more int) json.Number { return json.Number(fmt.Sprint(int(float(x)) + more)) }

// pick is one of those that pass.
func pick[T any](r *rand.Rand, all []T, pass func(T) bool) (out T, ok bool) {
	for _, i := range r.Perm(len(all)) {
		if pass(all[i]) {
			return all[i], true
		}
	}
	return out, false
}

// slots are the nodes of the certificate's slots.
func (f *forgery) slots() []any { return list(f.cert, "total", "of", 0, "of", 0, "of") }

// released is a line with a release, after the first of them if others come before.
func (f *forgery) released(pass func(line map[string]any) bool) (map[string]any, bool) {
	return pick(f.r, f.lines, func(l map[string]any) bool {
		return (l["release"] != nil || l["slots"] != nil) && pass(l)
	})
}

// ofTrial says whether it is of a trial.
func (f *forgery) ofTrial() bool { return f.lines[0]["trial"] != nil }

// asking is a batch of plays of a trial, and the line of what it released.
func (f *forgery) asking() (plays, slots map[string]any, at int) {
	if !f.ofTrial() {
		return nil, nil, 0
	}
	line, ok := f.released(anyLine)
	if !ok {
		return nil, nil, 0
	}
	at = slices.IndexFunc(f.lines, func(l map[string]any) bool { return fmt.Sprint(l) == fmt.Sprint(line) })
	return f.lines[at-1], line, at
}

// releases are those of a line: of the reward, of metrics, of rules.
func releasesIn(line map[string]any) []map[string]any {
	out := []map[string]any{object(line, "release")}
	if line["slots"] != nil { // of a trial
		out[0] = line
	}
	for _, m := range list(line, "metrics") {
		out = append(out, object(m))
	}
	for _, r := range list(line, "rules") {
		out = append(out, object(r, "release"))
	}
	return out
}

func noiseField(m map[string]any) string {
	for _, name := range []string{"scale", "sigma", "num"} {
		if m[name] != nil {
			return name
		}
	}
	return ""
}

// lower has all prices of the tree, and the conversion, a share less.
func (f *forgery) lower(by float64) {
	group := object(f.cert, "total")
	filter := object(group, "of", 0)
	nodes := []map[string]any{group, filter, object(filter, "of", 0)}
	for _, s := range f.slots() {
		nodes = append(nodes, object(s))
	}
	for _, n := range nodes {
		n["price"] = times(n["price"], by)
	}
	for _, c := range list(f.cert, "conversions") {
		for _, name := range []string{"rho", "epsilon"} {
			if c := object(c); c[name] != nil {
				c[name] = times(c[name], by)
			}
		}
	}
}

func anyLine(map[string]any) bool { return true }

// asked is a line about a session in which clients were asked for noise.
func (f *forgery) asked() (map[string]any, bool) {
	return pick(f.r, f.lines, func(l map[string]any) bool { return at(l, "cohort", "asked") != nil })
}

// protected is a line with a release of contexts that are protected.
func (f *forgery) protected() (map[string]any, bool) {
	return f.released(func(l map[string]any) bool {
		return l["n"] != nil && at(f.lines[0], "declaration", "contextual", "protect") == "joint"
	})
}

// mutants are changes after which the certificate does not follow from the transcript. Each says whether it could be
// made. The first are of the certificate alone, the others of the transcript, whose chain is made anew.
var mutants = []struct {
	name       string
	transcript bool
	make       func(f *forgery) bool
}{
	{"certificate: scale halved", false, func(f *forgery) bool {
		r, ok := pick(f.r, list(f.cert, "releases"), func(any) bool { return true })
		if m := object(r, "mechanism"); ok {
			m[noiseField(m)] = whole(times(m[noiseField(m)], 0.5), 0)
			if noiseField(m) != "num" {
				m[noiseField(m)] = times(m[noiseField(m)], 0.5)
			}
		}
		return ok
	}},
	{"certificate: a price lowered", false, func(f *forgery) bool {
		r, ok := pick(f.r, list(f.cert, "releases"), func(r any) bool { return float(object(r)["price"]) > 0 })
		if ok {
			object(r)["price"] = times(object(r)["price"], 1-1/float64(2+f.r.IntN(1e6)))
		}
		return ok
	}},
	{"certificate: a total lowered", false, func(f *forgery) bool {
		f.lower(1 - 1/float64(2+f.r.IntN(1e6)))
		return len(f.slots()) > 0
	}},
	{"certificate: a release left out", false, func(f *forgery) bool {
		all := list(f.cert, "releases")
		if len(all) < 2 {
			return false
		}
		gone := f.r.IntN(len(all))
		f.cert["releases"] = slices.Delete(slices.Clone(all), gone, gone+1)
		for _, s := range f.slots() {
			var kept []any
			for _, r := range list(s, "releases") {
				switch i := int(float(r)); {
				case i < gone:
					kept = append(kept, r)
				case i > gone:
					kept = append(kept, whole(r, -1))
				}
			}
			object(s)["releases"] = kept
		}
		return true
	}},
	{"certificate: sequential called parallel", false, func(f *forgery) bool {
		s, ok := pick(f.r, f.slots(), func(s any) bool { return len(list(s, "releases")) > 1 })
		if !ok {
			return false
		}
		node, all := object(s), list(s, "releases")
		other := map[string]any{"rule": "adaptive", "slot": node["slot"], "price": node["price"], "releases": all[1:]}
		if f.r.IntN(2) == 0 {
			other["slot"] = whole(node["slot"], 1<<20)
		}
		node["releases"] = all[:1]
		parallel := object(f.cert, "total", "of", 0, "of", 0)
		parallel["of"] = append(list(parallel, "of"), other)
		return true
	}},
	{"certificate: a range narrowed", false, func(f *forgery) bool {
		s, ok := pick(f.r, list(f.cert, "sums"), func(any) bool { return true })
		between := list(s, "range")
		between[1] = times(between[1], 0.5)
		return ok
	}},
	{"certificate: a conversion with another delta", false, func(f *forgery) bool {
		c, ok := pick(f.r, list(f.cert, "conversions"), func(any) bool { return true })
		if !ok {
			return false
		}
		name := "rho"
		if c := object(c); c["delta"] != nil {
			name = []string{"delta", "epsilon", "alpha"}[f.r.IntN(3)]
		}
		object(c)[name] = times(object(c)[name], []float64{0.1, 0.5, 0.999}[f.r.IntN(3)])
		return true
	}},
	{"certificate: an arm renamed", false, func(f *forgery) bool {
		r, ok := pick(f.r, list(f.cert, "releases"), func(r any) bool { return object(r)["arm"] != nil })
		if ok {
			was := object(r)["arm"]
			other, _ := pick(f.r, list(f.cert, "arms"), func(a any) bool { return a != was })
			object(r)["arm"] = other
		}
		return ok
	}},
	{"certificate: a metric's price left out", false, func(f *forgery) bool {
		if len(list(f.cert, "sums")) < 2 {
			return false
		}
		for _, r := range list(f.cert, "releases") {
			if object(r)["sum"] != "reward" {
				object(r)["price"] = json.Number("0")
			}
		}
		f.lower(0.75)
		return true
	}},
	{"certificate: the budget raised", false, func(f *forgery) bool {
		by := 1 + float64(1+f.r.IntN(100))/100
		filter := object(f.cert, "total", "of", 0)
		f.cert["budget"], filter["cap"] = times(f.cert["budget"], by), times(filter["cap"], by)
		return true
	}},
	{"certificate: fewer decisions a unit", false, func(f *forgery) bool {
		n := object(f.cert, "unit")
		if float(n["assignments"]) < 2 {
			return false
		}
		f.lower(1 / float64(2+f.r.IntN(2)))
		n["assignments"], object(f.cert, "total")["times"] = json.Number("1"), json.Number("1")
		return true
	}},
	{"certificate: an assumption left out", false, func(f *forgery) bool {
		all := object(f.cert, []string{"cannot_show", "rules"}[f.r.IntN(2)])
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		delete(all, names[f.r.IntN(len(names))])
		return true
	}},
	{"certificate: another rule", false, func(f *forgery) bool {
		r, ok := pick(f.r, list(f.cert, "releases"), func(r any) bool { return true })
		if ok {
			object(r)["rules"] = []any{[]string{"prefix", "parallel", "laplace-remote", "exact"}[f.r.IntN(4)]}
		}
		return ok
	}},
	{"certificate: a sensitivity halved", false, func(f *forgery) bool {
		r, ok := pick(f.r, list(f.cert, "releases"), func(r any) bool { return true })
		if ok {
			object(r)["sensitivity_squared"] = times(object(r)["sensitivity_squared"], 0.25)
			object(r)["price"] = times(object(r)["price"], 0.5)
		}
		return ok
	}},
	{"transcript: scale halved", true, func(f *forgery) bool {
		line, ok := f.released(anyLine)
		if !ok {
			return false
		}
		release, _ := pick(f.r, releasesIn(line), func(map[string]any) bool { return true })
		m, tail := object(release, "mechanism"), object(release, "tail")
		if name := noiseField(m); name == "num" {
			m[name] = whole(times(m[name], 0.5), 0)
		} else {
			m[name] = times(m[name], 0.5)
		}
		for _, name := range []string{"h", "sigma"} {
			if tail != nil {
				tail[name] = times(tail[name], 0.5)
			}
		}
		return true
	}},
	{"transcript: a slot twice", true, func(f *forgery) bool {
		seen, all := []any{}, []map[string]any{}
		for _, line := range f.lines {
			if r := releasesIn(line)[0]; r["slots"] != nil || r["slot"] != nil && object(r, "mechanism")["horizon"] == nil {
				all = append(all, line)
			}
		}
		if len(all) < 2 {
			return false
		}
		to := 1 + f.r.IntN(len(all)-1)
		for _, line := range all[:to] {
			r := releasesIn(line)[0]
			seen = append(seen, list(r, "slots")...)
			if r["slot"] != nil {
				seen = append(seen, r["slot"])
			}
		}
		twice := seen[f.r.IntN(len(seen))]
		for _, r := range releasesIn(all[to]) {
			if r["slot"] != nil {
				r["slot"] = twice
			} else {
				list(r, "slots")[0] = twice
			}
		}
		return true
	}},
	{"transcript: a sum left out of a line", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool {
			return len(releasesIn(l)) > 1 || len(list(releasesIn(l)[0], "slots")) > 1
		})
		if !ok {
			return false
		}
		for _, name := range []string{"metrics", "rules"} {
			if l := list(line, name); len(l) > 0 && f.r.IntN(2) == 0 {
				if line[name] = l[1:]; len(l) == 1 {
					delete(line, name)
				}
				return true
			}
		}
		if len(list(releasesIn(line)[0], "slots")) < 2 {
			return false
		}
		for _, r := range releasesIn(line) {
			for _, name := range []string{"slots", "n", "sum"} {
				r[name] = list(r, name)[1:]
			}
		}
		return true
	}},
	{"transcript: a line written twice", true, func(f *forgery) bool {
		line, ok := f.released(anyLine)
		i := slices.IndexFunc(f.lines, func(l map[string]any) bool { return at(l, "release") != nil && &l == &line })
		for j := range f.lines {
			if fmt.Sprint(f.lines[j]) == fmt.Sprint(line) {
				i = j
			}
		}
		if ok {
			f.lines = slices.Insert(f.lines, i+1, line)
		}
		return ok
	}},
	{"transcript: the budget raised", true, func(f *forgery) bool {
		if f.ofTrial() { // there it is said once
			return false
		}
		b, by := object(f.lines[0], "declaration", "budget"), 1+float64(1+f.r.IntN(100))/100
		if f.r.IntN(2) == 0 {
			b = object(f.lines[0], "budget")
		}
		for name := range b {
			b[name] = times(b[name], by)
		}
		return true
	}},
	{"transcript: a metric that nobody declared", true, func(f *forgery) bool {
		d := object(f.lines[0], "declaration")
		if c := object(d, "contextual"); len(list(c, "rules")) > 0 {
			c["rules"] = list(c, "rules")[1:]
			return true
		}
		if len(list(d, "metrics")) == 0 {
			return false
		}
		if d["metrics"] = list(d, "metrics")[1:]; len(list(d, "metrics")) == 0 {
			delete(d, "metrics")
		}
		return true
	}},
	{"transcript: a metric of other decisions", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool { return len(releasesIn(l)) > 1 })
		if ok {
			r := releasesIn(line)
			last := r[len(r)-1]
			name := []string{"slots", "n"}[f.r.IntN(2)]
			list(last, name)[0] = whole(list(last, name)[0], 1)
		}
		return ok
	}},
	{"transcript: decisions of another number", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool { return l["n"] != nil && l["slots"] == nil })
		if ok && f.r.IntN(2) == 0 {
			line["n"] = whole(line["n"], 1)
			return true
		}
		line, ok = f.released(func(l map[string]any) bool {
			return (l["plays"] != nil || l["slots"] != nil) && at(f.lines[0], "declaration", "policy", "policy") != "split"
		})
		if ok {
			for _, r := range releasesIn(line) {
				list(r, "n")[0] = whole(list(r, "n")[0], -1)
			}
		}
		return ok
	}},
	{"transcript: more decisions a unit", true, func(f *forgery) bool {
		if f.ofTrial() {
			return false
		}
		object(f.lines[0], "declaration", "unit")["assignments"] = json.Number(fmt.Sprint(3 + f.r.IntN(9)))
		return true
	}},
	{"transcript: another mechanism", true, func(f *forgery) bool {
		line, ok := f.released(anyLine)
		if ok {
			m := object(releasesIn(line)[0], "mechanism")
			m["mechanism"] = []string{"exact", "blt", "unknown", "sparse"}[f.r.IntN(4)]
		}
		return ok
	}},
	{"transcript: a tree of fewer levels", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool { return at(l, "release", "mechanism", "horizon") != nil })
		if !ok {
			return false
		}
		_ = line
		for _, l := range f.lines {
			if m := object(l, "release", "mechanism"); m["horizon"] != nil {
				m["horizon"] = json.Number(fmt.Sprint(20 + f.r.IntN(3)))
			}
		}
		return true
	}},
	{"transcript: two lines change places", true, func(f *forgery) bool {
		var of []int
		for i, l := range f.lines {
			if l["release"] != nil && l["n"] == nil {
				of = append(of, i)
			}
		}
		if len(of) < 2 {
			return false
		}
		k := f.r.IntN(len(of) - 1)
		a, b := f.lines[of[k]], f.lines[of[k+1]]
		// of one arm, since two of others may come in either order: a restart explains which numbers they have
		if list(a, "release", "slots")[0] == list(b, "release", "slots")[0] || at(a, "plays", 0, "arm") == nil ||
			at(a, "plays", 0, "arm") != at(b, "plays", 0, "arm") {
			return false
		}
		a["at"], b["at"] = b["at"], a["at"]
		f.lines[of[k]], f.lines[of[k+1]] = b, a
		return true
	}},
	{"transcript: a change of the budget", true, func(f *forgery) bool {
		if f.ofTrial() {
			return false
		}
		f.lines = slices.Insert(f.lines, 1, map[string]any{"at": f.lines[0]["at"],
			"change": map[string]any{[]string{"budget", "range", "unit", "metrics"}[f.r.IntN(4)]: map[string]any{}}})
		return true
	}},
	{"transcript: an arm released after it was removed", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool { return l["plays"] != nil })
		if ok {
			i := slices.IndexFunc(f.lines, func(l map[string]any) bool { return fmt.Sprint(l) == fmt.Sprint(line) })
			f.lines = slices.Insert(f.lines, i, map[string]any{"at": line["at"], "off": at(line, "plays", 0, "arm")})
		}
		return ok
	}},
	{"transcript: too few asked for noise", true, func(f *forgery) bool {
		line, ok := f.asked()
		if note := object(line, "cohort"); ok { // one of ten, or of three, would be enough
			note["asked"] = json.Number(fmt.Sprint(1 + f.r.IntN(2)))
		}
		return ok
	}},
	{"transcript: noise of more than were asked", true, func(f *forgery) bool {
		_, ok := f.asked()
		for _, line := range f.lines {
			if m := object(line, "release", "mechanism"); m["users"] != nil && ok {
				more := json.Number(fmt.Sprint(int(float(m["invited"])) + f.r.IntN(1e6)))
				m["users"], m["invited"], m["modulus"] = more, more, json.Number("4611686018427387")
			}
		}
		return ok
	}},
	{"transcript: more asked than there are", true, func(f *forgery) bool {
		line, ok := f.asked()
		if note := object(line, "cohort"); ok {
			note["asked"] = whole(note["end"], 1+f.r.IntN(3))
		}
		return ok
	}},
	{"transcript: no session for the noise", true, func(f *forgery) bool {
		_, ok := f.asked()
		f.lines = slices.DeleteFunc(f.lines, func(l map[string]any) bool { return l["cohort"] != nil })
		return ok
	}},
	{"transcript: a sum for which nobody was asked", true, func(f *forgery) bool {
		line, ok := f.released(func(l map[string]any) bool { return at(l, "release", "mechanism", "trust") == "secagg" })
		if _, asked := f.asked(); !ok || !asked {
			return false
		}
		sums := list(line, "release", "sum")
		i := f.r.IntN(len(sums))
		sums[i] = times(sums[i], 1+float64(1+f.r.IntN(9))/(1<<20))
		f.lines = slices.DeleteFunc(f.lines, func(l map[string]any) bool {
			return l["cohort"] != nil && int(float(at(l, "cohort", "arm"))) == i
		})
		return true
	}},
	{"transcript: exact products of protected contexts", true, func(f *forgery) bool {
		line, ok := f.protected()
		if ok {
			line["gram"] = []any{json.Number("4"), json.Number("3"), json.Number("2")}
		}
		return ok
	}},
	{"transcript: rules about protected contexts", true, func(f *forgery) bool {
		_, ok := f.protected()
		if !ok {
			return false
		}
		c := object(f.lines[0], "declaration", "contextual")
		c["rules"] = []any{map[string]any{"name": "all", "clip": json.Number("10"), "play": "uniform",
			"budget": map[string]any{"rho": json.Number("1")}}}
		for _, l := range f.lines {
			if l["n"] == nil {
				continue
			}
			l["rules"] = []any{map[string]any{"weights": json.Number("3"), "squares": json.Number("9"),
				"release": map[string]any{"slots": []any{at(l, "release", "slot")}, "n": []any{l["n"]},
					"mechanism": map[string]any{"mechanism": "gaussian", "sigma": json.Number("1")},
					"sum":       []any{json.Number("3.25")},
					"tail":      map[string]any{"sigma": json.Number("1.00001"), "h": json.Number("0"), "log": json.Number("0")}}}}
		}
		return true
	}},
	{"transcript: an end that says more", true, func(f *forgery) bool {
		end := f.lines[len(f.lines)-1]
		if end["end"] == nil {
			return false
		}
		end[[]string{"end", "leader", "policy", "keep"}[f.r.IntN(4)]] = "red: 17 of 17 clicked"
		return true
	}},
	{"transcript: a session that says more", true, func(f *forgery) bool {
		line, ok := f.asked()
		if ok {
			object(line, "cohort")["sum"] = json.Number("17")
		}
		return ok
	}},
	{"transcript: two arms of one name", true, func(f *forgery) bool {
		arms := list(f.lines[0], "declaration", "arms")
		if len(arms) < 2 {
			return false
		}
		object(arms[0])["name"] = object(arms[1])["name"]
		return true
	}},
	{"trial: two arms of one name", true, func(f *forgery) bool {
		arms := list(f.lines[0], "arms")
		if len(arms) > 0 {
			arms[0] = arms[1]
		}
		return len(arms) > 0
	}},
	{"trial: the budget lowered", true, func(f *forgery) bool {
		_, released := f.released(anyLine)
		if !f.ofTrial() || !released {
			return false
		}
		b, by := object(f.lines[0], "budget"), 1-float64(1+f.r.IntN(90))/100
		for name := range b {
			b[name] = times(b[name], by)
		}
		return true
	}},
	{"trial: a batch left out", true, func(f *forgery) bool {
		_, line, at := f.asking()
		// without its last batch it is the transcript of another trial, which ended before: "complete" is believed
		if line == nil || !slices.ContainsFunc(f.lines[at+1:], func(l map[string]any) bool { return l["slots"] != nil }) {
			return false
		}
		f.lines = slices.Delete(f.lines, at-1, at+1)
		return true
	}},
	{"trial: a play of another number", true, func(f *forgery) bool {
		plays, _, _ := f.asking()
		if plays != nil {
			p := object(plays, "plays", f.r.IntN(len(list(plays, "plays"))))
			p["rounds"] = whole(p["rounds"], 1-2*f.r.IntN(2))
		}
		return plays != nil
	}},
	{"trial: a play of another arm", true, func(f *forgery) bool {
		plays, _, _ := f.asking()
		if plays != nil {
			p := object(plays, "plays", f.r.IntN(len(list(plays, "plays"))))
			p["arm"] = json.Number(fmt.Sprint((int(float(p["arm"])) + 1 + f.r.IntN(2)) % 3))
		}
		return plays != nil
	}},
	{"trial: a release that nobody asked for", true, func(f *forgery) bool {
		plays, _, _ := f.asking()
		if plays != nil {
			p, _ := pick(f.r, list(plays, "plays"), func(p any) bool { return object(p)["release"] == true })
			object(p)["release"] = false
		}
		return plays != nil
	}},
	{"trial: less noise from some release on", true, func(f *forgery) bool {
		_, line, at := f.asking()
		if line == nil || at < 3 {
			return false
		}
		m, tail := object(line, "mechanism"), object(line, "tail")
		for _, x := range []map[string]any{m, tail} {
			for _, name := range []string{"scale", "sigma", "h"} {
				if float(x[name]) > 0 {
					x[name] = times(x[name], 1+float64(f.r.IntN(9)-9)/100)
				}
			}
		}
		return true
	}},
	{"trial: fewer plays than were released", true, func(f *forgery) bool {
		end := f.lines[len(f.lines)-1]
		if _, line, _ := f.asking(); line == nil || end["total"] == nil {
			return false
		}
		a := f.r.IntN(3)
		if a == 0 { // or the sum is wrong
			end["tau"] = whole(end["tau"], 1)
			return true
		}
		was := int(float(list(end, "total")[a]))
		list(end, "total")[a], end["tau"] = json.Number("0"), whole(end["tau"], -was)
		return was > 0
	}},
	{"trial: no end", true, func(f *forgery) bool {
		if f.lines = f.lines[:len(f.lines)-1]; f.ofTrial() && f.r.IntN(2) == 0 && len(f.lines) > 3 {
			f.lines = f.lines[:1+2*f.r.IntN(len(f.lines)/2)]
		}
		return f.ofTrial()
	}},
	{"trial: a line that says more", true, func(f *forgery) bool {
		line := f.lines[f.r.IntN(len(f.lines))]
		if p := object(line, "plays", 0); p != nil && f.r.IntN(2) == 0 {
			line = p
		}
		line[[]string{"at", "rewards", "release_of", "n_exact"}[f.r.IntN(4)]] = "17 of 17"
		return f.ofTrial()
	}},
}

// No mutant is accepted, whether the certificate is left as it was but for the transcript's hash, or made anew
// by a prover that believes all that it reads. SOTTO_FULL makes 50 of each, which are more than a thousand.
func TestMutantsAreRejected(t *testing.T) {
	all, of := certifiedOnes(t), 2
	if testkit.Full() {
		of = 50
	}
	first := slices.IndexFunc(all, func(x certified) bool { return ofTrial(x.text) })
	var made []paper
	for g, group := range [][]certified{all[:first], all[first:]} {
		kinds := 0
		for i, m := range mutants {
			r, count := rand.New(rand.NewPCG(uint64(i), uint64(7+g))), 0
			for try := 0; count < of && try < 1000*of && (count > 0 || try < 500); try++ {
				x := group[r.IntN(len(group))]
				f := x.forge(t, r)
				if !m.make(f) {
					continue
				}
				text := x.text
				if m.transcript {
					text = f.conceal(t)
				}
				cert, err := json.Marshal(f.cert)
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, paper{name: m.name + ", of " + x.name, cert: cert, text: text})
				count++
			}
			switch count {
			case of:
				kinds++
			case 0: // it is of the other group
			default:
				t.Errorf("%s: only %d of %d could be made", m.name, count, of)
			}
		}
		if what, least := []string{"live experiments", "trials"}[g], []int{38, 25}[g]; kinds < least {
			t.Errorf("mutants of %s are of %d kinds, must be of %d", what, kinds, least)
		} else {
			t.Logf("%s: %d kinds of %d mutants", what, kinds, of)
		}
	}
	judge(t, made)
	for _, m := range made {
		if m.accepted {
			t.Errorf("%s: %s", m.name, m.said)
		}
	}
	t.Logf("%d mutants of %d kinds", len(made), len(mutants))
}

// conceal is the changed transcript. Its certificate is made anew by a prover that believes what it reads, or is
// the old one with the hash of this transcript.
func (f *forgery) conceal(t *testing.T) []byte {
	text, tip := f.written(t)
	told := &Replayed{Lines: len(f.lines), Tip: tip}
	if cert, err := certify(text, catalog.Catalog{}, told); err == nil && f.r.IntN(2) == 0 {
		b, err := json.Marshal(cert)
		if err != nil {
			t.Fatal(err)
		}
		f.cert = decodeAny(t, b)
		return text
	}
	f.cert["transcript"] = map[string]any{"experiment": at(f.cert, "transcript", "experiment"),
		"lines": told.Lines, "tip": tip}
	return text
}

// Whatever the two files have in them, the checker does not accept, and says one line. The seeds are cut, changed
// and mixed files.
func TestCheckerTakesJunk(t *testing.T) {
	var pairs []paper
	all, of := certifiedOnes(t), 40
	if testkit.Full() {
		of = 2000
	}
	r := rand.New(rand.NewPCG(3, 9))
	junk := []string{"", "\n", "{}", "[]", "null\n", "{}\n", `{"live":1}` + "\n", strings.Repeat("[", 100000),
		`{"certificate":1e999}`, `{"certificate":NaN}`, "\xff\xfe", strings.Repeat("9", 10000), `{"a":1,"a":2}`}
	for i := range of {
		x := all[r.IntN(len(all))]
		cert, text := bytes.Clone(x.cert), bytes.Clone(x.text)
		spoil := func(b []byte) []byte {
			switch k := r.IntN(4); {
			case k == 0:
				return []byte(junk[r.IntN(len(junk))])
			case k == 1:
				return b[:r.IntN(len(b))]
			default:
				for range 1 + r.IntN(4) {
					at := r.IntN(len(b))
					b[at] ^= byte(1 + r.IntN(255))
				}
				return b
			}
		}
		if i%2 == 0 { // a rule's statement, and where it is proved, may be spoilt and still be there
			cert = spoil(cert[:bytes.Index(cert, []byte(`"rules":{`))])
		} else {
			text = spoil(text)
		}
		pairs = append(pairs, paper{name: x.name, cert: cert, text: text})
	}
	judge(t, pairs)
	for _, p := range pairs {
		if p.accepted {
			t.Errorf("%s is accepted: %s", p.name, p.said)
		}
	}
}
