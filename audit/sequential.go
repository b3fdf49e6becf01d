package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A test that stops when it knows: (ε,δ)-DP as a bookmaker, an adversary that bets against it.
//
// A game tosses a fair coin, plays the world with the target or without it, and shows a score.
// Whatever was seen before — games against any adversaries, scores of any attacks — chooses the
// adversary of the next game and, for each score it may have, a forecast p of "in". Let
// π = e^ε/(1+e^ε), q = max(p, 1−p), and for each of the two sides a cap c ∈ [π, 1], chosen before the
// game. The game multiplies the wealth of who bets by
//
//	K · min(q,c)/π          if the side that p favours is right,
//	K · (1−min(q,c))/(1−π)  if it is wrong,
//	K                       if q ≤ π: no bet,
//	K = 1/(1 + δ(c_in/π − 1)/2 + δ(c_out/π − 1)/2).
//
// Under (ε,δ)-DP its expectation, given all that was before, is at most 1. Proof: write the factor as
// K + u(y) if "in" is right and K − e^ε·u(y) if it is wrong, where u = K(min(p,c_in)/π − 1)⁺, and with
// v in the same way for "out": (1−q)/(1−π) − 1 is −e^ε(q/π − 1). Of P with the target and Q without
// it, the bets on "in" bring (∫u dP − e^ε∫u dQ)/2 = ½∫₀ P(u>s) − e^ε·Q(u>s) ds, which is at most δ/2
// times the largest value of u, K(c_in/π − 1); those on "out" likewise. With K the sum is 1. ∎ For
// δ = 0 it is the likelihood ratio of the forecast to the nearest odds that the claim allows, and no
// other bet grows faster if the forecast is the truth and the two worlds mirror each other.
//
// So wealth is a nonnegative supermartingale from 1, as is a mean of several with caps of their own.
// A true claim lets it reach 1/γ at any time with probability at most γ (Ville 1939): nothing is to be
// paid for looking after each game, for the search, or for many attacks. Bets that test DP are of
// González et al. (2025), there by kernels; betting in the place of bounds is of Waudby-Smith and Ramdas
// (2024).
//
// An ε is refuted if it and each smaller one of a fixed grid are. The true ε lies below one point of
// the grid at least; unless the first such point is refuted the bound is right, so that it costs γ
// once. What is paid for the freedom to stop, measured on Laplace noise at ε = 1: after 10⁴ and 10⁵ games
// the bound is 1.33 and 1.21 times as far below the truth at γ = 0.05 as that of Scores.Odds, which looks
// once, and 0.98 and 0.97 times at γ = 10⁻⁶; 1.76 and 1.51, 1.18 and 1.13 times as far as the best rule
// if that is known before (TestAnytimeExcess).

// A stake is how far, in log-odds beyond ε, bets on either side go.
type stake struct{ in, out float64 }

// stakesFor are those that are averaged over. Without δ the cap is free.
func stakesFor(delta float64) (all []stake) {
	if delta == 0 {
		return []stake{{math.Inf(1), math.Inf(1)}}
	}
	for _, c := range []float64{0.125, 0.25, 0.5, 1, 2, math.Inf(1)} {
		all = append(all, stake{c, c}, stake{c, 0}, stake{0, c})
	}
	return all
}

// A wealth is what bets against one claim have made of 1.
type wealth struct {
	pi, logPi, logRest float64
	enough             float64 // log 1/γ
	purses             []purse
	refuted            bool // it was enough at some time
}

// A purse is the wealth of one stake, in logarithms.
type purse struct {
	sum, idle   float64
	right, loss [2]float64 // at the cap of "out" and "in"
}

func newWealth(epsilon, delta, gamma float64) *wealth {
	w := &wealth{pi: 1 / (1 + math.Exp(-epsilon)), logPi: -math.Log1p(math.Exp(-epsilon)),
		logRest: -epsilon - math.Log1p(math.Exp(-epsilon)), enough: -math.Log(gamma)}
	for _, s := range stakesFor(delta) {
		p, most := purse{}, 0.0
		for side, c := range []float64{s.out, s.in} {
			p.right[side] = -math.Log1p(math.Exp(-epsilon-c)) - w.logPi
			p.loss[side] = p.right[side] - c
			most += math.Expm1(p.right[side])
		}
		p.idle = -math.Log1p(delta * most / 2)
		w.purses = append(w.purses, p)
	}
	return w
}

