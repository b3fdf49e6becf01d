package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// growing adds arms to a policy before these batches: the batch that is out is withdrawn.
type growing struct {
	Policy
	before []int
	batch  int
}

func (g *growing) Next(released privacy.Released) *Batch {
	b := g.Policy.Next(released)
	for len(g.before) > 0 && g.before[0] == g.batch {
		g.before = g.before[1:]
		if err := g.Policy.(interface{ AddArm() error }).AddArm(); err != nil {
			panic(err)
		}
		b = g.Policy.Next(privacy.Released{})
	}
	g.batch++
	return b
}

// With arms that come before some batches, two of them perhaps before the same one, the policies play as
// their description says, written one reward at a time: an arm without a release goes first, and an index
// knows nothing of when its arm came. A twin whose new arms go last is told apart.
func TestArmsThatComeLater(t *testing.T) {
	const horizon = 1000
	caught, runs := 0, 0
	for seed := range uint64(testkit.Size(8, 24)) {
		r := rand.New(rand.NewPCG(seed, 41))
		arms, late := 2+r.IntN(3), 1+r.IntN(2)
		since := make([]int, arms+late)
		var before []int
		for i := range late {
			before = append(before, 1+r.IntN(9))
			slices.Sort(before)
			copy(since[arms:], before[:i+1])
		}
		eps, alpha := math.Exp(4*r.Float64()-2), 1.05+1.5*r.Float64()
		first, caution := 1+r.IntN(10), max(1, 0.5+1.5*r.Float64())
		tab := newTable(r, arms+late, horizon, laplace(r, 1/eps))
		normal := newTable(r, arms+late, horizon, func() float64 { return r.NormFloat64() / eps })
		for _, v := range []struct {
			name        string
			p           Policy
			err         error
			sigma       float64
			imed, noisy bool
		}{
			policyOf("dp-klucb", -1, false, false)(built(NewDPKLUCB(arms, eps, alpha, first))),
			policyOf("dp-imed", -1, true, false)(built(NewDPIMED(arms, eps, alpha, first))),
			policyOf("dp-klucb-j", -1, false, true)(built(NewDPKLUCBJ(arms, eps, alpha, first))),
			policyOf("dp-imed-j", -1, true, true)(built(NewDPIMEDJ(arms, eps, alpha, first))),
			policyOf("zcdp-imed", 1/eps, true, false)(built(NewZCDPIMED(arms, privacy.ZCDP{Rho: eps * eps / 2}, alpha, first))),
		} {
			check(t, v.err)
			check(t, v.p.(cautious).SetCaution(caution))
			of, tail := tab, privacy.Tail{H: 1 / eps}
			if v.sigma >= 0 {
				of, tail = normal, privacy.Tail{Sigma: 1 / eps}
			}
			got := playTable(t, &growing{Policy: v.p, before: slices.Clone(before)}, of, tail, horizon)
			same(t, v.name, got, accumulatingSince(since, of, got, eps, v.sigma, alpha, caution, first, v.imed, v.noisy,
				faithful))
			later := slices.Clone(since) // each comes a batch later than it does
			for a := range late {
				later[arms+a]++
			}
			if runs++; !slices.Equal(got, accumulatingSince(later, of, got, eps, v.sigma, alpha, caution, first, v.imed,
				v.noisy, faithful)) {
				caught++
			}
		}
	}
	if caught < runs/2 {
		t.Errorf("arms that come later are told apart in %d of %d runs", caught, runs)
	}
}

type builtPolicy = struct {
	name        string
	p           Policy
	err         error
	sigma       float64
	imed, noisy bool
}

func policyOf(name string, sigma float64, imed, noisy bool) func(Policy, error) builtPolicy {
	return func(p Policy, err error) builtPolicy { return builtPolicy{name, p, err, sigma, imed, noisy} }
}

