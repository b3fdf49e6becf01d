package release

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A Gathering says how sums of real rewards are gathered that no curator sees a reward of. The zero
// value is none: the rewards come to Real.
type Gathering struct {
	Trust privacy.Trust // TrustTwoServer, TrustLocal or TrustSecAgg
	// Users, under TrustSecAgg, is how many users of a cohort are promised to answer and to be
	// honest, at least 2; else 0. A cohort whose sum is opened has that many at least.
	Users int
}

// On says that something is gathered.
func (g Gathering) On() bool { return g != Gathering{} }

// Validate says what is wrong with it, if anything.
func (g Gathering) Validate() error {
	switch g.Trust {
	case privacy.TrustTwoServer, privacy.TrustLocal:
		if g.Users != 0 {
			return fmt.Errorf("gathering: users is %d, must be 0 for trust %s", g.Users, g.Trust)
		}
	case privacy.TrustSecAgg:
		if g.Users < 2 || g.Users > maxCohort {
			return fmt.Errorf("gathering: users is %d, must be from 2 to %d for trust %s", g.Users,
				maxCohort, g.Trust)
		}
	default:
		return fmt.Errorf("gathering: trust is %q, must be %s, %s or %s", g.Trust, privacy.TrustTwoServer,
			privacy.TrustLocal, privacy.TrustSecAgg)
	}
	return nil
}

// maxCohort bounds the users of a cohort.
const maxCohort = 1 << 20

// A Noise is a law of whole noise, in steps of the grid of Real, 2^-20 of the range: of Laplace
// Lap_Z(Num/Den), P(x) ∝ e^{-|x|·Den/Num}; of Gaussian P(x) ∝ e^{-x²·Den/(2·Num)}, Num/Den being a
// variance. It is what each of two servers adds to its share of a sum, and what each user adds
// under local trust. Num and Den are exact: whoever draws needs no floating-point number.
type Noise struct {
	Name     privacy.NoiseName // laplace or gaussian
	Num, Den uint64
}

// NoiseOf is the noise that Real adds for a stated mechanism, privacy.Laplace or Gaussian: its
// scale in steps is rounded up as there, and σ² once more to a whole number. A σ above 255 of the
// range, where σ² in steps leaves 2^56, is an error.
func NoiseOf(stated privacy.Mechanism) (Noise, error) {
	var scale float64
	switch m := stated.(type) {
	case privacy.Laplace:
		scale = m.Scale
	case privacy.Gaussian:
		scale = m.Sigma
	case nil:
		return Noise{}, errors.New("gathered: mechanism is missing, must be laplace or gaussian")
	default:
		return Noise{}, fmt.Errorf("gathered: mechanism is %q, must be laplace or gaussian: no other's noise "+
			"can be added by servers or users who do not see one another's", stated.Kind())
	}
	if err := stated.Validate(); err != nil {
		return Noise{}, fmt.Errorf("gathered: %w", err)
	}
	if scale == 0 {
		return Noise{}, fmt.Errorf("gathered: mechanism %v has no noise, must have some", stated)
	}
	num, err := parts(stated.Kind(), scale)
	if err != nil {
		return Noise{}, fmt.Errorf("gathered: %w", err)
	}
	if _, ok := stated.(privacy.Laplace); ok {
		return Noise{privacy.NoiseLaplace, num, stepParts}, nil
	}
	if scale > maxGatheredSigma {
		return Noise{}, fmt.Errorf("gathered: sigma is %v, must be at most %d", scale, maxGatheredSigma)
	}
	hi, lo := bits.Mul64(num, num)
	variance, rest := bits.Div64(hi, lo, stepParts*stepParts) // below 2^56: hi is far below
	if rest > 0 {
		variance++
	}
	return Noise{privacy.NoiseGaussian, variance, 1}, nil
}

// maxGatheredSigma keeps σ² in steps, (255·2^20 + 1/32)² at most, below 2^56.
const maxGatheredSigma = 255

// String is the law as "laplace 671088641/64".
func (n Noise) String() string { return fmt.Sprintf("%s %d/%d", n.Name, n.Num, n.Den) }