// add takes a game in, of which p was said before.
func (w *wealth) add(p float64, in bool) {
	side, q := 0, 1-p
	if p > 0.5 {
		side, q = 1, p
	}
	right, loss := 0.0, 0.0
	if q > w.pi {
		right, loss = math.Log(q)-w.logPi, math.Log1p(-q)-w.logRest
	}
	most := math.Inf(-1)
	for i := range w.purses {
		b := &w.purses[i]
		switch {
		case q <= w.pi:
			b.sum += b.idle
		case in == (side == 1):
			b.sum += b.idle + min(right, b.right[side])
		default:
			b.sum += b.idle + max(loss, b.loss[side])
		}
		most = max(most, b.sum)
	}
	w.refuted = w.refuted || most >= w.enough && w.log() >= w.enough
}

// log is the logarithm of the mean wealth.
func (w *wealth) log() float64 {
	sums := make([]float64, len(w.purses))
	for i, p := range w.purses {
		sums[i] = p.sum
	}
	return logSum(sums) - math.Log(float64(len(sums)))
}

// A bet is a forecast of a game, and what came.
type bet struct {
	p  float64
	in bool
}

// refutes says whether bets on these games refute a claim, at any time.
func refutes(games []bet, epsilon, delta, gamma float64) bool {
	w := newWealth(epsilon, delta, gamma)
	for _, g := range games {
		if w.add(g.p, g.in); w.refuted {
			return true
		}
	}
	return false
}

// A panel is experts who forecast in turn, and the weights that they have earned.
type panel struct{ weights, said []float64 }

// newPanel has the first expert say that all is a coin, with so much weight.
func newPanel(experts int, coin float64) panel {
	p := panel{weights: make([]float64, experts), said: make([]float64, experts)}
	for i := range p.weights {
		p.weights[i], p.said[i] = (1-coin)/float64(experts-1), 0.5
	}
	p.weights[0] = coin
	return p
}

// forecast is the mean of what was said.
func (p panel) forecast() (sum float64) {
	for i, w := range p.weights {
		sum += float64(w * p.said[i])
	}
	return sum
}

// learn gives experts the weight of what they have said, and leaves each so much that it can come back.
func (p panel) learn(in bool) {
	all := 0.0
	for i, q := range p.said {
		if !in {
			q = 1 - q
		}
		p.weights[i] *= max(q, unsure) // none is lost by one game
		all += p.weights[i]
	}
	for i := range p.weights {
		p.weights[i] = max(p.weights[i]/all, 1e-12)
	}
}

const (
	// unsure is the least probability that is forecast at first: bets are never all of what is there.
	unsure = 1. / 512
	// remembered is how many scores tell where their middle is.
	remembered = 1024
	slopes     = 9
)

// lines are experts for whom log-odds are a line of a score, cut off at both ends: how steep, how
// far, and from where.
var lines = func() (all [][3]float64) {
	for _, slope := range []float64{0.5, 1, 2, 4, 8} {
		for _, far := range []float64{0.25, 1, 4} {
			for _, from := range []float64{-0.5, 0, 0.5} {
				all = append(all, [3]float64{slope, far, from})
			}
		}
	}
	return all
}()

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// common is what the games against all adversaries teach: experts for whom the score of an attack is a
// log-likelihood ratio, of as much noise as is claimed or of less.
type common struct {
	ratios  []panel // of each attack
	attacks panel   // a coin, and the ratios
}

func newCommon(attacks int) *common {
	c := &common{attacks: newPanel(1+attacks, 0.5)}
	for range attacks {
		c.ratios = append(c.ratios, newPanel(1+slopes, 0.1))
	}
	return c
}

