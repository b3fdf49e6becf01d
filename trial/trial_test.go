package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

func rule(t testing.TB, name string, arms int, budget privacy.Budget, params catalog.Params) Rule {
	t.Helper()
	return ruleAt(t, 0.05, name, arms, budget, params)
}

func ruleAt(t testing.TB, risk float64, name string, arms int, budget privacy.Budget,
	params catalog.Params) Rule {
	t.Helper()
	r, err := NewRule(name, arms, risk, budget, params)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// doses is a log of Bernoulli rewards with rows for each arm.
func doses(rows int, means ...float64) logged.Log {
	r := rand.New(rand.NewPCG(3, 4))
	log := logged.Log{Rewards: make([][]float64, len(means))}
	for a, m := range means {
		log.Names = append(log.Names, string(rune('a'+a)))
		for range rows {
			x := 0.0
			if r.Float64() < m {
				x = 1
			}
			log.Rewards[a] = append(log.Rewards[a], x)
		}
	}
	return log
}

func everyRule(t *testing.T, arms int) []Rule {
	t.Helper()
	var out []Rule
	for _, e := range catalog.IdentifyPolicies() {
		if e.Seeks() != catalog.GoalConfidence {
			if _, err := NewRule(e.Name, arms, 0.05, privacy.Pure{Epsilon: 1}, nil); err == nil {
				t.Errorf("%s is taken, and its goal is %s", e.Name, e.Seeks())
			}
			continue
		}
		var budget privacy.Budget = privacy.None{}
		if e.Private {
			budget = privacy.Pure{Epsilon: 1}
		}
		out = append(out, rule(t, e.Name, arms, budget, nil))
	}
	return out
}

// Every rule finds an arm that is far better, on real data and exact noise; the ledger has what
// was promised, and the transcript, replayed on no data, says the same of every play and of the
// answer. The risk is 0.05, but the gap is so large that a wrong answer needs noise of
// probability below 1e-9.
func TestRunAndReplay(t *testing.T) {
	log := doses(100_000, 0.1, 0.95, 0.2)
	for _, r := range everyRule(t, 3) {
		t.Run(r.Name(), func(t *testing.T) {
			var transcript bytes.Buffer
			out, err := Run(context.Background(), Config{Rule: r, Log: log, Transcript: &transcript})
			if err != nil {
				t.Fatal(err)
			}
			if out.Answer != 1 || total(out.Plays) != out.Tau || out.Batches < 1 {
				t.Errorf("answer %d after %v", out.Answer, out.Plays)
			}
			if r.Private() != out.Loss.Within(privacy.Pure{Epsilon: 1}) || r.Private() == out.Loss.Infinite() {
				t.Errorf("it cost %v", out.Loss)
			}
			for a, m := range out.Means {
				want := []float64{0.1, 0.95, 0.2}[a]
				if math.Abs(m.Value-want) > 7*(m.Noise+0.5/math.Sqrt(float64(m.N))) ||
					m.N > out.Plays[a] || (m.Noise > 0) != r.Private() {
					t.Errorf("arm %d: %+v", a, m)
				}
			}
			again, err := Replay(bytes.NewReader(transcript.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if again.End != endAnswer || !slices.Equal(again.Names, log.Names) ||
				again.Rule.String() != r.String() || again.Simulated {
				t.Errorf("replayed %+v", again)
			}
			if out.Loss.Pure() != again.Loss.Pure() {
				t.Errorf("it cost %v, and %v when replayed", out.Loss, again.Loss)
			}
			out.Loss, again.Loss = privacy.Loss{}, privacy.Loss{}
			if !reflect.DeepEqual(out, again.Result) {
				t.Errorf("%+v\nreplayed\n%+v", out, again.Result)
			}
		})
	}
}

// A trial keeps a budget in any currency, and its transcript has it.
func TestTranscriptOfOtherBudgets(t *testing.T) {
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.1}, privacy.Approx{Epsilon: 1, Delta: 1e-6},
		privacy.Renyi{Alpha: 8, Epsilon: 1}, privacy.GDP{Mu: 0.5}} {
		var transcript bytes.Buffer
		r := rule(t, catalog.DefaultRule, 2, b, nil)
		out, err := Run(context.Background(), Config{Rule: r, Log: doses(10_000, 0.1, 0.95), Transcript: &transcript})
		if err != nil {
			t.Fatalf("%v: %v", b, err)
		}
		again, err := Replay(&transcript)
		if err != nil || out.Answer != 1 || again.Answer != 1 || again.Rule.String() != r.String() || !out.Loss.Within(b) {
			t.Errorf("%v: answer %d, replayed %d of %v, for %v: %v", b, out.Answer, again.Answer, again.Rule, out.Loss, err)
		}
	}
}

// Simulated transcripts replay too, capped ones included.
func TestSimulatedTranscript(t *testing.T) {
	in, _ := bandit.BernoulliInstance(0.9, 0.5, 0.5)
	tie, _ := bandit.BernoulliInstance(0.5, 0.5, 0.2)
	for _, r := range everyRule(t, 3) {
		for _, c := range []struct {
			in  bandit.Instance
			end string
		}{{in, endAnswer}, {tie, endCap}} {
			var transcript bytes.Buffer
			out, err := Simulation{Rule: r, Source: bandit.Fixed(c.in), Runs: 1, Cap: 20_000,
				Seed: 5}.Play(context.Background(), 0, &transcript)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Replay(&transcript)
			if err != nil {
				t.Fatalf("%s on %v: %v", r, c.in, err)
			}
			if again.End != c.end || !again.Simulated || again.Answer != out.Answer ||
				again.Tau != out.Tau || !slices.Equal(again.Plays, out.Plays) {
				t.Errorf("%s on %v: %+v, replayed %+v", r, c.in, out, again)
			}
			if (c.end == endCap) != math.IsNaN(out.Lower) {
				t.Errorf("%s on %v: lower bound %v", r, c.in, out.Lower)
			}
		}
	}
}

// Data that run out, and the cap: no answer, and what was spent. Both arms are alike, so that the
// rule stops with probability at most twice its risk.
func TestUnfinished(t *testing.T) {
	r := ruleAt(t, 1e-9, "dp-tt", 2, privacy.Pure{Epsilon: 1}, nil)
	for _, c := range []struct {
		name        string
		log         logged.Log
		cap         int
		want, spent string
		end         string
	}{
		{"at once", doses(10, 0.5, 0.5), 0, `the data of arm "a" ran out after 0 plays`,
			"nothing has been spent", endData},
		{"later", doses(100, 0.5, 0.5), 0, "ran out after", "ε = 1 has been spent", endData},
		{"cap", doses(100, 0.5, 0.5), 60, "the cap of 60 plays leaves no room for the next " +
			"batch, after 48 plays", "ε = 1 has been spent", endCap},
	} {
		t.Run(c.name, func(t *testing.T) {
			var transcript bytes.Buffer
			out, err := Run(context.Background(), Config{Rule: r, Log: c.log, Cap: c.cap,
				Transcript: &transcript})
			var unfinished *UnfinishedError
			if !errors.Is(err, ErrUnfinished) || !errors.As(err, &unfinished) || out.Answer != -1 ||
				out.Means != nil || out.Loss.Pure() != unfinished.Spent.Pure() {
				t.Fatalf("%+v, %v", out, err)
			}
			if s := err.Error(); !strings.Contains(s, c.want) || !strings.Contains(s, c.spent) ||
				!strings.Contains(s, "no answer is given") {
				t.Error(s)
			}
			again, err := Replay(&transcript)
			if err != nil || again.End != c.end || again.Answer != -1 ||
				!slices.Equal(again.Plays, unfinished.Plays) || again.Loss.Pure() != unfinished.Spent.Pure() {
				t.Errorf("replayed %+v, %v", again, err)
			}
		})
	}
	plain := rule(t, "se", 2, privacy.None{}, nil)
	if _, err := Run(context.Background(), Config{Rule: plain,
		Log: doses(3, 0.5, 0.5)}); err == nil || !strings.Contains(err.Error(), "no privacy was promised") {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var transcript bytes.Buffer
	_, err := Run(ctx, Config{Rule: rule(t, "dp-tt", 2, privacy.Pure{Epsilon: 1}, nil),
		Log: doses(50, 0.5, 0.5), Transcript: &transcript})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing has been spent") {
		t.Error(err)
	}
	if again, err := Replay(&transcript); err != nil || again.End != endInterrupted {
		t.Errorf("%+v, %v", again, err)
	}
}

// canceller stops a trial when something has been released.
type canceller struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (c *canceller) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("slots")) {
		c.stop()
	}
	return c.Buffer.Write(b)
}