// Draw draws from the law, exactly, from a ChaCha8 generator of its own that the operating system
// keys. Goroutines may share a Noise.
func (n Noise) Draw() (int64, error) {
	src, err := noise.Secure()
	if err != nil {
		return 0, fmt.Errorf("gathered: %w", err)
	}
	return n.draw(src)
}

// draw draws from the law with given bits: whoever knows them knows the noise.
func (n Noise) draw(src rand.Source) (int64, error) {
	l, err := n.law(src)
	if err != nil {
		return 0, err
	}
	return l.Draw(1)
}

func (n Noise) law(src rand.Source) (sampler[int64], error) {
	switch n.Name {
	case privacy.NoiseLaplace:
		law, err := noise.NewDiscreteLaplace(n.Num, n.Den)
		if err != nil {
			return nil, fmt.Errorf("gathered: %w", err)
		}
		return exactLaplace{src, []noise.DiscreteLaplace{law}}, nil
	case privacy.NoiseGaussian:
		law, err := noise.NewDiscreteGaussianVariance(n.Num, n.Den)
		if err != nil {
			return nil, fmt.Errorf("gathered: %w", err)
		}
		return exactGaussian{src, law}, nil
	}
	return nil, fmt.Errorf("gathered: noise is %q, must be %s or %s", n.Name, privacy.NoiseLaplace,
		privacy.NoiseGaussian)
}

// Reach is a τ that the noise stays within with probability 1 − 2^-64: P(|X| > τ) is at most
// 2e^{-τ·Den/Num} for Laplace and 2e^{-τ²·Den/(2·Num)} for Gaussian. What lies further out is
// clipped, which is public post-processing, and keeps who lies from adding more.
func (n Noise) Reach() int64 {
	x, l := float64(n.Num)/float64(n.Den), 65*math.Ln2
	if n.Name == privacy.NoiseGaussian {
		return int64(math.Ceil(math.Sqrt(2 * l * x)))
	}
	return int64(math.Ceil(l * x))
}

// LocalReport is what a user sends under local trust, in steps: the reward, clipped, with one whole
// noise. It may be seen by everybody. A user must not send for one reward twice.
func LocalReport(n Noise, c Clip, reward float64) (int64, error) {
	z, err := n.Draw()
	return c.Steps(reward) + z, err
}

// Round is what a user splits between two servers: the reward, clipped, as a multiple of 1/grid of
// the range, rounded up with the probability of the fraction and else down, so that its mean is the
// reward. The reward's share of the range is taken as a multiple of 2^-53. grid is from 1 to 2^20.
func (d Clip) Round(reward float64, grid int) (int, error) {
	if grid < 1 || grid > gridSteps {
		return 0, fmt.Errorf("grid is %d, must be from 1 to %d", grid, gridSteps)
	}
	src, err := noise.Secure()
	if err != nil {
		return 0, err
	}
	return int(round(d.share(reward), int64(grid), src)), nil
}

// GatheredMechanism is what a release of n decisions' gathered sum is charged for, 1 at least: the
// stated mechanism's noise on the grid of Real, at a price that is at most that of Real in ε (of
// Laplace) or in ρ (of Gaussian, whose (ε,δ) is what that ρ promises, and not the smaller one of
// μ-GDP). Its Invited is the least power of two that is not below n.
//
// Of secagg it is that of each of the cohorts whose sums add up to the release: a reward is in one
// of them.
func GatheredMechanism(stated privacy.Mechanism, g Gathering, n int) (privacy.Aggregated, error) {
	p, err := newGatheredPlan(stated, g)
	if err != nil {
		return privacy.Aggregated{}, err
	}
	return p.mechanism(n)
}

// CohortMechanism is what users draw their shares from (NewRandomizer) in a cohort of so many
// invited, at least g.Users, under TrustSecAgg.
func CohortMechanism(stated privacy.Mechanism, g Gathering, invited int) (privacy.Aggregated, error) {
	if g.Trust != privacy.TrustSecAgg {
		return privacy.Aggregated{}, fmt.Errorf("gathering: trust is %q, must be %s: others have no cohorts",
			g.Trust, privacy.TrustSecAgg)
	}
	if err := g.Validate(); err != nil {
		return privacy.Aggregated{}, err
	}
	whole, err := NoiseOf(stated)
	if err != nil {
		return privacy.Aggregated{}, err
	}
	return whole.Cohort(g.Users, invited)
}

