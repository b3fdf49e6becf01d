package secagg

import (
	"fmt"
	"math"
	"sync"
)

// Mode says what the server is trusted with.
type Mode uint8

const (
	// SemiHonest: the server follows the protocol and is curious.
	SemiHonest Mode = 1
	// Malicious: the server lies at will about who takes part and who vanished, to whom it likes.
	// It draws the graph (see the package comment; Session.Complete lifts that).
	Malicious Mode = 2
)

func (m Mode) String() string {
	switch m {
	case SemiHonest:
		return "semi-honest"
	case Malicious:
		return "malicious"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

const (
	// statistical is σ: the probability that corrupt clients gather a threshold of shares, or that
	// the honest graph falls apart, is at most 2^-σ.
	statistical = 40
	// correctness is η: the probability that an honest run fails for want of shares is at most 2^-η.
	correctness = 20
	// completeBelow is the size below which every client is every other's neighbour.
	completeBelow = 50
	// maxClients bounds a session; a decoder relies on it.
	maxClients = 1 << 20
	// maxDegree bounds k, for the same reason.
	maxDegree = 1 << 14
)

// Params is the shape of the communication graph: N clients, each with K neighbours, any T of whom
// can open one secret of its own.
type Params struct {
	N, K, T int
}

// Choose gives the graph of a session with n clients, at most so many of whom are corrupt:
// complete below 50, else by [ruleA]. In the complete graph the number of corrupt neighbours is
// at most A = min(corrupt, n−1) with certainty, so T = A+1 against a semi-honest server and the
// least T with 2T > K+A against a malicious one, provided that n−⌊δn⌋−1 neighbours, those who are
// left, are as many as T.
//
// The corrupt are counted among those who are enrolled ([Session.Corrupt]) and not among the n:
// whoever decides who takes part may leave honest clients out, and never a corrupt one.
func Choose(n, corrupt int, delta float64, mode Mode, complete bool) (Params, error) {
	if err := checkGraph(n, corrupt, delta, mode); err != nil {
		return Params{}, err
	}
	if n >= completeBelow && !complete {
		return ruleA(n, corrupt, delta, mode)
	}
	p := Params{N: n, K: n - 1}
	if p.K > maxDegree {
		return Params{}, fmt.Errorf("%w: the complete graph on %d clients has degree %d, at most "+
			"%d is allowed", ErrInfeasible, n, p.K, maxDegree)
	}
	a := min(corrupt, p.K)
	p.T = max(a+1, 2)
	if mode == Malicious {
		p.T = max((p.K+a)/2+1, 2)
	}
	if left := n - floorOf(delta, n) - 1; p.T > left {
		return Params{}, fmt.Errorf("%w: n=%d, %d corrupt, δ=%g, %v server: threshold %d, but "+
			"only %d neighbours may be left",
			ErrInfeasible, n, corrupt, delta, mode, p.T, left)
	}
	return p, nil
}

// ruleA chooses the degree K and the threshold T of a Harary graph over a random permutation of n
// clients, of whom at most so many are corrupt and at most δn vanish. It is the rule of the
// production code of Bell, Bonawitz, Gascón, Lepoint and Raykova ("Secure single-server aggregation
// with (poly)logarithmic overhead", CCS 2020), with their probabilities, of which [most] has more
// than the union bound: the first K = 2, 4, 6, … such that
//
//   - but with probability 2^-40, both: the honest surviving clients stay connected, and no client
//     has T corrupt neighbours (so T−1 shares tell nothing); against a malicious server 2T exceeds
//     K plus the corrupt neighbours, so that no two disjoint groups of honest neighbours open both
//     secrets of one client,
//   - every client keeps T neighbours but with probability 2^-20.
//
// Feasible only for γ+δ ≤ 0.9, against a malicious server γ+2δ ≤ 0.9, with γ = corrupt/n.
func ruleA(n, corrupt int, delta float64, mode Mode) (Params, error) {
	if err := checkGraph(n, corrupt, delta, mode); err != nil {
		return Params{}, err
	}
	load := float64(corrupt)/float64(n) + delta
	if mode == Malicious {
		load += delta
	}
	if load > 0.9+1e-12 {
		return Params{}, fmt.Errorf("%w: %d corrupt of %d and δ=%g are too much for a %v server",
			ErrInfeasible, corrupt, n, delta, mode)
	}
	for k := 2; k < n-1 && k <= maxDegree; k += 2 {
		p := Params{N: n, K: k}
		if lo, hi := p.thresholds(corrupt, delta, mode); lo <= hi {
			p.T = lo
			return p, nil
		}
	}
	return Params{}, fmt.Errorf("%w: n=%d, %d corrupt, δ=%g, %v server", ErrInfeasible, n, corrupt, delta, mode)
}

// Sufficient says whether p is at least as strict as what [Choose] asks for: a client checks the
// server's choice with it, without the search.
func (p Params) Sufficient(corrupt int, delta float64, mode Mode, complete bool) bool {
	if checkGraph(p.N, corrupt, delta, mode) != nil || p.T < 2 || p.T > p.K {
		return false
	}
	if p.N < completeBelow || complete {
		want, err := Choose(p.N, corrupt, delta, mode, complete)
		return err == nil && want == p
	}
	if p.K%2 != 0 || p.K >= p.N-1 || p.K > maxDegree {
		return false
	}
	lo, hi := p.thresholds(corrupt, delta, mode)
	return lo <= p.T && p.T <= hi
}

func checkGraph(n, corrupt int, delta float64, mode Mode) error {
	switch {
	case n < 3 || n > maxClients:
		return fmt.Errorf("%w: %d clients, allowed are 3 to %d", ErrTooFew, n, maxClients)
	case corrupt < 0 || corrupt > maxClients:
		return fmt.Errorf("%w: %d corrupt clients, must be from 0 to %d", ErrSession, corrupt, maxClients)
	case corrupt >= n:
		return fmt.Errorf("%w: %d clients, of whom all may be corrupt: %d of those who are "+
			"enrolled are", ErrTooFew, n, corrupt)
	}
	return checkRates(0, delta, mode)
}

func checkRates(gamma, delta float64, mode Mode) error {
	switch {
	case !(gamma >= 0 && gamma < 1):
		return fmt.Errorf("%w: gamma = %v, must be in [0, 1)", ErrSession, gamma)
	case !(delta >= 0 && delta < 1):
		return fmt.Errorf("%w: delta = %v, must be in [0, 1)", ErrSession, delta)
	case mode != SemiHonest && mode != Malicious:
		return fmt.Errorf("%w: mode = %d, must be SemiHonest or Malicious", ErrSession, mode)
	}
	return nil
}

// floorOf is ⌊rate·n⌋, where a product that misses a whole number by rounding counts as that number.
func floorOf(rate float64, n int) int { return int(math.Floor(float64(rate*float64(n)) + 1e-14)) }

// fallsApart bounds the probability that the clients who are neither corrupt nor gone fall apart:
// two runs of K/2 bad clients on the circle. n(n−k−1)/2 pairs of places, each bad with probability
// B(B−1)…(B−k+1)/(n(n−1)…(n−k+1)).
func (p Params) fallsApart(corrupt int, delta float64) float64 {
	n, k := p.N, p.K
	b := min(corrupt+floorOf(delta, n), n)
	if k > b {
		return 0
	}
	return math.Exp(math.Log(float64(n)) + math.Log(float64(n-k-1)) - math.Ln2 +
		logFactorial(b) - logFactorial(b-k) + logFactorial(n-k) - logFactorial(n))
}

// thresholds gives lo, the least threshold that is safe, and hi, the greatest that is reached. What
// 2^-40 leaves beside the probability that the graph falls apart is for corrupt neighbours.
func (p Params) thresholds(corrupt int, delta float64, mode Mode) (lo, hi int) {
	a := p.corruptNeighbours(corrupt, delta)
	lo = max(a+1, 2)
	if mode == Malicious {
		lo = max((p.K+a)/2+1, 2)
	}
	if lo > p.K {
		return lo, 0
	}
	return lo, p.K - p.most(floorOf(delta, p.N), math.Ldexp(1, -correctness))
}

// corruptNeighbours is how many of a client's neighbours are corrupt at most, and the graph of
// honest survivors connected, but with probability 2^-40: k if there is no such promise.
func (p Params) corruptNeighbours(corrupt int, delta float64) int {
	rest := math.Ldexp(1, -statistical) - p.fallsApart(corrupt, delta)
	if rest <= 0 {
		return p.K
	}
	return p.most(corrupt, rest)
}

// most is the least a, or little more, such that no client has more than a marked neighbours but
// with this probability, when at most so many clients are marked, a uniform set. That is the
// maximum of a scan: k places on the circle are looked at, those around each client. A client's own
// marked neighbours are HG(n, marked, k), so the union bound has n times its tail; and
// [Params.begins], which counts a crowd once and not for each client in it, goes on from there.
func (p Params) most(marked int, probability float64) int {
	tail, t := 0.0, p.K
	for ; t > 0; t-- { // from above, smallest terms first
		tail += hypergeometric(p.N, marked, p.K, t)
		if float64(p.N)*tail*rounding > probability {
			break
		}
	}
	for t > 0 && float64(p.N)*p.begins(marked, t)*rounding <= probability {
		t--
	}
	return t
}

const (
	// rounding is what logarithms of factorials up to maxClients can be off by, and much more.
	rounding = 1 + 1e-6
	// before is how many clients begins looks back at. From 4 on hardly anything is gained.
	before = 4
)

// begins is the probability that a client has t marked neighbours and none of the four before it
// on the circle has. n times that bounds the probability that anybody has t marked neighbours: if
// somebody has and all who have are within four of another such before them, then such clients are
// no more than four apart all around the circle; of them ⌊n/(k+5)⌋ can be chosen that are more than
// k apart, and have t marked neighbours each without sharing any. So if t·⌊n/(k+5)⌋ exceeds all who
// are marked, there is somebody with none in the four before it.
//
// With the marks of 13 places given, the rest is counted: client i and those before it, at i−4…i;
// the last four in i's window, which those before it do not all see, and the four before it, which
// they see. beginnings has the ways to mark these. k−8 places of the window are left, and n−k−5
// outside. It is 1, no bound, where that is not so.
func (p Params) begins(marked, t int) float64 {
	n, k := p.N, p.K
	core, outside := k-2*before, n-k-1-before
	if core < 0 || outside < 0 || t*(n/(k+1+before)) <= marked {
		return 1
	}
	var inside [2*before + 3]float64 // of t+1, t, … in the rest of the window
	for i := range inside {
		inside[i] = logChoose(core, t+1-i)
	}
	var beyond [before + 2]float64 // of marked−t, marked−t−1, … outside
	for i := range beyond {
		beyond[i] = logChoose(outside, marked-t-i)
	}
	sum, all := 0.0, logChoose(n, marked)
	for v, ways := range beginnings() {
		for in, row := range ways {
			for out, w := range row {
				if w > 0 {
					sum += float64(w * math.Exp(inside[1-v+in]+beyond[v+out]-all))
				}
			}
		}
	}
	return sum
}

// beginnings counts the ways to mark 13 places so that client i has t marked neighbours and those
// at i−1…i−4 have not, by the marks: v = t+v of the window i−k/2…i+k/2 are marked, i itself
// included, so that v is 0 or 1; in are marked among the clients i−4…i and the places that leave
// the window on the way back; out among those that enter it.
var beginnings = sync.OnceValue(func() (ways [2][2*before + 2][before + 1]float64) {
	for v := range ways {
		for bits := range 1 << (3*before + 1) {
			bit := func(at int) int { return bits >> at & 1 }
			in, out, window, good := bit(0), 0, v, v >= bit(0)
			for j := 1; j <= before; j++ {
				leaves, enters, self := bit(3*j-2), bit(3*j-1), bit(3*j)
				window += enters - leaves
				good = good && window < self
				in += leaves + self
				out += enters
			}
			if good {
				ways[v][in][out]++
			}
		}
	}
	return ways
})

// Corrupt is c = ⌊γ·Enrolled⌋, how many clients may be corrupt, whoever of those who are
// enrolled takes part.
func (s Session) Corrupt() int { return floorOf(s.Gamma, s.Enrolled) }

// Graph is the graph of the session if n clients advertise keys. It is an error if they are fewer
// than NMin or more than are enrolled, if no graph on so few is safe from the corrupt of all who
// are enrolled, and if it promises fewer honest messages in a sum than Honest.
func (s Session) Graph(n int) (Params, error) {
	switch err := s.Validate(); {
	case err != nil:
		return Params{}, err
	case n < max(3, s.NMin):
		return Params{}, fmt.Errorf("%w: %d clients, must be at least %d", ErrTooFew, n, max(3, s.NMin))
	case n > s.Enrolled:
		return Params{}, fmt.Errorf("%w: %d clients, %d are enrolled", ErrSession, n, s.Enrolled)
	}
	p, err := Choose(n, s.Corrupt(), s.Delta, s.Mode, s.Complete)
	if err != nil {
		return Params{}, err
	}
	if err := s.enough(p); err != nil {
		return Params{}, err
	}
	return p, nil
}

// HonestMin is the number of honest messages that any opened sum holds, but with probability
// 2^-40, when n clients make up the graph: NMin − c, c being [Session.Corrupt]; in a sparse graph
// against a malicious server, who may name survivors as it likes beyond a client's neighbours,
// the client and the T − A honest neighbours that it is bound to, if that is less. Noise shares
// are to be calibrated to no more, and [Session.Honest] holds the session to it. It is an error
// if nothing is promised.
func (s Session) HonestMin(n int) (int, error) {
	switch err := s.Validate(); {
	case err != nil:
		return 0, err
	case s.NMin <= s.Corrupt():
		return 0, fmt.Errorf("%w: of n_min = %d survivors all may be corrupt, with γ = %g of %d "+
			"enrolled", ErrTooFew, s.NMin, s.Gamma, s.Enrolled)
	}
	s.Honest = 1 // what the caller counts on is for the caller to compare
	p, err := s.Graph(n)
	if err != nil {
		return 0, err
	}
	return s.honest(p), nil
}

func (s Session) honest(p Params) int {
	h := s.NMin - s.Corrupt()
	if s.Mode == Malicious && p.sparse() {
		h = min(h, 1+p.T-p.corruptNeighbours(s.Corrupt(), s.Delta))
	}
	return h
}

func (p Params) sparse() bool { return p.K < p.N-1 }

// enough refuses a graph that does not promise the honest messages that the session counts on:
// where it counts on none, two, since the sum of one is its message.
func (s Session) enough(p Params) error {
	want := s.Honest
	if want == 0 {
		want = 2
	}
	if h := s.honest(p); h < want {
		return fmt.Errorf("%w: a graph on %d clients with n_min = %d, %d of the %d enrolled "+
			"corrupt, promises %d honest messages in a sum, the session counts on %d",
			ErrInfeasible, p.N, s.NMin, s.Corrupt(), s.Enrolled, max(h, 0), want)
	}
	return nil
}

// fewest is the least number of survivors whose sum is opened: NMin and, in a sparse graph against
// a semi-honest server, those who are left when ⌊δn⌋ have vanished. The graph of the honest among
// fewer may fall apart, and the server would learn the sum of each part.
func (s Session) fewest(p Params) int {
	if s.Mode == SemiHonest && p.sparse() {
		return max(s.NMin, p.N-floorOf(s.Delta, p.N))
	}
	return s.NMin
}

// hypergeometric is the probability that k draws without replacement from n, m of them marked, show
// exactly x marked ones.
func hypergeometric(n, m, k, x int) float64 {
	return math.Exp(logChoose(m, x) + logChoose(n-m, k-x) - logChoose(n, k))
}

func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	l, _ := math.Lgamma(float64(n + 1))
	return l
}