// A place is where the scores of an attack lie, and how wide.
type place struct {
	past       []float64
	mid, width float64 // 0: not known yet
}

// of is a score from the middle, in widths.
func (l *place) of(x float64) float64 {
	return (min(max(x, -math.MaxFloat64/4), math.MaxFloat64/4) - l.mid) / l.width
}

// see takes a score in, and looks anew after 16, 32, 64 and so on.
func (l *place) see(x float64) {
	if len(l.past) == remembered {
		return
	}
	l.past = append(l.past, x)
	if n := len(l.past); n >= 16 && n&(n-1) == 0 {
		s := sorted(l.past)
		l.mid, l.width = (s[(n-1)/2]+s[n/2])/2, 0
		for _, v := range s { // of the middle, which no outlier moves
			l.width += min(math.Abs(v-l.mid), max(s[3*n/4]-l.mid, l.mid-s[n/4], math.Abs(l.mid)*1e-9)*4)
		}
		if l.width /= float64(n); l.width == 0 {
			for _, v := range s {
				l.width += math.Abs(v-l.mid) / float64(n)
			}
		}
	}
}

// A forecaster says of the games against one adversary how likely the target is in, and learns. It
// is a mean of experts by what each has said before; nothing in it can make a test wrong, only slow.
type forecaster struct {
	*common
	own    panel   // a coin, all in common, then the ratios and the lines of each attack, then the table
	lines  []panel // of each attack
	places []place
	counts map[float64][2]float64 // of numbers that stand for transcripts; nil: none
	n      int
}

func newForecaster(c *common, table bool) *forecaster {
	k := len(c.ratios)
	f := &forecaster{common: c, places: make([]place, k), own: newPanel(2+2*k, 0.2)}
	for range k {
		f.lines = append(f.lines, newPanel(1+len(lines), 0.1))
	}
	if table {
		f.counts, f.own = map[float64][2]float64{}, newPanel(3+2*k, 0.2)
	}
	return f
}

// forecast is the probability of "in" where the attacks have these scores.
func (f *forecaster) forecast(x []float64) float64 {
	for k := range f.places {
		r := f.ratios[k]
		for i := range slopes {
			r.said[1+i] = sigmoid(math.Exp2(float64(i)/2) * x[k])
		}
		if at := &f.places[k]; at.width > 0 {
			z := at.of(x[k])
			for i, e := range lines {
				f.lines[k].said[1+i] = sigmoid(e[0] * min(max(z-e[2], -e[1]), e[1]))
			}
		} else {
			for i := range lines {
				f.lines[k].said[1+i] = 0.5
			}
		}
		f.attacks.said[1+k] = r.forecast()
		f.own.said[2+2*k], f.own.said[3+2*k] = f.attacks.said[1+k], f.lines[k].forecast()
	}
	f.own.said[1] = f.attacks.forecast()
	if f.counts != nil {
		c := f.counts[x[len(x)-1]]
		f.own.said[len(f.own.said)-1] = (c[1] + 0.5) / (c[0] + c[1] + 1)
	}
	least := unsure / (1 + float64(f.n)/256) // so that every ε can be refuted in the end
	return min(max(f.own.forecast(), least), 1-least)
}

// learn takes in what came where the attacks had these scores.
func (f *forecaster) learn(x []float64, in bool) {
	f.own.learn(in)
	f.attacks.learn(in)
	for k := range f.places {
		f.ratios[k].learn(in)
		f.lines[k].learn(in)
		f.places[k].see(x[k])
	}
	if f.counts != nil {
		key, side := x[len(x)-1], 0
		if in {
			side = 1
		}
		c := f.counts[key]
		c[side]++
		f.counts[key] = c
	}
	f.n++
}

// best is the attack that experts of the most weight look at.
func (f *forecaster) best() (attack int) {
	most, own := 0.0, f.own.weights
	for k := range f.places {
		sum := own[2+2*k] + own[3+2*k] + own[1]*f.attacks.weights[1+k]
		if f.counts != nil && k == len(f.places)-1 {
			sum += own[len(own)-1]
		}
		if sum > most {
			attack, most = k, sum
		}
	}
	return attack
}

