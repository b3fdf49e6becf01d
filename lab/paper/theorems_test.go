package paper

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

// TestTheoremsCanFail asks every claim of the theorems with numbers made up: each must be able to
// hold and to fail.
func TestTheoremsCanFail(t *testing.T) {
	figures := theorems()
	if err := check(figures); err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		e := settled(t, f)
		seen := map[string]map[Answer]bool{}
		random := rand.New(rand.NewPCG(5, 5))
		all := testkit.Full() // rounds, also when both answers have come
		for left, round := 1, 0; (left > 0 || all) && round < 60; round++ {
			invent(e, random)
			left = 0
			for _, c := range f.Claims {
				if seen[c.ID] == nil {
					seen[c.ID] = map[Answer]bool{}
				}
				if v := seen[c.ID]; all || !v[Holds] || !v[Fails] {
					got, verdict := decide(&c, e)
					if verdict == Errored {
						t.Fatalf("%s/%s: %s", f.ID, c.ID, got.Detail)
					}
					v[got.Answer] = true
					left++
				}
			}
		}
		for _, c := range f.Claims {
			if !seen[c.ID][Holds] || !seen[c.ID][Fails] {
				t.Errorf("%s/%s came out %v only", f.ID, c.ID, seen[c.ID])
			}
			if got, v := decide(&c, &Evidence{Preset: Quick}); v != NotTested && v != OurFinding {
				t.Errorf("%s/%s without results: %s, %s", f.ID, c.ID, got.Answer, v)
			}
		}
	}
}

// settled is evidence with the cells of a figure's settings, and nothing in them.
func settled(t *testing.T, f Figure) *Evidence {
	t.Helper()
	e := &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{},
		Numbers: &Numbers{Values: map[string][]float64{}}}
	for _, x := range f.Experiments {
		spec, err := experiment.Reader{}.Read(filepath.Join("settings", x.File))
		if err != nil {
			t.Fatal(err)
		}
		if spec.Name != strings.TrimSuffix(x.File, ".yaml") {
			t.Errorf("%s is named %s", x.File, spec.Name)
		}
		plan, err := spec.Resolve()
		if err != nil {
			t.Fatalf("%s: %v", x.File, err)
		}
		r := &experiment.Results{Manifest: plan.Manifest()}
		horizon := r.Manifest.Horizon
		r.Manifest.Checkpoints = []int{horizon / 2, horizon}
		for _, c := range r.Manifest.Cells {
			r.Cells = append(r.Cells, experiment.CellResult{CellInfo: c})
		}
		e.Experiments[x.Name] = r
	}
	return e
}

// invent makes results up: all ratios and audits are small or large, and all regrets.
func invent(e *Evidence, random *rand.Rand) {
	for _, name := range inventedNames {
		v := []float64{0.1, 10}[random.IntN(2)]
		e.Numbers.Values[name] = []float64{v, v, 1, 100}
		switch {
		case name == "star" && v == 0.1:
			e.Numbers.Values[name][0] = 1
		case strings.HasPrefix(name, "plain "):
			e.Numbers.Values[name] = []float64{v, v, v}
		case name == "returning":
			e.Numbers.Values[name][0] = 0.1
		}
	}
	level, slope := []float64{1e-9, 1e30}[random.IntN(2)], float64(random.IntN(3))
	for _, r := range e.Experiments {
		scale := []float64{1e-3, 1, 1e3}[random.IntN(3)]
		for i := range r.Cells {
			c := &r.Cells[i]
			c.FinalRegret = nil
			m := level * scale
			if x := epsilonOfCell(c); x > 0 {
				m *= math.Pow(x, -slope)
			}
			for j := range 2000 {
				c.FinalRegret = append(c.FinalRegret, m*(1+1e-6*float64(j%7)))
			}
			if c.Identify != nil {
				c.FinalStoppingTime, c.FinalRegret = c.FinalRegret, nil
			}
			c.Regret.Mean, c.Regret.SE = []float64{m, m}, []float64{m * 1e-6, m * 1e-6}
		}
	}
}

