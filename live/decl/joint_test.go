package decl

import (
	"errors"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

const liveClinic = `name: clinic
contextual:
  context:
    pain: {range: [0, 10]}
  action:
    kind: {values: [rest, walk, call]}
  cross:
    - {of: [pain, kind]}
  actions: 3
  protect: joint
policy: {policy: lin-ucb, leaf: 50, greed: 1}
horizon: 50_000
budget: {rho: 1}
unit: {of: person}
reward: {range: [0, 1], default: 0}
window: 24h
floor: 0.2
`

func TestProtectJoint(t *testing.T) {
	l := front(t, liveClinic)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	p, err := l.NewContextual(ZeroCoins{})
	if err != nil {
		t.Fatal(err)
	}
	q, ok := p.(*linear.LinUCB)
	m, tree := p.Mechanism().(privacy.GramTree)
	if !ok || !tree || m.Leaf != 50 || m.Horizon != 50_000 || q.Dim() != 1+1+3+3 ||
		!m.Loss().Within(privacy.ZCDP{Rho: 1}) || m.Levels() != 10 {
		t.Errorf("%T of %v", p, m)
	}
	says, err := l.Guarantee()
	if err != nil || !strings.HasPrefix(says, "what is decided for all others depends on a person's context, "+
		"features of actions and reward by released noisy matrices alone, at rho=1 under joint") ||
		!strings.Contains(says, "hides nothing from who sees it") {
		t.Errorf("%s, %v", says, err)
	}
	if w := l.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
	// ρ_min is half the band of five nodes, σ = 2√(5/2): 2σ√5·(√8 + √log(160/0.001)), 89.
	short := front(t, strings.Replace(liveClinic, "horizon: 50_000", "horizon: 1_000", 1))
	if w := short.Warnings(); len(w) != 1 || !strings.Contains(w[0], "vectors have 8 components, and at rho=1") ||
		!strings.Contains(w[0], "until 1.4e+03 decisions") {
		t.Errorf("warnings: %q", w)
	}
	text, err := l.JSON()
	if err != nil || !strings.Contains(string(text), `"protect":"joint"`) {
		t.Errorf("%s, %v", text, err)
	}
	if again := front(t, string(text)); again.Check() != nil || !again.Contextual.Joint() {
		t.Error("its normal form is another")
	}
	if front(t, liveFront).Contextual.Joint() {
		t.Error("it is said to be what it is not")
	}
}

// Greedy on segments, whose first releases are soon enough: σ = 3/√2/√2 = 1.5, and 2·8·1.5·√(8·4) = 136 is first
// less than the 200 of the first segment. In leaves of 20, of 80 decisions, it warns: 2·8·1.5·√(8·14) = 254 is
// less than the 260 at the end of the 14th of 20, 30, 40, 60, ….
func TestProtectJointBySegments(t *testing.T) {
	text := strings.Replace(liveClinic, "lin-ucb, leaf: 50, greed: 1", "jdp-greedy", 1)
	l := front(t, text)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	p, err := l.NewContextual(ZeroCoins{})
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := p.Mechanism().(privacy.GramGaussian); !ok || !m.Loss().Within(privacy.ZCDP{Rho: 1}) ||
		p.(*linear.JDPGreedy).Outweighs() != 200 || len(l.Warnings()) > 0 {
		t.Errorf("%T of %v, %q", p, p.Mechanism(), l.Warnings())
	}
	short := front(t, strings.Replace(strings.Replace(text, "50_000", "80", 1), "jdp-greedy", "jdp-greedy, leaf: 20",
		1))
	if w := short.Warnings(); len(w) != 1 || !strings.Contains(w[0], "until 2.6e+02 decisions") {
		t.Errorf("warnings: %q", w)
	}
}

func TestProtectErrors(t *testing.T) {
	for _, c := range []struct{ old, new, field, says string }{
		{"protect: joint", "protect: all", "contextual.protect", "must be reward, joint"},
		{"floor: 0.2", "floor: 0.2\npublic: true", "public", "must be false with contextual.protect: joint"},
		{"floor: 0.2", "floor: 0.2\nexposure: activate", "exposure", "must be decide with contextual.protect: joint"},
		{"protect: joint", "protect: joint\n  mode: apprentice", "contextual.mode", "must be learn"},
		{"protect: joint", "protect: joint\n  rules:\n    - {name: a, play: first, clip: 20, budget: {rho: 0.05}}",
			"contextual.rules", "must have none with contextual.protect: joint"},
		{"policy: lin-ucb, leaf: 50, greed: 1", "policy: adac-oful", "policy", "must be histogram-ts, jdp-greedy or lin-ucb"},
		{"lin-ucb, leaf: 50, greed: 1", "jdp-greedy, leaf: 700", "policy.leaf", "must divide the horizon"},
		{"lin-ucb, leaf: 50, greed: 1", "jdp-greedy, leaf: 10", "policy.leaf", "5000 releases"},
		{"lin-ucb, leaf: 50, greed: 1", "jdp-instruments", "policy", "the noise of its Gram matrices has no exact law yet"},
		{"leaf: 50", "leaf: 50, noise: blt", "policy.noise", "must be tree"},
		{"leaf: 50", "leaf: 1", "policy.leaf", "is 1, which are 50000 releases of a matrix each, must be at " +
			"least 16"},
		{"leaf: 50", "leaf: 51", "policy.leaf", "must divide the horizon, 50000"},
		{"leaf: 50", "leaf: 60_000", "policy.leaf", "must divide the horizon"},
		{"  protect: joint\n", "", "policy", "must come with contextual.protect: joint"},
		{"horizon: 50_000\n", "", "horizon", "is missing"},
		{"{rho: 1}", "{epsilon: 1}", "budget", ""},
	} {
		text := strings.Replace(liveClinic, c.old, c.new, 1)
		if text == liveClinic {
			t.Fatalf("%s is not there", c.old)
		}
		l, err := Reader{}.Parse("clinic.yaml", []byte(text))
		if err == nil {
			err = l.Check()
		}
		if err == nil || !errors.Is(err, keyed.ErrSpec) || !strings.Contains(err.Error(), c.field+" ") &&
			!strings.Contains(err.Error(), c.field+":") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v does not say %s, %s", c.new, err, c.field, c.says)
		}
	}
}