func TestInterruptedAfterARelease(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	transcript := &canceller{stop: cancel}
	_, err := Run(ctx, Config{Rule: ruleAt(t, 1e-9, "dp-tt", 2, privacy.Pure{Epsilon: 1}, nil),
		Log: doses(1000, 0.5, 0.5), Transcript: transcript})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "after 48 plays") ||
		!strings.Contains(err.Error(), "ε = 1 has been spent") {
		t.Error(err)
	}
	if again, err := Replay(&transcript.Buffer); err != nil || again.End != endInterrupted ||
		again.Tau != 48 || again.Loss.Pure() < 0.99 {
		t.Errorf("%+v, %v", again, err)
	}
}

// A failing writer stops the trial: what cannot be put on record is not done.
func TestTranscriptThatCannotBeWritten(t *testing.T) {
	r := rule(t, "dp-tt", 2, privacy.Pure{Epsilon: 1}, nil)
	for n := range 4 { // the header, plays, a release, the end
		out, err := Run(context.Background(), Config{Rule: r, Log: doses(50_000, 0.9, 0.1),
			Transcript: &full{n}})
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%d writes: %v", n, err)
		}
		// From the release on, what could not be put on record is spent all the same.
		if said := strings.Contains(fmt.Sprint(err), "ε = 1 has been spent"); said != (n >= 2) ||
			out.Loss.Pure() > 0 != said || n > 0 && out.Answer != -1 {
			t.Errorf("%d writes: %v, %+v", n, err, out)
		}
		in, _ := bandit.BernoulliInstance(0.9, 0.1)
		if _, err := (Simulation{Rule: r, Source: bandit.Fixed(in),
			Runs: 1}).Play(context.Background(), 0, &full{n}); err == nil ||
			!strings.Contains(err.Error(), "disk full") {
			t.Errorf("simulated, %d writes: %v", n, err)
		}
	}
}