// inventedNames are the names of numbers that claims of theorems are decided from.
var inventedNames = []string{
	"NAS, later than proved", "NAS, (2.36) over t*", "tree, sums with a step",
	"DP-SE, epochs over the lemma", "tree", "dp-se", "dp-se-2",
	"star",
	"KL over Theorem 6", "KL over Theorem 7", "KL over Theorem 8", "Theorem 17 over its proof",
	"linear in d", "theorem 9", "variance allowed over needed", "Table II, ours over converted",
	"T*_TV, distance from the formula over 1e-8", "adap-tt", "plain two", "plain three", "plain five",
	"lemma", "Skellam, tail over p", "Skellam, divergence over Theorem 2",
	"Gaussian, divergence over Theorem 4", "Pólya, distance from Laplace over 1e-9",
	"Laplace modulo m, log-ratio over ε", "returning users, composed over claimed", "returning",
	"bits, " + messages[0].name, "bits, " + messages[1].name, "bits, " + messages[2].name,
	"bits, " + messages[3].name, "bits, " + messages[4].name,
	messages[0].name, messages[1].name, messages[2].name, messages[3].name, messages[4].name,
}

// A twin with half the noise, or a quarter, is found out, by as many games as preset quick has; the
// sound one is not. False alarms have probability 0.01 a policy.
func TestBrokenTwinsOfElimination(t *testing.T) {
	testkit.RacedBefore(t)
	ctx, games := context.Background(), gamesOf(Quick)
	elimination := func(policy string) func(audit.Fault) (foundEpsilon, error) {
		return func(f audit.Fault) (foundEpsilon, error) {
			return attackElimination(policy, f).found(ctx, 21601, games)
		}
	}
	caught(t, "dp-se", elimination("dp-se"), audit.HalfScale)
	caught(t, "dp-se-2", elimination("dp-se-2"), audit.QuarterScale)
	// A tree's ε is in the sum of four nodes, each of which shows a quarter.
	caught(t, "tree", func(f audit.Fault) (foundEpsilon, error) {
		return attackTree(ctx, 21601, games, f)
	}, audit.QuarterScale)
}

// caught checks that a claim on privacy holds for what is sound and fails for its twin.
func caught(t *testing.T, name string, play func(audit.Fault) (foundEpsilon, error), fault audit.Fault) {
	t.Helper()
	for _, x := range []struct {
		fault audit.Fault
		want  Answer
	}{{audit.NoFault, Holds}, {fault, Fails}} {
		v, err := play(x.fault)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := &Numbers{Values: map[string][]float64{}}
		n.set(name, v)
		got, err := unfound(name).Of(&Evidence{Numbers: n})
		if err != nil || got.Answer != x.want {
			t.Errorf("%s, fault %v: %s, want %s: %s, %v", name, x.fault, got.Answer, x.want, got.Detail, err)
		}
		t.Logf("%s, fault %v: %s", name, x.fault, got.Detail)
	}
}

func TestEliminationNumbers(t *testing.T) {
	if got := sumsWithStep(8); got != 4 { // step 1 is in [1,1], [1,2], [1,4], [1,8]
		t.Errorf("a step is in %d sums of 8 steps, want 4", got)
	}
	// By hand: R_1 = 32 log(16·2)·4 + 1 rounded up.
	if got := epochPlays(2, 0.5, 100, 0.5); got != 445 {
		t.Errorf("an arm of gap ½ is played %v times, want 445", got)
	}
	if got := nasLater(0.9, 0.05, 1, 1, 3); got != 1 {
		t.Errorf("NAS on ones has not stopped after 3 with probability %v", got)
	}
	// A rule with a radius four times as wide stops later than is proved.
	n := int(nasSamples(0.95, 0.5, 0.5))
	if sound, twin := nasLater(0.95, 0.5, 0.5, 1, n), nasLater(0.95, 0.5, 0.5, 4, n); sound > 0.5 ||
		twin < 0.5 {
		t.Errorf("later than %d with probability %v, of a twin %v", n, sound, twin)
	}
	if x := starGap(10, 1, 1e6); x < 0.0 || x > 0.1 {
		t.Errorf("Δ* is %v", x)
	}
}