// Cohort is CohortMechanism of a whole noise: what users draw their shares from, of whom at least
// users are promised to answer and to be honest, when so many are invited.
func (n Noise) Cohort(users, invited int) (privacy.Aggregated, error) {
	g := Gathering{privacy.TrustSecAgg, users}
	if err := g.Validate(); err != nil {
		return privacy.Aggregated{}, err
	}
	if n.Name != privacy.NoiseLaplace && n.Name != privacy.NoiseGaussian || n.Num == 0 || n.Den == 0 {
		return privacy.Aggregated{}, fmt.Errorf("gathering: noise is %v, must be laplace or gaussian, "+
			"with some noise", n)
	}
	if invited < users || invited > maxCohort {
		return privacy.Aggregated{}, fmt.Errorf("gathering: %d are invited to a cohort, must be from %d to %d",
			invited, users, maxCohort)
	}
	return planOf(n, g).of(invited)
}

// CohortSum is the noisy sum, in steps, that a total modulo m.Modulus stands for, if so many
// answered.
func CohortSum(m privacy.Aggregated, total uint64, answers int) (int64, error) {
	switch {
	case m.Trust != privacy.TrustSecAgg || m.G != gridSteps:
		return 0, fmt.Errorf("gathering: mechanism %v must be a cohort's", m)
	case total >= uint64(m.Modulus):
		return 0, fmt.Errorf("gathering: %w: a total must be below the modulus, %d", ErrMessage, m.Modulus)
	case answers < m.Users || answers > m.Invited:
		return 0, fmt.Errorf("gathering: %w: %d, must be from %d to %d", ErrAnswers, answers,
			m.Users, m.Invited)
	}
	a := Analyser{modulus: uint64(m.Modulus), g: m.G, tau: m.Tau}
	return a.decode(total, answers), nil
}

// A gatheredPlan is a stated mechanism and how its sums are gathered.
type gatheredPlan struct {
	Gathering
	whole Noise // one whole noise
	share Noise // of a user of a cohort: Num/Den of an Aggregated; else whole
	most  int   // rewards of a release
}

func newGatheredPlan(stated privacy.Mechanism, g Gathering) (gatheredPlan, error) {
	if err := g.Validate(); err != nil {
		return gatheredPlan{}, err
	}
	whole, err := NoiseOf(stated)
	if err != nil {
		return gatheredPlan{}, err
	}
	return planOf(whole, g), nil
}

func planOf(whole Noise, g Gathering) gatheredPlan {
	p := gatheredPlan{Gathering: g, whole: whole, share: whole}
	if g.Trust == privacy.TrustSecAgg {
		if whole.Name == privacy.NoiseGaussian { // variances add up
			p.share.Num = (whole.Num + uint64(g.Users) - 1) / uint64(g.Users)
		} else {
			p.share.Name = privacy.NoisePolya
		}
	}
	// n·(2^20 + 2τ) + 1 below 2^63, and a power of two
	each := gridSteps + 2*uint64(whole.Reach())
	p.most = int(min(uint64(1)<<(62-bits.Len64(each)), uint64(maxGathered)))
	return p
}

// maxGathered bounds the rewards of a release.
const maxGathered = min(1<<40, math.MaxInt/4+1)

// mechanism is that of a release of n decisions.
func (p gatheredPlan) mechanism(n int) (privacy.Aggregated, error) {
	if n < 1 || n > p.most {
		return privacy.Aggregated{}, fmt.Errorf("gathered: a release has %d rewards, must have from 1 to %d",
			n, p.most)
	}
	return p.of(max(1<<bits.Len(uint(n-1)), p.Users))
}

// of is the mechanism of so many invited.
func (p gatheredPlan) of(invited int) (privacy.Aggregated, error) {
	m := privacy.Aggregated{Trust: p.Trust, Noise: p.share.Name, G: gridSteps, Users: max(1, p.Users),
		Invited: invited, Num: p.share.Num, Den: p.share.Den, Tau: p.reach(invited) * p.own()}
	m.Modulus = int64(invited)*gridSteps + 2*m.Tau + 1
	return m, m.Validate()
}