type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

// twin is an identifier whose noise is not what its budget promises.
type twin struct {
	identify.Identifier
	mechanism privacy.Mechanism
}

func (p twin) Mechanism() privacy.Mechanism { return p.mechanism }

// An answer from means without noise, or with half of it, is refused by the ledger before anything
// is out; and without a promise, the loss says what it is.
func TestTwinsOfTheNoise(t *testing.T) {
	log := doses(50_000, 0.9, 0.1)
	for _, m := range []privacy.Mechanism{privacy.Exact{}, privacy.Laplace{},
		privacy.Laplace{Scale: 0.5}, privacy.Tree{Scale: 1, Horizon: 1 << 20}} {
		private := rule(t, "dp-tt", 2, privacy.Pure{Epsilon: 1}, nil)
		p, err := private.policy(nil)
		if err != nil {
			t.Fatal(err)
		}
		var transcript bytes.Buffer
		if _, err := (Config{Rule: private, Log: log,
			Transcript: &transcript}).run(context.Background(), twin{p, m}); !errors.Is(err,
			privacy.ErrBudget) {
			t.Errorf("%v is not refused: %v", m, err)
		}
		if strings.Contains(transcript.String(), "slots") {
			t.Errorf("%v: something was released", m)
		}
	}
	open := rule(t, "se", 2, privacy.None{}, nil)
	p, _ := open.policy(nil)
	out, err := (Config{Rule: open, Log: log}).run(context.Background(), p)
	if err != nil || !out.Loss.Infinite() {
		t.Errorf("%+v, %v", out, err)
	}
}