// Half the noise of a message is found out by the games of preset quick; false alarms have
// probability 0.01 a mechanism, at a fixed seed.
func TestBrokenTwinsOfMessages(t *testing.T) {
	for i, c := range messages {
		users := 32
		if c.trust == privacy.TrustLocal {
			users = 2 // the analyser sees one sum, with every user's noise in it
		}
		caught(t, c.name, func(f audit.Fault) (foundEpsilon, error) {
			return attackMessage(context.Background(), 21602, i, users, 5*gamesOf(Quick), f != audit.NoFault)
		}, audit.HalfScale)
	}
}

func TestLawsOfNoise(t *testing.T) {
	// P(Sk(0,σ²) = 0) = e^{−σ²}I₀(σ²); I₀(1) = 1.2660658777520084, I₁(1) = 0.5651591039924850.
	law := skellamLaw(1, 60)
	if got, want := law[0], math.Log(1.2660658777520084)-1; math.Abs(got-want) > 1e-13 {
		t.Errorf("log P(0) = %v, want %v", got, want)
	}
	if got, want := law[1], math.Log(0.5651591039924850)-1; math.Abs(got-want) > 1e-13 {
		t.Errorf("log P(1) = %v, want %v", got, want)
	}
	// One discrete Gaussian moved by g costs αg²/(2σ²) in divergence, exactly for integer α and
	// nearly for others.
	if got, want := renyi(gaussianSumLaw(9, 1, 90), 2, 3), 3*4/(2*9.0); math.Abs(got-want) > 1e-9 {
		t.Errorf("D_3 = %v, want %v", got, want)
	}
	// Noise of a quarter of the variance is above the curves.
	if d := renyi(skellamLaw(1, 200), 2, 2); d <= skellamCurve(1, 1, 2, 2) {
		t.Errorf("a quarter of Theorem 2's variance has D_2 = %v", d)
	}
	// Shares of 1/(2n) are no Lap_Z(b), and a modulus changes nothing: scale 1 with g = 1 costs 1.
	if got := wrapped(1, 50, 1); math.Abs(got-1) > 1e-12 {
		t.Errorf("Lap_Z(1) modulo 50 costs %v", got)
	}
	if got := wrapped(1, 50, 0.5); got < 1.9 {
		t.Errorf("half the noise costs %v", got)
	}
	if got := polyaSum(2, 4); got > 1e-9 {
		t.Errorf("four Pólya differences are %v from Laplace", got)
	}
	if got := unionOf003(4) / 3; got > 1 {
		t.Errorf("the mended radius of Lemma 2 costs %v", got)
	}
}

func TestBrokenTwinOfAdaPTT(t *testing.T) {
	caught(t, "adap-tt", func(f audit.Fault) (foundEpsilon, error) {
		return attackIdentification(f).found(context.Background(), 21601, gamesOf(Quick))
	}, audit.HalfScale)
}

func TestTVTime(t *testing.T) {
	// By hand: gaps ½ and ¼ give 2 + 4 + 4.
	got, err := tvTime([]float64{0.5, 1, 0.75})
	if err != nil || math.Abs(got-10) > 1e-9 {
		t.Errorf("T*_TV is %v, want 10; %v", got, err)
	}
	for _, name := range []string{"two", "three", "five"} {
		if _, err := bai5(name); err != nil {
			t.Error(err)
		}
	}
}