// A contest is what is played until it is known.
type contest struct {
	name        string
	adversaries []string
	models      []string // of each adversary
	attacks     []string
	from        []int // places of the attacks among a game's scores
	width       int   // scores of a game
	table       bool  // those of the last attack stand for transcripts
	world       func(adversary int) func(in bool, src *noise.Fast, scores []float64) error
	claim       func() privacy.Loss // after the games so far
}

// A challenger plays a contest's games against one adversary.
type challenger struct {
	*forecaster
	src    noise.Fast
	game   func(in bool, src *noise.Fast, scores []float64) error
	growth float64 // of wealth that was to be expected, and a little of what was told at all
}

// A race is a contest under way.
type race struct {
	contest
	delta, gamma, until float64
	most                int
	challengers         []*challenger
	played              []bet
	claimed             float64
	wealth              *wealth // against the ε that is to be refuted
	scores, seen        []float64
	patient             int // so many games are played before the grid is looked at again
}

// errBetOver ends a race: its bound is there, or it has no more games.
var errBetOver = errors.New("the bets are over")

// begin is how many games all adversaries have at first, two each at least.
const begin = 32

// run plays until it is known that ε is above until, or above the claim if that is 0, and at most so
// many games. First all adversaries have a few games, then the better half of them twice as many, and
// so on; the last one has as many as all before, and then all begin again, with more. Each game counts.
func (c contest) run(ctx context.Context, delta, gamma, until float64, most int, key noise.Key) (Finding, error) {
	r := &race{contest: c, delta: delta, gamma: gamma, until: until, most: most,
		scores: make([]float64, c.width), seen: make([]float64, len(c.from))}
	shared := newCommon(len(c.from))
	all := make([]int, len(c.adversaries))
	for i := range c.adversaries {
		all[i] = i
		r.challengers = append(r.challengers, &challenger{forecaster: newForecaster(shared, c.table),
			src: c.key(key, i).Fast(1)[0]})
	}
	if len(all) == 0 {
		return Finding{}, errors.New("audit: no adversaries, must be at least 1")
	}
	best := 0
	err := func() error {
		for first := max(2, begin/len(all)); ; first *= 4 {
			left := slices.Clone(all)
			for n := first; ; n *= 2 {
				for _, i := range left {
					if err := r.play(ctx, i, n); err != nil {
						return err
					}
				}
				slices.SortStableFunc(left, func(a, b int) int { return r.better(a, b) })
				if best = left[0]; len(left) == 1 {
					break
				}
				left = left[:(len(left)+1)/2]
			}
			if err := r.play(ctx, best, len(r.played)); err != nil {
				return err
			}
		}
	}()
	if !errors.Is(err, errBetOver) {
		return Finding{}, err
	}
	for i, x := range r.challengers { // that of the most games, and of those the best
		if n := x.n - r.challengers[best].n; n > 0 || n == 0 && r.better(i, best) < 0 {
			best = i
		}
	}
	return r.finding(best)
}

// key is that of an adversary's games. One of a name that is there before has games of its own too, or a game would
// count many times.
func (c contest) key(key noise.Key, i int) noise.Key {
	name := c.adversaries[i]
	key.Role = noise.Role("audit anytime " + name)
	if slices.Index(c.adversaries, name) < i {
		key.Role += noise.Role(fmt.Sprintf(", number %d", i))
	}
	return key
}

// better orders challengers by what a game with them is worth.
func (r *race) better(a, b int) int {
	x, y := r.challengers[a], r.challengers[b]
	switch d := x.growth/float64(max(x.n, 1)) - y.growth/float64(max(y.n, 1)); {
	case d > 0:
		return -1
	case d < 0:
		return 1
	}
	return 0
}