// peeks stops and answers by the raw rewards.
type peeks struct {
	identify.Identifier
	log  logged.Log
	seen []int
	best int
}

func (p *peeks) Next(released privacy.Released) *policy.Batch {
	b := p.Identifier.Next(released)
	sums := make([]float64, len(p.seen))
	for a, n := range p.seen {
		for _, x := range p.log.Rewards[a][:n] {
			sums[a] += x
		}
	}
	if p.seen[0] > 0 && sums[1]-sums[0] > 10 {
		p.best = 1
		return nil
	}
	if b != nil {
		for _, play := range b.Plays {
			p.seen[play.Arm] += play.Rounds
		}
	}
	return b
}

func (p *peeks) Answer() int { return p.best }

// Stopping on raw sums is no function of the releases: the transcript does not replay. (The ledger
// cannot know it: that no policy reaches rewards is for the compiler, and the test of the imports.)
func TestTwinThatPeeks(t *testing.T) {
	log := doses(50_000, 0.4, 0.6)
	r := ruleAt(t, 1e-12, "dp-tt", 2, privacy.Pure{Epsilon: 0.1}, nil)
	p, err := r.policy(nil)
	if err != nil {
		t.Fatal(err)
	}
	var transcript bytes.Buffer
	if _, err := (Config{Rule: r, Log: log, Transcript: &transcript}).run(context.Background(),
		&peeks{p, log, make([]int, 2), -1}); err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(&transcript); !errors.Is(err, ErrTranscript) {
		t.Errorf("a rule that peeked replays: %v", err)
	}
}