// own is 2 of two servers, whose noises are two.
func (p gatheredPlan) own() int64 {
	if p.Trust == privacy.TrustTwoServer {
		return 2
	}
	return 1
}

// reach is how far the noise in a gathered sum of so many answers may go, but with probability
// 2^-64 for each whole noise.
func (p gatheredPlan) reach(answers int) int64 {
	noises := int64(1)
	switch p.Trust {
	case privacy.TrustLocal:
		noises = int64(answers)
	case privacy.TrustSecAgg:
		noises = (int64(answers) + int64(p.Users) - 1) / int64(p.Users)
	}
	return noises * p.whole.Reach()
}

// Gathered is the curator of rewards that nobody sees: of each release it is told what was gathered,
// a sum with noise in it, by AddNoisy, and the public defaults of what did not come, by AddSteps.
//
//	two-server  what is gathered has one whole noise, of the helper. Release adds another: the
//	            leader's own. Each protects alone, if the other server's noise is known.
//	local       every answer has a whole noise, and Release adds none.
//	secagg      every answer has a share; Users shares are a whole noise. Release adds none.
//
// The noise is that of Real for the stated mechanism (NoiseOf), on the same grid, and so no release
// costs more than Real's, whatever trust: of two servers it is charged for one noise, as the other
// one's may be known to whoever looks. The Tail is that of all the noise, were all decisions of the
// release answered: it depends on their number alone, not on how many reports came.
//
// It is a StepCurator; Add, AddSum and Ask are errors: no reward comes here. Steps are counted as
// with Real, the 0 steps of decisions whose reward is in the gathered sum too.
type Gathered struct {
	*curator[int64]
	plan gatheredPlan
	src  rand.Source
	came []gatheredSum
}

// gatheredSum is what was gathered for an open slot.
type gatheredSum struct {
	told    bool
	answers int
	sum     int64
}

// RealGathered returns a curator of gathered sums. Its own noise is exact, from a ChaCha8 generator
// keyed by the operating system. cfg.Mechanism must be privacy.Laplace or Gaussian with some noise,
// and cfg.Trust and Unclipped are errors.
func RealGathered(cfg Config, g Gathering) (*Gathered, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	c, err := newGathered(cfg, g, src)
	if err == nil {
		drawAhead(c.curator)
	}
	return c, err
}

// newGathered is RealGathered on given bits. Whoever knows them knows the noise.
func newGathered(cfg Config, g Gathering, src rand.Source) (*Gathered, error) {
	switch {
	case cfg.Trust != nil:
		return nil, fmt.Errorf("curator: trust is %s, must be missing where sums are gathered", cfg.Trust.Model)
	case cfg.Unclipped:
		return nil, errors.New("curator: unclipped is true, must be false for real rewards")
	}
	c := &Gathered{src: src, came: make([]gatheredSum, max(0, cfg.Arms))}
	c.plan.Gathering = g
	base, err := newCurator(cfg, c.noise)
	if err != nil {
		return nil, err
	}
	base.grid, base.half, base.step = gridSteps, 0.5, 1.0/gridSteps
	base.atOnce = 1
	c.curator = base
	return c, nil
}

// noise makes a stated mechanism ready.
func (c *Gathered) noise(stated privacy.Mechanism) (recipe[int64], error) {
	p, err := newGatheredPlan(stated, c.plan.Gathering)
	if err != nil {
		return recipe[int64]{}, err
	}
	charge, err := p.mechanism(1)
	if err != nil {
		return recipe[int64]{}, err
	}
	out := recipe[int64]{family: once, noise: silent{}, charge: charge, tails: make([]privacy.Tail, 1),
		most: p.most}
	if p.Trust == privacy.TrustTwoServer {
		if out.noise, err = p.whole.law(c.src); err != nil {
			return recipe[int64]{}, err
		}
	}
	c.plan = p
	return out, nil
}