// play plays n games against an adversary.
func (r *race) play(ctx context.Context, i, n int) error {
	c := r.challengers[i]
	if c.game == nil {
		c.game = r.world(i)
	}
	for range n {
		if len(r.played) >= r.most {
			r.look()
			return errBetOver
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		in := c.src.Uint64()>>63 == 1
		if err := c.game(in, &c.src, r.scores); err != nil {
			return fmt.Errorf("audit: game %d: %w", len(r.played), err)
		}
		for k, at := range r.from {
			if r.seen[k] = r.scores[at]; math.IsNaN(r.seen[k]) {
				return fmt.Errorf("audit: %w (game %d)", ErrNaNScore, len(r.played))
			}
		}
		g := bet{c.forecast(r.seen), in}
		c.learn(r.seen, in)
		r.played = append(r.played, g)
		if r.wealth != nil {
			r.wealth.add(g.p, g.in)
		}
		known, n := r.wealth != nil && r.wealth.refuted, len(r.played)
		if n&(n-1) == 0 || known { // the claim may have grown
			r.look()
		}
		c.growth += r.growth(g.p)
		if known && r.wealth.refuted && n >= r.patient {
			if r.low() >= r.target() {
				return errBetOver
			}
			r.patient = n + n/16 // all of the grid is much to look at
		}
	}
	return nil
}

// growth is what is to be expected of a bet with this forecast, and, far less, of one against ε = 0.
func (r *race) growth(p float64) (sum float64) {
	q := max(p, 1-p)
	for _, x := range []struct{ pi, weight float64 }{{r.wealth.pi, 1}, {0.5, 1e-3}} {
		if q > x.pi {
			sum += x.weight * (q*math.Log(q/x.pi) + (1-q)*math.Log((1-q)/(1-x.pi)))
		}
	}
	return sum
}

// target is the ε that is to be refuted.
func (r *race) target() float64 {
	if r.until > 0 {
		return r.until
	}
	return r.claimed
}

// look asks for the claim, and bets anew if what is to be refuted has changed by it.
func (r *race) look() {
	before := r.target()
	r.claimed = claimOf(r.claim(), r.delta)
	if r.wealth != nil && r.target() == before {
		return
	}
	r.wealth = newWealth(r.target(), r.delta, r.gamma)
	for _, g := range r.played {
		r.wealth.add(g.p, g.in)
	}
}

// steps is how many steps the bound has up to the ε that is to be refuted: a power of two, so that this
// is one of them exactly.
const steps = 64

// low is the largest ε of the grid that is refuted with all below it, −1 for none.
func (r *race) low() float64 {
	top := r.target()
	if !(top > 0) || math.IsInf(top, 1) {
		top = 1
	}
	low := -1.0
	for k := range 8 * steps {
		e := top * float64(k) / steps
		if !refutes(r.played, e, r.delta, r.gamma) {
			break
		}
		low = e
	}
	return low
}

// finding is what is known of the best adversary's attack when the race is over.
func (r *race) finding(best int) (Finding, error) {
	c := r.challengers[best]
	f := Finding{Name: r.name, Claimed: r.claimed, Delta: r.delta, Gamma: r.gamma, Games: len(r.played),
		Attack: r.attacks[c.best()], Against: r.adversaries[best], Model: r.models[best]}
	if low := r.low(); low > 0 || low == r.claimed {
		f.Low = math.Nextafter(low, math.Inf(1)) // ε is above it
	}
	f.Refuted = f.Low > f.Claimed
	// Answers are those of one rule, and bets know more.
	if f.Estimate, f.High = r.answers().between(r.gamma, r.delta); !(f.Estimate >= f.Low) || !(f.High >= f.Low) {
		f.Estimate, f.High = math.NaN(), math.Inf(1)
	}
	return f, nil
}

// answers are those that forecasts near what is to be refuted, or beyond it, give.
func (r *race) answers() Answers {
	a := Answers{Games: len(r.played)}
	for _, g := range r.played {
		switch odds := math.Log(g.p / (1 - g.p)); {
		case !(math.Abs(odds) > 0.75*r.target()):
		case g.in == (odds > 0):
			a.Right++
		default:
			a.Wrong++
		}
	}
	return a
}