// Any line that is changed, cut, doubled or missing is noticed, or changes nothing that the trial
// says.
func TestReplayRefuses(t *testing.T) {
	r := rule(t, "adap-tt", 3, privacy.Pure{Epsilon: 1}, nil)
	var transcript bytes.Buffer
	if _, err := Run(context.Background(), Config{Rule: r, Log: doses(100_000, 0.1, 0.95, 0.2),
		Transcript: &transcript}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(transcript.String(), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	refused := func(what, text string) {
		t.Helper()
		// As it is, and with the lines chained anew: then the chain says nothing.
		for _, text := range []string{text, rechained(t, strings.SplitAfter(text, "\n"))} {
			if _, err := Replay(strings.NewReader(text)); !errors.Is(err, ErrTranscript) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	for i := range lines {
		without := slices.Delete(slices.Clone(lines), i, i+1)
		refused("a line is missing", strings.Join(without, ""))
		doubled := slices.Insert(slices.Clone(lines), i, lines[i])
		refused("a line is doubled", strings.Join(doubled, ""))
	}
	all := strings.Join(lines, "")
	refused("empty", "")
	if _, err := Replay(strings.NewReader(all[:len(all)-3])); !errors.Is(err, chain.ErrCut) {
		t.Error(err)
	}
	refused("other answer", strings.Replace(all, `"answer":1`, `"answer":0`, 1))
	refused("other end", strings.Replace(all, `"end":"answer"`, `"end":"cap"`, 1))
	refused("other plays", strings.Replace(all, `"rounds":1`, `"rounds":2`, 1))
	refused("other rule", strings.Replace(all, `"adap-tt"`, `"dp-se"`, 1))
	refused("no such rule", strings.Replace(all, `"adap-tt"`, `"adap"`, 1))
	refused("less noise than the budget buys", strings.Replace(all, `"scale":1}`, `"scale":0.5}`, 1))
	again := strings.LastIndex(all, `"slots":[`) + len(`"slots":[`)
	refused("a slot released twice", all[:again]+"0"+all[again+strings.IndexAny(all[again:], ",]"):])
	refused("other risk", strings.Replace(all, `"risk":0.05`, `"risk":1e-300`, 1))
	refused("bad risk", strings.Replace(all, `"risk":0.05`, `"risk":1`, 1))
	refused("bad range", strings.Replace(all, `"range":[0,1]`, `"range":[1,1]`, 1))
	refused("bad budget", strings.Replace(all, `{"epsilon":1}`, `{"epsilon":0}`, 1))
	refused("other version", strings.Replace(all, `"trial":2`, `"trial":1`, 1))
	refused("unknown field", strings.Replace(all, `"trial":2`, `"trial":2,"x":1`, 1))
}

// Whatever follows a header, Replay says what is wrong with it. (A header alone can ask for as much
// work as a trial of its size takes.)
func FuzzReplay(f *testing.F) {
	var headers []string
	for _, name := range []string{"dp-tt", "se"} {
		e, _ := catalog.Find(catalog.BanditIdentify, name)
		var budget privacy.Budget = privacy.None{}
		if e.Private {
			budget = privacy.Pure{Epsilon: 5}
		}
		var transcript bytes.Buffer
		in, _ := bandit.BernoulliInstance(0.8, 0.2)
		if _, err := (Simulation{Rule: rule(f, name, 2, budget, nil), Source: bandit.Fixed(in),
			Runs: 1}).Play(context.Background(), 0, &transcript); err != nil {
			f.Fatal(err)
		}
		head, body, _ := strings.Cut(transcript.String(), "\n")
		headers = append(headers, head+"\n")
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, head := range headers {
			for _, text := range []string{head + body, rechained(t, strings.SplitAfter(head+body, "\n"))} {
				out, err := Replay(strings.NewReader(text))
				if (err == nil) == errors.Is(err, ErrTranscript) || err == nil && out == nil {
					t.Errorf("%v, %v", out, err)
				}
			}
		}
	})
}

// The range maps rewards and back, and what is outside is clipped.
func TestRange(t *testing.T) {
	log := doses(50_000, 0.1, 0.9)
	for _, rewards := range log.Rewards {
		for i := range rewards {
			rewards[i] = 20*rewards[i] - 5 // −5 and 15
		}
	}
	out, err := Run(context.Background(), Config{Rule: rule(t, "dp-tt", 2, privacy.Pure{Epsilon: 1},
		nil), Log: log, Lo: -10, Hi: 10})
	if err != nil || out.Answer != 1 {
		t.Fatal(out, err)
	}
	for a, want := range []float64{-5*0.9 + 10*0.1, -5*0.1 + 10*0.9} {
		if m := out.Means[a]; math.Abs(m.Value-want) > 7*(m.Noise+10/math.Sqrt(float64(m.N))) {
			t.Errorf("arm %d: %+v, want about %v", a, m, want)
		}
	}
}

func TestBadInput(t *testing.T) {
	one := privacy.Pure{Epsilon: 1}
	for _, c := range []struct {
		name   string
		arms   int
		risk   float64
		budget privacy.Budget
		params catalog.Params
		want   string
	}{
		{"dp-tt", 1, 0.05, one, nil, "arms is 1"},
		{"dp-tt", 2, 0, one, nil, "risk is 0"},
		{"dp-tt", 2, 1, one, nil, "risk is 1"},
		{"dp-tt", 2, math.NaN(), one, nil, "risk is NaN"},
		{"dp-tt", 2, -1, one, nil, "risk is -1"},
		{"dp-tt", 2, 0.05, nil, nil, "budget is missing"},
		{"dp-tt", 2, 0.05, privacy.Pure{}, nil, "epsilon is 0"},
		{"dp-tt", 2, 0.05, privacy.Pure{Epsilon: math.Inf(1)}, nil, "epsilon is +Inf"},
		{"dp-tt", 2, 0.05, privacy.Pure{Epsilon: 1e-20}, nil, "24/epsilon"},
		{"dp-tt", 2, 0.05, privacy.ZCDP{Rho: 1}, nil, "cannot meet"},
		{"se", 2, 0.05, one, nil, "not private"},
		{"dptt", 2, 0.05, one, nil, `did you mean "dp-tt"`},
		{"dp-tt", 2, 0.05, one, catalog.Params{"eta": 0}, "eta is 0"},
		{"dp-tt", 2, 0.05, one, catalog.Params{"first": 0.5}, "first is 0.5"},
		{"dp-tt", 2, 0.05, one, catalog.Params{"sigma": 1}, `"sigma" is unknown`},
		{"dp-tt", 2, 0.05, one, catalog.Params{"threshold": perArm, "phases": 3}, "phase cap"},
		{"adap-tt", 2, 0.05, one, catalog.Params{"threshold": 1, "sigma": 1, "reported": 1},
			"reported is true, must be false but in an experiment"},
	} {
		if _, err := NewRule(c.name, c.arms, c.risk, c.budget, c.params); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r := rule(t, "dp-tt", 2, one, nil)
	in, _ := bandit.BernoulliInstance(0.5, 0.4)
	three, _ := bandit.BernoulliInstance(0.5, 0.4, 0.1)
	beta, _ := bandit.NewBeta(2, 2)
	unknown, _ := bandit.NewInstance(beta, beta)
	for want, s := range map[string]Simulation{
		"source":    {Rule: r, Runs: 1},
		"runs is 0": {Rule: r, Source: bandit.Fixed(in)},
		"cap is -1": {Rule: r, Source: bandit.Fixed(in), Runs: 1, Cap: -1},
		"cap is 1,": {Rule: r, Source: bandit.Fixed(in), Runs: 1, Cap: 1},
		"workers":   {Rule: r, Source: bandit.Fixed(in), Runs: 1, Workers: -1},
		"3":         {Rule: r, Source: bandit.Fixed(three), Runs: 1},
		"range is":  {Rule: r, Source: bandit.Fixed(in), Runs: 1, Lo: 1, Hi: 1},
		"not known": {Rule: r, Source: bandit.Fixed(unknown), Runs: 1, Lo: 0, Hi: 0.5},
	} {
		if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	log := doses(3, 0.5, 0.5)
	for want, c := range map[string]Config{
		"the log has 0":   {Rule: r},
		"2 arms and":      {Rule: r, Log: doses(3, 0.1, 0.2, 0.3)},
		"cap is -1":       {Rule: r, Log: log, Cap: -1},
		"range is [2, 1]": {Rule: r, Log: log, Lo: 2, Hi: 1},
		"threshold is publ": {Rule: rule(t, "adap-tt", 2, one,
			catalog.Params{"threshold": 1, "sigma": 1}), Log: log},
		"coin is true":      {Rule: rule(t, "adap-tt", 2, one, catalog.Params{"coin": 1}), Log: log},
		"scale of the lapl": {Rule: rule(t, "adap-tt", 2, privacy.Pure{Epsilon: 1e-9}, nil), Log: log},
	} {
		if _, err := Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

const perArm = 1

// A reward that is no number stops nothing: in the middle a refusal would say that the trial had
// not stopped before, after releases that were paid for.
func TestNoNumberStopsNoTrial(t *testing.T) {
	log := doses(2000, 0.2, 0.9)
	log.Rewards[1][5] = math.NaN()
	for _, r := range everyRule(t, 2) {
		if out, err := Run(context.Background(), Config{Rule: r, Log: log}); err != nil || out.Plays[1] < 6 {
			t.Errorf("%s: %v after %v plays", r.Name(), err, out.Plays)
		}
	}
}

// A study counts what its outcomes say; it does not depend on the workers, and has each run
// as Play plays it.
func TestStudy(t *testing.T) {
	in, _ := bandit.BernoulliInstance(0.5, 0.8, 0.5)
	s := Simulation{Rule: rule(t, "dp-tt", 3, privacy.Pure{Epsilon: 1}, nil),
		Source: bandit.Fixed(in), Runs: 40, Seed: 7, Cap: 300, Workers: 3}
	study, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Workers = 1
	again, err := s.Run(context.Background())
	if err != nil || !reflect.DeepEqual(taus(study), taus(again)) {
		t.Errorf("one worker: %v, three: %v, %v", taus(again), taus(study), err)
	}
	capped, sum, longest := 0, 0.0, 0
	for i, o := range study.Outcomes {
		p, err := s.Play(context.Background(), i, nil)
		if err != nil || p.Tau != o.Tau || p.Answer != o.Answer {
			t.Errorf("run %d alone: %+v, %v", i, p, err)
		}
		if o.Answer < 0 {
			capped++
		}
		sum += float64(o.Tau)
		longest = max(longest, o.Tau)
	}
	if capped == 0 || capped == 40 {
		t.Errorf("%d capped: want some", capped)
	}
	if study.Capped != capped || math.Abs(study.TauMean-sum/40) > 1e-9 ||
		study.TauMax != float64(longest) || math.Abs(study.Share[0]+study.Share[1]+study.Share[2]-1) > 1e-9 {
		t.Errorf("%+v", study)
	}
}

func taus(s *Study) []int {
	var out []int
	for _, o := range s.Outcomes {
		out = append(out, o.Tau)
	}
	return out
}

func TestPlan(t *testing.T) {
	var rows []float64
	c := PlanConfig{Arms: 3, Gap: 0.4, Risk: 0.05, Epsilons: []float64{10, 0.1, 10}, Runs: 20,
		Seed: 1, Progress: func(r PlanRow) {
			rows = append(rows, r.Epsilon)
		}}
	p, err := c.Plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows, []float64{math.Inf(1), 0.1, 10}) || len(p.Rows) != 2 || p.Plain.OverNonPrivate != 1 {
		t.Errorf("rows %v, %+v", rows, p)
	}
	low, high := p.Rows[0], p.Rows[1]
	// At ε = 0.1 the bound is T*_TV kl(δ,1−δ)/ε = (3/0.4)·0.9·log(19)/0.1 = 198.75.
	if math.Abs(low.Lower-7.5*0.9*math.Log(19)/0.1) > 1e-4*low.Lower || !(low.Mean > 4*high.Mean) ||
		!(high.Mean > high.Lower) || low.Q90 < low.Median {
		t.Errorf("%+v\n%+v", low, high)
	}
	if !strings.Contains(p.Arms, "one of mean 0.7, 2 of mean 0.3") {
		t.Error(p.Arms)
	}
	if !(p.Boundary > 0.1 && p.Boundary < 10) || p.Free == 0.1 {
		t.Errorf("boundary %v, free from %v", p.Boundary, p.Free)
	}
	prior := PlanConfig{Arms: 3, Prior: &[2]float64{0, 1}, Risk: 0.05, Epsilons: []float64{1},
		Runs: 10, Cap: 10_000, Rule: "dp-se"}
	if p, err = prior.Plan(context.Background()); err != nil || p.Rows[0].Mean > 10_000 || !(p.Boundary > 0) {
		t.Errorf("%+v, %v", p, err)
	}
	for want, bad := range map[string]func(*PlanConfig){
		"gap is 0":         func(c *PlanConfig) { c.Gap = 0 },
		"gap is NaN":       func(c *PlanConfig) { c.Gap = math.NaN() },
		"gap is 2":         func(c *PlanConfig) { c.Gap = 2 },
		"best is 0.2":      func(c *PlanConfig) { c.Best = 0.2 },
		"arms is 1":        func(c *PlanConfig) { c.Arms = 1 },
		"runs is 1":        func(c *PlanConfig) { c.Runs = 1 },
		"epsilons are":     func(c *PlanConfig) { c.Epsilons = nil },
		"epsilon is 0":     func(c *PlanConfig) { c.Epsilons[0] = 0 },
		"not private":      func(c *PlanConfig) { c.Rule = "se" },
		"without a prior":  func(c *PlanConfig) { c.Prior = &[2]float64{0, 1} },
		"risk is 2":        func(c *PlanConfig) { c.Risk = 2 },
		"unknown":          func(c *PlanConfig) { c.Params = catalog.Params{"x": 1} },
		"must be at least": func(c *PlanConfig) { c.Cap = 1 },
	} {
		c := c
		c.Epsilons = slices.Clone(c.Epsilons)
		bad(&c)
		if _, err := c.Plan(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