// AddNoisy tells what was gathered for the arm's open slot: the sum, in steps, of so many of its
// decisions' rewards, with the noise that Gathered says. It is told once before each release, also
// that nothing came (0, 0). The decisions are counted by AddSteps.
//
// Of local and secagg the sum is clipped to where noise can take it (Noise.Reach). Of two servers it
// is any element of Prio3's field, as the integer next to 0: the leader's noise is added there, and
// only then is the sum clipped. A helper that lies about its share could else place the edge of the
// field, or of the clip, between two sums, and see without noise on which side of it the sum is.
func (c *Gathered) AddNoisy(arm, answers int, sum int64) error {
	switch {
	case uint(arm) >= uint(len(c.slots)):
		return fmt.Errorf("curator: arm is %d, must be from 0 to %d", arm, len(c.slots)-1)
	case answers < 0 || answers > c.most:
		return fmt.Errorf("curator: answers of arm %d are %d, must be from 0 to %d", arm, answers, c.most)
	case c.came[arm].told:
		return fmt.Errorf("curator: the sum of arm %d was gathered already: it is released once", arm)
	}
	if c.plan.Trust != privacy.TrustTwoServer {
		sum = c.plan.clip(sum, answers)
	}
	c.came[arm] = gatheredSum{true, answers, sum}
	return nil
}

// clip is a sum of so many answers where all of its noise can take it.
func (p gatheredPlan) clip(sum int64, answers int) int64 {
	reach := p.reach(answers) * p.own()
	return min(max(sum, -reach), int64(answers)*gridSteps+reach)
}

// fieldOrder is the order of Prio3's field.
const fieldOrder = 1<<64 - 1<<32 + 1

// inField is x + z in Prio3's field, as the integer next to 0.
func inField(x, z int64) int64 {
	element := func(x int64) uint64 {
		if x < 0 {
			return fieldOrder - -uint64(x) // |x| is at most 2^63, below the order
		}
		return uint64(x)
	}
	sum, carry := bits.Add64(element(x), element(z), 0)
	if carry > 0 || sum >= fieldOrder {
		sum -= fieldOrder
	}
	if sum > fieldOrder/2 {
		return -int64(fieldOrder - sum)
	}
	return int64(sum)
}

// Release implements Curator. An arm for whose slot nothing was told (AddNoisy), or more answers
// than it has decisions, is an error, and nothing is released.
func (c *Gathered) Release(arms []int) (privacy.Released, error) {
	if err := c.check(arms); err != nil {
		return privacy.Released{}, err
	}
	for _, a := range arms {
		switch came := c.came[a]; {
		case !came.told:
			return privacy.Released{}, fmt.Errorf("curator: release of arm %d, whose sum was not gathered", a)
		case came.answers > c.slots[a].n:
			return privacy.Released{}, fmt.Errorf("curator: release of arm %d with %d answers, "+
				"of %d decisions", a,
				came.answers, c.slots[a].n)
		}
	}
	if err := c.calibrate(arms); err != nil {
		return privacy.Released{}, err
	}
	before := slices.Clone(c.slots)
	sums, err := c.met(arms)
	if err != nil {
		return privacy.Released{}, err
	}
	for i, a := range arms {
		c.slots[a].sum += sums[i]
	}
	if own := c.curator.noise; c.plan.Trust == privacy.TrustTwoServer {
		c.curator.noise = silent{} // it is in the sums
		defer func() { c.curator.noise = own }()
	}
	released, err := c.releaseMany(arms)
	for _, a := range arms {
		if c.slots[a].id == before[a].id { // as before: its sum is told still
			c.slots[a] = before[a]
		} else {
			c.came[a] = gatheredSum{}
		}
	}
	return released, err
}

// met are the arms' gathered sums, of two servers with the leader's own noise.
func (c *Gathered) met(arms []int) ([]int64, error) {
	sums := make([]int64, len(arms))
	for i, a := range arms {
		sums[i] = c.came[a].sum
		if c.plan.Trust != privacy.TrustTwoServer {
			continue
		}
		z, err := c.curator.noise.Draw(1)
		if err != nil {
			return nil, fmt.Errorf("curator: noise of arm %d: %w", a, err)
		}
		sums[i] = c.plan.clip(inField(sums[i], z), c.came[a].answers)
	}
	return sums, nil
}

