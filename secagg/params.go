package secagg

import (
	"fmt"
	"math"
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
// can open one secret of hers.
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
// with (poly)logarithmic overhead", CCS 2020): the first K = 2, 4, 6, … such that
//
//   - the honest surviving clients stay connected but with probability 2^-41 (two gaps of K/2 bad
//     neighbours on the circle, union bound),
//   - no client has T corrupt neighbours but with probability 2^-41 (so T−1 shares tell nothing);
//     against a malicious server 2T exceeds K plus the corrupt neighbours, so that no two disjoint
//     groups of honest neighbours open both secrets of one client,
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
		if !connected(n, k, corrupt, delta) {
			continue
		}
		lo, hi := thresholds(n, k, corrupt, delta, mode)
		if t := max(lo+1, 2); t <= hi {
			return Params{N: n, K: k, T: t}, nil
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
	if p.K%2 != 0 || p.K >= p.N-1 || p.K > maxDegree || !connected(p.N, p.K, corrupt, delta) {
		return false
	}
	lo, hi := thresholds(p.N, p.K, corrupt, delta, mode)
	return lo < p.T && p.T <= hi
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

// connected bounds the probability that the clients who are neither corrupt nor gone fall apart:
// two runs of K/2 bad clients on the circle. n(n−k−1)/2 pairs of places, each bad with probability
// B(B−1)…(B−k+1)/(n(n−1)…(n−k+1)).
func connected(n, k, corrupt int, delta float64) bool {
	b := min(corrupt+floorOf(delta, n), n)
	if k > b {
		return true
	}
	l := math.Log(float64(n)) + math.Log(float64(n-k-1)) - math.Ln2 +
		logFactorial(b) - logFactorial(b-k) + logFactorial(n-k) - logFactorial(n)
	return l < -(statistical+1)*math.Ln2
}

// thresholds gives lo, the greatest threshold that is not safe, and hi, the greatest that
// is still reached.
func thresholds(n, k, corrupt int, delta float64, mode Mode) (lo, hi int) {
	surviving := int(math.Ceil(float64((1-delta)*float64(n)) - 1e-14))
	reach := math.Ldexp(1, -correctness) / float64(n)
	lo = corruptNeighbours(n, k, corrupt)
	// hi = max{t : P[HG(n, surviving, k) < t] < reach}.
	tail := 0.0
	for hi = 0; hi < k; hi++ {
		tail += hypergeometric(n, surviving, k, hi)
		if tail >= reach {
			break
		}
	}
	if mode == Malicious {
		lo = int(math.Ceil((float64(lo+k) - 1.25) / 2))
	}
	return lo, hi
}

// corruptNeighbours is min{t : P[HG(n, corrupt, k) > t] ≤ 2^-41/n}: no honest client has more
// corrupt neighbours, but with probability 2^-41. An honest client's neighbours are drawn from the
// n−1 others, and there are n−c of her: with x corrupt ones among them, (n−c)·HG(n−1,c,k) is
// n·HG(n,c,k) times (n−c−(k−x))/(n−k), which is at most 1. So the sum over honest clients is
// bounded by n times the law on all n.
func corruptNeighbours(n, k, corrupt int) int {
	safe := math.Ldexp(1, -(statistical+1)) / float64(n)
	// Sum the tail from above, smallest terms first.
	tail, t := 0.0, k
	for ; t > 0; t-- {
		tail += hypergeometric(n, corrupt, k, t)
		if tail > safe {
			break
		}
	}
	return t
}

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
// the client and the T − A honest neighbours that she is bound to, if that is less. Noise shares
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
		h = min(h, 1+p.T-corruptNeighbours(p.N, p.K, s.Corrupt()))
	}
	return h
}

func (p Params) sparse() bool { return p.K < p.N-1 }

// enough refuses a graph that does not promise the honest messages that the session counts on:
// where it counts on none, two, since the sum of one is her message.
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
	if x < 0 || x > k || x > m || k-x > n-m {
		return 0
	}
	return math.Exp(logChoose(m, x) + logChoose(n-m, k-x) - logChoose(n, k))
}

func logChoose(n, k int) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }

func logFactorial(n int) float64 {
	l, _ := math.Lgamma(float64(n + 1))
	return l
}