func TestDivergencesOfTheorems(t *testing.T) {
	// Point masses n apart: KL is n²/(2σ²), and no coupling does better than n².
	if got := gaussianKL([]float64{1, 0, 0}, []float64{0, 0, 1}, 0.7); math.Abs(got-4/(2*0.49)) > 1e-9 {
		t.Errorf("KL is %v, want %v", got, 4/(2*0.49))
	}
	if got, err := leastCost([]float64{1, 0, 0, 0}, []float64{0, 0, 0, 1}); err != nil ||
		math.Abs(got-4) > 1e-9 {
		t.Errorf("the cost is %v, want 4; %v", got, err)
	}
	// Half on 00 and half on 11 against the same on 01 and 10: one coordinate changes.
	if got, err := leastCost([]float64{0.5, 0, 0, 0.5}, []float64{0, 0.5, 0.5, 0}); err != nil ||
		math.Abs(got-1) > 1e-9 {
		t.Errorf("the cost is %v, want 1; %v", got, err)
	}
	// With half the noise that its ρ is claimed for, a count is above Theorem 7.
	if got := gaussianKL(binomialLaw(30, 0), binomialLaw(30, 1), 1); got <= 1./8*900 {
		t.Errorf("the twin of Theorem 7 has KL %v only", got)
	}
	// A policy that plays its first reward back, with probability 0.9: the plays of
	// three rounds by hand.
	f := audit.Finite{Arms: 2, Rounds: 2, Rewards: 2, Law: func(h []audit.Step, p []float64) {
		p[0], p[1] = 0.5, 0.5
		if len(h) > 0 {
			p[h[0].Reward], p[1-h[0].Reward] = 0.9, 0.1
		}
	}}
	kl, bracket := decomposition(f, [2]float64{0, 0}, [2]float64{1, 1})
	if want := 0.8 * math.Log(9); math.Abs(kl-want) > 1e-12 || math.Abs(bracket-4) > 1e-12 {
		t.Errorf("KL is %v, want %v; the bracket is %v, want 4", kl, want, bracket)
	}
	e, err := audit.Enumerate(f)
	if err != nil {
		t.Fatal(err)
	}
	if rho, err := e.Rho(audit.Interactive); err != nil || kl > rho*bracket || kl <= rho*bracket/16 {
		t.Errorf("ρ is %v: Theorem 8 holds, and would fail with a sixteenth of ρ; %v", rho, err)
	}
}

// The regret of the first phase outgrows Theorem 4 with the printed f, like d^¼, and does not
// with the mended one.
func TestFirstPhaseOutgrowsTheorem4(t *testing.T) {
	for _, d := range []float64{1e8, 1e12} {
		if slope := math.Log10(firstPhase(1e4*d, printedF)/firstPhase(d,
			printedF)) / 4; slope < 0.15 || slope > 0.25 {
			t.Errorf("from d = %v on the ratio grows like d^%.3f", d, slope)
		}
	}
	if grows := firstPhase(1e16, mendedF) / firstPhase(1e4, mendedF); grows > 1 {
		t.Errorf("with the mended f it grows %v times", grows)
	}
	if r := minimax17(2, 1, 1); r > 1 {
		t.Errorf("Theorem 17 over its proof is %v at K = 2, ρ = 1, T = 1", r)
	}
}

// The non-private AdaP-TT stops, is right, and takes longer at a smaller risk. If it errs with
// probability 0.01, ten of 100 runs or more are wrong with probability below 2e-7.
func TestPlainTopTwo(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	wrong, at := 0, [2]int{}
	for range 100 {
		a, w := plainTopTwo([]float64{0.3, 1, 0}, 0.01, random)
		b, _ := plainTopTwo([]float64{0.3, 1, 0}, 1e-50, random)
		at[0], at[1] = at[0]+a, at[1]+b
		if w {
			wrong++
		}
	}
	if wrong > 9 || at[1] < 2*at[0] || at[0] < 100*20 {
		t.Errorf("%d wrong of 100; %d plays at δ = 0.01, %d at 10⁻⁵⁰", wrong, at[0], at[1])
	}
}