// calibrate has the mechanism and the tail of the largest of these arms' slots.
func (c *Gathered) calibrate(arms []int) error {
	n := 0
	for _, a := range arms {
		n = max(n, c.slots[a].n)
	}
	var err error
	c.charge, c.tails[0], err = c.plan.form(n)
	return err
}

// form is what a release of n decisions at most is charged for, and its tail.
func (p gatheredPlan) form(n int) (privacy.Mechanism, privacy.Tail, error) {
	m, err := p.mechanism(n)
	if err != nil {
		return nil, privacy.Tail{}, fmt.Errorf("curator: %w", err)
	}
	if w := p.whole; p.Trust == privacy.TrustTwoServer && w.Name == privacy.NoiseLaplace {
		return m, twoLaplaces(float64(w.Num) / float64(w.Den)), nil
	}
	return m, m.TailOf(n), nil
}

// twoLaplaces is the tail of the sum S of two discrete Laplace noises of scale b, in steps, on both
// sides. With β = e^{−1/b}, P(S = k) = ((1−β)/(1+β))²·β^|k|·((1+β²)/(1−β²) + |k|), which adds up to
//
//	P(S ≥ y) = β^y·((1+β+2β²)/(1+β) + y(1−β))/(1+β)² ≤ ½(1 + y/2b)·e^{−y/b}·e^{1/2b}
//
// for whole y ≥ 0: of two continuous ones it is the same without the last factor. Here (1−β)/(1+β)²
// = ½e^{1/2b}·tanh(1/2b)/cosh(1/2b) is at most e^{1/2b}/4b, and (1+β+2β²)/(1+β)³ at most ½e^{1/2b}:
// with s = √β, (1+s²)³ − 2s(1+s²+2s⁴) is (s−1)(s⁵−3s⁴−2s²+s−1), two factors that are not above 0
// for s in [0,1], as −2s²+s−1 is not. Both sides together have twice that. As the right side falls,
// it bounds P(|S| > y) for all real y ≥ 0, too.
//
// In z = y/b, z − log(1+z/2) is convex, so at least its tangent at z₀, ((1+z₀)z)/(2+z₀) − L with L
// = log(1+z₀/2) − z₀/(2+z₀): P(|S| > b(2+z₀)/(1+z₀)·(x+L+1/2b)) ≤ e^{−x}. With z₀ = 20 that is less
// than 3 % above the best for x from 3 to 60, and a third less than the tail of a sum of any number
// of noises (privacy.Aggregated.TailOf) at x = 10.
func twoLaplaces(b float64) privacy.Tail {
	const z = 20
	return privacy.Tail{H: (2 + z) / float64(1+z) * b / gridSteps,
		Log: math.Log(1+z/2.) - z/float64(2+z) + 1/(2*b)}
}

func (c *Gathered) outline(arms []int) (Form, error) {
	if err := c.check(arms); err != nil {
		return Form{}, err
	}
	if err := c.calibrate(arms); err != nil {
		return Form{}, err
	}
	return c.curator.outline(arms)
}

// Forget implements Curator.
func (c *Gathered) Forget(m privacy.Mechanism) error {
	if err := c.curator.Forget(m); err != nil {
		return err
	}
	clear(c.came)
	return nil
}

// errNoReward is the error of a reward in the open.
var errNoReward = errors.New("curator: its rewards are gathered: none comes in the open")

// Add implements Curator: it is an error.
func (*Gathered) Add(int, float64) error { return errNoReward }

// AddSum implements Curator: it is an error.
func (*Gathered) AddSum(int, int, float64) error { return errNoReward }

// Ask implements Curator: it is an error.
func (*Gathered) Ask([]int, float64) (privacy.Released, error) {
	return privacy.Released{}, errAsk
}

// NewGatheredOutline is the outline of what RealGathered returns.
func NewGatheredOutline(cfg Config, g Gathering) (*Outline, error) {
	cfg.Ledger = nil
	of, err := newGathered(cfg, g, nil) // nothing is ever drawn
	if err != nil {
		return nil, err
	}
	return &Outline{of}, nil
}
