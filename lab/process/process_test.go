package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/lab/process"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// TestMain lets this program be the program of somebody else, by its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2]))
	}
	os.Exit(m.Run())
}

const helloLine = `{"sotto":1,"name":"mine","mechanism":"laplace"}`

// child speaks the format as it should not be spoken, by a name; "commit" speaks it as it should.
func child(what string) int {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<22)
	turn := "" // the end of an object that answers
	next := func() string {
		if !in.Scan() {
			os.Exit(0)
		}
		if _, n, ok := strings.Cut(in.Text(), `,"turn":`); ok {
			turn = `,"turn":` + n
		}
		return in.Text()
	}
	say := func(text string) {
		if turn != "" && len(text) > len("{}") && strings.HasSuffix(text, "}") {
			text = strings.TrimSuffix(text, "}") + turn
		}
		os.Stdout.WriteString(text + "\n")
	}
	next()
	if what == "hello" {
		say(os.Args[3])
		next()
	}
	if what == "answer" { // both arms 40 times, and then the second
		say(os.Args[3])
		for next(); ; next() {
			say(`{"play":[[0,40],[1,40]]}`)
			next()
			say(`{"answer":1}`)
		}
	}
	say(helloLine)
	for {
		next()
		switch what {
		case "commit": // every arm 50 times, then the best
			say(`{"play":[[0,50],[1,50]]}`)
			var n0, n1 int
			var s0, s1 float64
			text := next()
			if _, err := fmt.Sscanf(text, `{"release":[[0,%d,%g],[1,%d,%g]],"tail":[0,1,0],"turn":`, &n0, &s0, &n1, &s1); err != nil {
				fmt.Fprintln(os.Stderr, text, err)
				return 1
			}
			say(`{"rest":` + strconv.Itoa(map[bool]int{true: 0, false: 1}[s0/float64(n0) >= s1/float64(n1)]) + `}`)
		case "robin": // every arm once, for as long as it is asked
			for {
				say(os.Args[3])
				next()
			}
		case "dies":
			fmt.Fprintln(os.Stderr, "first line")
			fmt.Fprintln(os.Stderr, "ValueError: no such arm")
			return 3
		case "quits":
			return 0
		case "sleeps":
			time.Sleep(time.Hour)
		case "hangs": // and leaves a process behind that keeps its output open
			cmd := exec.Command(os.Args[0], "child", "sleeper")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				return 1
			}
			fmt.Fprintln(os.Stderr, "child", cmd.Process.Pid)
			time.Sleep(time.Hour)
		case "twice":
			say(`{"play":[[0,1]]` + turn + "\n" + `{"play":[[1,1]]}`)
		case "early": // the answer is in the pipe before the question, but not when it is looked for
			say(`{"play":[[0,1]]}`)
			time.Sleep(50 * time.Millisecond)
			say(`{"play":[[1,1]]}`)
		case "none": // of a turn
			turn = ""
			say(`{"play":[[0,1]]}`)
		case "wordy":
			say(`{"` + strings.Repeat("a", 900_000) + `":1}`)
		case "long":
			for range 40 {
				os.Stdout.WriteString(strings.Repeat("x", 1<<16))
			}
		default:
			say(what)
		}
	}
}

func program(args ...string) catalog.Program {
	return catalog.Program{Args: append([]string{os.Args[0], "child"}, args...), Seconds: 30}
}