// dp-ts with an arm that comes before some batch plays by its description: intervals are for the number of
// arms there are now, the new arm has the law of one without a release, and nothing is owed of the batch that
// was withdrawn. Twins are told apart: one with half of the noise's deviation, and one that knows a new arm better.
func TestDPTSArmThatComesLater(t *testing.T) {
	runs := testkit.Size(2, 12)
	caught := map[drawnFlaw]int{}
	for seed := range uint64(runs) {
		for _, how := range []drawnFlaw{drawnFaithful, knowsNew, halves} {
			r := rand.New(rand.NewPCG(seed, 43))
			arms, first, late := 2+r.IntN(3), 10+r.IntN(20), 1+r.IntN(8)
			scale, alpha := math.Exp(2*r.Float64()-0.5), 0.5+r.Float64()
			tab := newTable(r, arms+1, 800, func() float64 { return scale * r.NormFloat64() })
			p, err := NewDPTS(arms, privacy.ZCDP{Rho: 1 / (2 * scale * scale)}, first)
			check(t, err)
			check(t, p.SetSpread(alpha))
			check(t, p.SetFloor(0.02))
			switch err := drawnSince(late, p, tab, alpha, 0.02, first, 800, privacy.Tail{Sigma: scale}, how); {
			case how == drawnFaithful && err != nil:
				t.Fatalf("seed %d: %v", seed, err)
			case err != nil:
				caught[how]++
			}
		}
	}
	for _, how := range []drawnFlaw{knowsNew, halves} {
		if caught[how] < max(1, runs/4) {
			t.Errorf("twin %d is told apart in %d of %d runs", how, caught[how], runs)
		}
	}
}

// By hand. dp-imed with a first batch of 4 of each of two arms; an arm comes when the second batch is out.
// It is withdrawn, and the new arm's first is asked for, of 4; then arms are as if all had begun together.
func TestArmThatComesLaterByHand(t *testing.T) {
	p, err := NewDPIMED(2, 1, 2, 4)
	check(t, err)
	ledger := privacy.NewLedger()
	slot := 0
	next := func(sums ...float64) *Batch {
		var released privacy.Released
		if len(sums) > 0 {
			v := &privacy.Values{Tail: privacy.Tail{H: 1}}
			var slots []int
			for i, s := range sums {
				v.N, v.Sum, slots = append(v.N, p.batch.Plays[i].Rounds), append(v.Sum, s), append(slots, slot)
				slot++
			}
			released, err = ledger.ReleaseAll(slots, p.Mechanism(), v)
			check(t, err)
		}
		return p.Next(released)
	}
	want := func(b *Batch, plays ...Play) {
		t.Helper()
		if !slices.Equal(b.Plays, plays) {
			t.Fatalf("got %v, want %v", b.Plays, plays)
		}
	}
	want(next(), Play{0, 4, true}, Play{1, 4, true})
	want(next(3, 1), Play{0, 4, true}) // arm 0 leads, and log 4 is below 4 d(1/4, 3/4) + log 4
	check(t, p.AddArm())
	want(next(), Play{2, 4, true})
	want(next(4), Play{2, 4, true}) // it leads
	check(t, p.AddArm())
	p.Drop(3) // before it was played
	want(next(), Play{2, 4, true})
}

// A window that has no room for two batches of one arm more says so, and one that has begins with it.
func TestArmThatComesLaterOfAWindow(t *testing.T) {
	p, err := NewDPWindowKLUCB(3, 1, 63, 8)
	check(t, err)
	if err := p.AddArm(); err == nil || err.Error() != "window is 63, must be at least 64 for one arm more: two "+
		"batches of 8 rounds of each" {
		t.Errorf("got %v", err)
	}
	p, err = NewDPWindowKLUCB(3, 1, 64, 8)
	check(t, err)
	v := &privacy.Values{N: []int{8, 8, 8}, Sum: []float64{8, 9, 10}, Tail: privacy.Tail{H: 1}}
	released, err := privacy.NewLedger().ReleaseAll([]int{0, 1, 2}, p.Mechanism(), v)
	check(t, err)
	p.Next(privacy.Released{})
	p.Next(released)
	check(t, p.AddArm())
	if b := p.Next(privacy.Released{}); !slices.Equal(b.Plays, []Play{{3, 8, true}}) {
		t.Errorf("got %v", b.Plays)
	}
}