func start(t testing.TB, h *process.Host, p catalog.Program) catalog.Entry {
	t.Helper()
	e, err := h.Start(p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func host(t testing.TB) *process.Host {
	h := process.NewHost(context.Background(), nil)
	t.Cleanup(h.Close)
	return h
}

// one plays one run of two arms at ε = 1.
func one(p policy.Policy, horizon int) (sim.Result, error) {
	var out sim.Result
	stream := noise.NewFast(3, 4)
	err := sim.Run(context.Background(), sim.Config{Policy: p, Horizon: horizon, Checkpoints: []int{horizon},
		Instance: bandit.Instance{Arms: []bandit.Law{testkit.Must(bandit.NewBernoulli(0.7)),
			testkit.Must(bandit.NewBernoulli(0.5))}},
		Rewards: []noise.Fast{noise.NewFast(1, 1), noise.NewFast(1, 2)}, Noise: &stream}, &out)
	return out, err
}

func build(t testing.TB, e catalog.Entry, horizon int) policy.Policy {
	t.Helper()
	p, err := e.New(catalog.Setting{Arms: 2, Horizon: horizon, Budget: privacy.Pure{Epsilon: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// native is what the program commit plays.
type native struct{ batch policy.Batch }

func (native) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1} }

func (n *native) Next(r privacy.Released) *policy.Batch {
	n.batch.Plays = []policy.Play{{Arm: 0, Rounds: 50, Release: true}, {Arm: 1, Rounds: 50, Release: true}}
	if r.Len() > 0 {
		best := 0
		if r.Mean(1) > r.Mean(0) {
			best = 1
		}
		n.batch.Plays = []policy.Play{{Arm: best, Rounds: policy.Forever}}
	}
	return &n.batch
}

// A program plays, earns and costs what the same policy does in this process, run after run in one
// process.
func TestAsOneOfOurs(t *testing.T) {
	e := start(t, host(t), program("commit"))
	want, err := one(&native{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := one(build(t, e, 1000), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if got.Regret[0] != want.Regret[0] || got.Releases != want.Releases || got.Plays[0] != want.Plays[0] {
			t.Errorf("regret %v, %d releases, plays %v; must be %v, %d, %v", got.Regret, got.Releases, got.Plays,
				want.Regret, want.Releases, want.Plays)
		}
		if got.Loss.String() != want.Loss.String() {
			t.Errorf("the ledger says %v, must say %v", got.Loss, want.Loss)
		}
	}
}

// A program that looks for the best arm stops by itself with an answer, and pays what it has released.
func TestIdentify(t *testing.T) {
	h := host(t)
	const says = `{"sotto":1,"name":"mine","mechanism":"gaussian","bandit":"identify"}`
	e := start(t, h, program("answer", says))
	p, err := e.NewIdentify(catalog.IdentifySetting{Arms: 2, Risk: 0.1, Budget: privacy.ZCDP{Rho: 0.5}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream := noise.NewFast(3, 4)
	var out sim.IdentifyResult
	if err := sim.Identify(context.Background(), sim.IdentifyConfig{Policy: p, Cap: 1000,
		Instance: bandit.Instance{Arms: []bandit.Law{testkit.Must(bandit.NewBernoulli(0.7)),
			testkit.Must(bandit.NewBernoulli(0.5))}},
		Rewards: []noise.Fast{noise.NewFast(1, 1), noise.NewFast(1, 2)}, Noise: &stream}, &out); err != nil {
		t.Fatal(err)
	}
	if out.Answer != 1 || out.Tau != 80 || math.Abs(out.Loss.ZCDP()-0.5) > 1e-9 {
		t.Errorf("the answer is %d after %d plays, at ρ = %v: must be 1, 80, 0.5", out.Answer, out.Tau, out.Loss.ZCDP())
	}
	if _, err := e.NewIdentify(catalog.IdentifySetting{Arms: 2, Risk: 0.1, Budget: privacy.Pure{Epsilon: 1}}, nil); err == nil {
		t.Error("normal noise meets ε")
	}
	known := catalog.Catalog{}.Starting(h)
	if _, err := known.Start(catalog.BanditArms, program("answer", says)); err == nil ||
		!strings.Contains(err.Error(), "is for best-arm identification, must be for bandits of K arms") {
		t.Errorf("the error is %v", err)
	}
}

// What a program does wrong is said, by its name, and nothing is left of it.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ what, says string }{
		{"dies", `it has ended with exit status 3 in place of an answer: "ValueError: no such arm"`},
		{"quits", "it has ended in place of an answer"},
		{"twice", `it has written "{\"play\":[[1,1]],\"turn\":1}" unasked`},
		{"early", `turn is "1", must be 2, that of the line which it answers`},
		{"none", `turn is "", must be 1, that of the line`},
		{"wordy", `unknown field "aaa`},
		{"long", "it has written a line of more than 1048576 bytes"},
		{"hello there", `its line is "hello there", must be {"play":[[ARM,ROUNDS],…],"turn":TURN}`},
		{"", "its line is \"\", must be"},
		{`{"play":[[0,NaN]]}`, "invalid character 'N'"},
		{`{"play":[[0,1.5]]}`, "play 0: rounds is 1.5, must be a whole number from 1 to 1000"},
		{`{"play":[[0,0]]}`, "rounds is 0, must be"},
		{`{"play":[[0,-1]]}`, "rounds is -1, must be"},
		{`{"play":[[0,1001]]}`, "rounds is 1001, must be a whole number from 1 to 1000"},
		{`{"play":[[0,99999999999999999999]]}`, "rounds is 99999999999999999999, must be"},
		{`{"play":[[2,1]]}`, "arm is 2, must be a whole number from 0 to 1"},
		{`{"play":[[0,1],[0,1]]}`, "play has arm 0 twice"},
		{`{"play":[[0,1],[1,1],[0,1]]}`, "play has more than 2 items"},
		{`{"play":[]}`, "play is empty"},
		{`{"play":[[0]]}`, "in whole numbers"},
		{`{"play":{"0":1}}`, "in whole numbers"},
		{`{"play":[["0",1]]}`, "arm is \"0\", must be a whole number"},
		{`{"play":[[0,1]],"rest":1}`, "one of them"},
		{`{"play":[[0,1]],"mechanism":"none"}`, `unknown field "mechanism"`},
		{`{"play":[[0,1]]} {}`, "there is something after the object"},
		{`{"rest":7}`, "rest is 7, must be an arm from 0 to 1"},
		{`{"answer":0}`, "answer is there, must be missing where regret counts"},
		{`{}`, "one of them"},
	} {
		h := process.NewHost(context.Background(), nil)
		e := start(t, h, program(c.what))
		_, err := one(build(t, e, 1000), 1000)
		if err == nil || !errors.Is(err, process.ErrProgram) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, must be a program's with %q", c.what, err, c.says)
		} else if n := len(err.Error()); n > 1000 {
			t.Errorf("the error has %d bytes", n)
		}
		h.Close()
	}
}

// What a program says of itself is checked before anything is played.
func TestHellos(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{`hello`, "its line is \"hello\", must be {\"sotto\":1"},
		{`{"sotto":2,"name":"x","mechanism":"laplace"}`, `sotto is "2", must be 1`},
		{`{"sotto":1,"name":"X","mechanism":"laplace"}`, `name is "X", must be of a-z`},
		{`{"sotto":1,"name":"x"}`, `mechanism is "", must be laplace`},
		{`{"sotto":1,"name":"x","mechanism":"mine"}`, `mechanism is "mine", must be laplace`},
		{`{"sotto":1,"name":"x","mechanism":"laplace","scale":0}`, "scale is 0, must be above 0"},
		{`{"sotto":1,"name":"x","mechanism":"none","scale":2}`, "scale is 2, must be missing"},
		{`{"sotto":1,"name":"x","mechanism":"laplace","bandit":"linear"}`, `bandit is "linear", must be`},
		{`{"sotto":1,"name":"x","mechanism":"laplace","private":true}`, `unknown field "private"`},
	} {
		h := process.NewHost(context.Background(), nil)
		_, err := h.Start(program("hello", c.line))
		if err == nil || !errors.Is(err, process.ErrProgram) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, must be a program's with %q", c.line, err, c.says)
		}
		h.Close()
	}
	for _, c := range []struct {
		of   catalog.Program
		says string
	}{
		{catalog.Program{}, "exec is empty"},
		{catalog.Program{Args: []string{"x"}, Seconds: -1}, "seconds is -1"},
		{catalog.Program{Args: []string{"/nowhere/at-all"}}, "no such file"},
	} {
		if _, err := host(t).Start(c.of); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: the error is %v, must have %q", c.of, err, c.says)
		}
	}
}

// A program that states half of the noise is refused, and where it is let in the ledger charges it
// for what it states.
func TestLessNoise(t *testing.T) {
	of := program("hello", `{"sotto":1,"name":"mine","mechanism":"laplace","scale":0.5}`)
	h := host(t)
	setting := catalog.Setting{Arms: 2, Horizon: 10, Budget: privacy.Pure{Epsilon: 1}}
	if _, err := start(t, h, of).New(setting, nil); err == nil ||
		!strings.Contains(err.Error(), "scale is 0.5, must be at least 1") {
		t.Errorf("the error is %v", err)
	}
	much := program("hello", `{"sotto":1,"name":"much","mechanism":"laplace","scale":1e6}`)
	tiny := catalog.Setting{Arms: 2, Horizon: 10, Budget: privacy.Pure{Epsilon: 1e-305}}
	if _, err := start(t, h, much).New(tiny, nil); err == nil || !errors.Is(err, process.ErrProgram) ||
		!strings.Contains(err.Error(), "scale is 1e+06, must be of finite noise: at epsilon=1e-305 it is of scale +Inf") {
		t.Errorf("the error is %v", err)
	}
	of.Any = true
	p, err := start(t, h, of).New(setting, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Mechanism().Loss().Pure(); math.Abs(got-2) > 1e-9 {
		t.Errorf("ε is %v, must be 2", got)
	}
}

// A slow program is ended with all that it has started, whoever waits: the clock, or a context.
func TestSlow(t *testing.T) {
	of := program("hangs")
	of.Seconds = 0.3
	var errs strings.Builder
	h := process.NewHost(context.Background(), &errs)
	_, err := one(build(t, start(t, h, of), 100), 100)
	if err == nil || !strings.Contains(err.Error(), "it has not answered within 0.3 s") {
		t.Errorf("the error is %v", err)
	}
	h.Close()
	ended(t, errs.String())

	ctx, stop := context.WithCancel(context.Background())
	errs.Reset()
	h = process.NewHost(ctx, &errs)
	e := start(t, h, program("sleeps"))
	time.AfterFunc(200*time.Millisecond, stop)
	if _, err = one(build(t, e, 100), 100); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, must be the context's", err)
	}
	h.Close()
	h.Close()
	if _, err := h.Start(program("robin")); !errors.Is(err, context.Canceled) {
		t.Errorf("a host that is closed starts a program: %v", err)
	}
}

// ended checks that the process that standard error names is no more.
func ended(t *testing.T, errs string) {
	t.Helper()
	_, pid, ok := strings.Cut(strings.TrimSpace(errs), "child ")
	if !ok {
		return // it was ended before it could start another
	}
	for range 100 {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") { // its new parent will collect it
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s goes on", pid)
}

// The Python module's own tests, and its example from end to end.
func TestPython(t *testing.T) {
	python := testkit.Program(t, "python3")
	cmd := exec.Command(python, "-m", "unittest", "-q", "test_sotto")
	cmd.Dir = filepath.FromSlash("../../contrib/python")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	h := process.NewHost(context.Background(), os.Stderr)
	defer h.Close()
	e := start(t, h, catalog.Program{Args: []string{python, "ucb.py"}, Dir: cmd.Dir})
	first, err := one(build(t, e, 10_000), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	// A golden run: logarithms and sums in Python's floating point are those of any machine with IEEE 754.
	if first.Plays[1] != 1023 || first.Releases != 22 {
		t.Errorf("ucb.py plays the second arm %d times in %d releases, must play it 1023 times in 22",
			first.Plays[1], first.Releases)
	}
}

// The example is played as it stands, in any order of its runs, and read back without the program.
func TestExample(t *testing.T) {
	testkit.Program(t, "python3")
	h := process.NewHost(context.Background(), os.Stderr)
	defer h.Close()
	var first []float64
	for workers := 1; workers <= 2; workers++ {
		spec, err := experiment.Reader{Catalog: catalog.Catalog{}.Starting(h)}.Read("../../examples/python.yaml")
		if err != nil {
			t.Fatal(err)
		}
		spec.Horizon, spec.Runs = 2000, 4
		dir := t.TempDir()
		r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: dir, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Cells[0]; c.Policy != "py-ucb" || c.Loss != "epsilon=1" {
			t.Errorf("the first cell is %s, which costs %s: must be py-ucb, at epsilon=1", c.Policy, c.Loss)
		}
		if workers == 1 {
			first = r.Cells[0].FinalRegret
		}
		for i, x := range r.Cells[0].FinalRegret {
			if x != first[i] {
				t.Errorf("run %d has regret %v with 2 workers, and %v with 1", i, x, first[i])
			}
		}
		back, err := experiment.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if page, err := back.Report(); err != nil || !strings.Contains(page.Spec, "../contrib/python/ucb.py") {
			t.Errorf("the report says %q (%v), must name the program", page.Spec, err)
		}
	}
	spec, err := experiment.Reader{}.Read("../../examples/python.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Resolve(); !errors.Is(err, catalog.ErrPrograms) {
		t.Errorf("a program that starts no others says %v", err)
	}
}

// A mechanism is asked for as many outputs as it says.
func TestMechanism(t *testing.T) {
	python := testkit.Program(t, "python3")
	h := host(t)
	m, err := h.Mechanism(catalog.Program{Args: []string{python, "laplace.py"}, Dir: "../../contrib/python"})
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "py-laplace" || m.Claim != (privacy.Pure{Epsilon: 1}) {
		t.Errorf("it is %s and claims %v", m.Name, m.Claim)
	}
	a, err := m.Outputs(nil, []float64{0, 1}, 3, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Outputs(nil, []float64{0, 1}, 3, 7)
	if err != nil || len(a) != 3 || a[0] != b[0] || a[0] == a[1] {
		t.Errorf("outputs are %v and %v (%v), must be three, the same by a seed", a, b, err)
	}
	for _, c := range []struct{ hello, says string }{
		{helloLine, `unknown field "mechanism"`},
		{`{"sotto":1,"name":"x"}`, "claim is missing"},
		{`{"sotto":1,"name":"x","claim":{"epsilon":-1}}`, "claim: "},
		{`{"sotto":1,"name":"x","claim":"none"}`, `claim is "none"`},
	} {
		if _, err := h.Mechanism(program("hello", c.hello)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, must have %q", c.hello, err, c.says)
		}
	}
	m, err = h.Mechanism(program("hello", `{"sotto":1,"name":"x","claim":{"epsilon":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	// it answers with a hello
	if _, err = m.Outputs(nil, []float64{0}, 1, 0); err == nil || !errors.Is(err, process.ErrProgram) {
		t.Errorf("the error is %v", err)
	}
}

// An environment is played by the law of what it has paid.
func TestEnvironment(t *testing.T) {
	python := testkit.Program(t, "python3")
	h := host(t)
	known := catalog.Catalog{}.Starting(h)
	const text = "name: x\nhorizon: 1000\nruns: 3\npolicies: [ucb]\ninstances: [{name: mine, exec: [%s]}]\n"
	parse := func(args string) (*experiment.Resolved, error) {
		spec, err := experiment.Reader{Catalog: known}.Parse("../../contrib/python/x.yaml", fmt.Appendf(nil, text, args))
		if err != nil {
			return nil, err
		}
		return spec.Resolve()
	}
	plan, err := parse(python + ", arms.py")
	if err != nil {
		t.Fatal(err)
	}
	again, err := parse(python + ", arms.py")
	if err != nil || plan.Hash != again.Hash {
		t.Errorf("the same program gives another experiment (%v)", err)
	}
	r, err := plan.Run(context.Background(), experiment.Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	// The second arm is worse by a tenth of 0.6; the means of 10 000 are within 0.02 of theirs, by six
	// standard deviations.
	if m := r.Cells[0].Regret.Mean; !(m[len(m)-1] > 5 && m[len(m)-1] < 60) {
		t.Errorf("regret is %v", m[len(m)-1])
	}
	for _, c := range []struct{ hello, says string }{
		{helloLine, `unknown field "mechanism"`},
		{`{"sotto":1,"name":"x","arms":1}`, "arms is 1, must be from 2 to 1000"},
		{`{"sotto":1,"name":"x","arms":2}`, `must be {"rewards":[NUMBER,…]`},
	} {
		if _, err := h.Rewards(program("hello", c.hello)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, must have %q", c.hello, err, c.says)
		}
	}
	if _, err := (catalog.Catalog{}).Rewards(program("hello")); !errors.Is(err, catalog.ErrPrograms) {
		t.Errorf("the error is %v", err)
	}
}

// BenchmarkPython is how many plays a second go through the pipe, a hundred in a line.
func BenchmarkPython(b *testing.B) {
	python := testkit.Program(b, "python3")
	h := host(b)
	for _, arms := range []int{2, 10, 100} {
		b.Run(strconv.Itoa(arms), func(b *testing.B) {
			e := start(b, h, catalog.Program{Args: []string{python, "robin.py"}, Dir: "testdata"})
			in := bandit.Instance{}
			var rewards []noise.Fast
			for a := range arms {
				in.Arms = append(in.Arms, testkit.Must(bandit.NewBernoulli(0.5)))
				rewards = append(rewards, noise.NewFast(1, uint64(a)))
			}
			horizon := max(b.N, 2) * arms
			p, err := e.New(catalog.Setting{Arms: arms, Horizon: horizon, Budget: privacy.Pure{Epsilon: 1}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			stream := noise.NewFast(3, 4)
			var out sim.Result
			b.ResetTimer()
			if err := sim.Run(context.Background(), sim.Config{Policy: p, Horizon: horizon, Instance: in,
				Rewards: rewards, Noise: &stream}, &out); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(horizon)/b.Elapsed().Seconds(), "plays/s")
		})
	}
}
