package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Values are noisy sums and how many rewards are in each. The curator owns them; they hold until
// its next release.
type Values struct {
	N    []int     // rewards that arrived, not those asked for
	Sum  []float64 // of rewards mapped to [0,1]
	Tail Tail      // of the noise in each sum

	noises laplaces // set by the ledger
}

// laplaces is how many independent Laplace noises of a scale, continuous or discrete, a sum has at
// most: so many, and so many for each reward in it; or that its noise is normal. The zero value says
// nothing.
type laplaces struct {
	fixed, each, scale float64
	normal             bool
}

// A Tail bounds the noise of a released sum, one side: P(noise > Sigma·√(2x) + H·(x+Log)) ≤ e^{-x}
// for every x ≥ 0. It is all that a policy may know of where its releases come from. For Lap(b) it
// is {0, b, 0}; for N(0,σ²) {σ, 0, 0}; none for exact sums.
type Tail struct {
	Sigma float64 `json:"sigma"`
	H     float64 `json:"h"`
	Log   float64 `json:"log"`
}

// Both bounds the noise on either side: P(|noise| > Both(x)) ≤ e^{-x}. Laplace noise alone has both
// sides in the Tail already; noise with a Sigma may have e^{-x} on each.
func (t Tail) Both(x float64) float64 {
	if t.Sigma == 0 {
		return t.H * (x + t.Log)
	}
	x += math.Ln2
	return float64(t.Sigma*math.Sqrt(2*x)) + float64(t.H*(x+t.Log))
}

// Laplace is a tail without Sigma that bounds the noise on both sides too: P(|noise| > H(x+Log)) ≤
// e^{-x} for every x ≥ 0, for what is proved for Laplace noise by its tail alone. It is the tangent
// to Both at x0 > 0, and so the nearest there.
func (t Tail) Laplace(x0 float64) Tail {
	if t.Sigma == 0 {
		return t
	}
	y0 := x0 + math.Ln2
	h := t.H + t.Sigma/math.Sqrt(2*y0)
	return Tail{H: h, Log: (float64(t.H*t.Log)+float64(t.Sigma*math.Sqrt(2*y0))/2)/h + math.Ln2}
}

// Released is what a policy sees. Its field is private and only a Ledger fills it: who holds one
// holds numbers that were paid for. The zero value is "nothing released".
type Released struct{ v *Values }

// Len is how many sums were released together: one for each play of the batch that asked for a
// release, in their order.
func (r Released) Len() int {
	if r.v == nil {
		return 0
	}
	return len(r.v.Sum)
}

// N is how many rewards are in sum i.
func (r Released) N(i int) int { return r.v.N[i] }

// Sum is noisy sum i, of rewards mapped to [0,1].
func (r Released) Sum(i int) float64 { return r.v.Sum[i] }

// Mean is noisy sum i divided by its number of rewards.
func (r Released) Mean(i int) float64 { return r.v.Sum[i] / float64(r.v.N[i]) }

// Laplace says that each sum was released with one Laplace noise, continuous or discrete, and
// nothing but that: what some proofs need, where others need its Tail only.
func (r Released) Laplace() bool { return r.v != nil && r.v.noises.fixed == 1 && r.v.noises.each == 0 }

// Normal says that the noise of each sum is normal, continuous or discrete, or a sum of such, and
// nothing but that: its moment generating function is at most e^{λ²σ²/2}, σ the Sigma of its Tail.
func (r Released) Normal() bool { return r.v != nil && r.v.noises.normal }

// Noises is how many independent Laplace noises, continuous or discrete, sum i has at most, and of
// which scale: 1 if Laplace, 2 between two servers, as many as there are rewards under local trust,
// and between whole numbers where users add shares of one. It is 0 if that is not known, or the noise
// has another law. So the moment generating function of the noise is at most (1 − λ²b²)^{−m} for m
// noises of scale b and |λ| < 1/b: of Lap(b) it is 1/(1−λ²b²), and of discrete Laplace noise of the
// same scale less. (The one noise of a server who is believed may be a little wider, as integers
// round up: its Tail says so.)
func (r Released) Noises(i int) (noises, scale float64) {
	of := r.v.noises
	return of.fixed + float64(of.each*float64(r.v.N[i])), of.scale
}

// Tail bounds the noise in each sum.
func (r Released) Tail() Tail { return r.v.Tail }

// Part is sum i alone. It stays what it is when the curator releases again.
func (r Released) Part(i int) Released {
	one := *r.v
	one.N, one.Sum = []int{r.v.N[i]}, []float64{r.v.Sum[i]}
	return Released{&one}
}

// Fold adds sums up: the first sizes[0] of them, the next sizes[1], and so on. It is made of what was
// paid for, and costs nothing. The noise of a total is that of its sums, each independent: with m of
// Lap(b) the moment generating function is at most (1−λ²b²)^{−m} ≤ exp(mλ²b²/(1−λb)) for 0 ≤ λ < 1/b,
// so that P(noise > 2b√(mx) + bx) ≤ e^{−x}, and m normal ones are one of m times the variance. Of
// all totals the Tail and the Noises are those of the one with the most.
func (r Released) Fold(sizes []int) (Released, error) {
	out, next, most := &Values{}, 0, 1
	for _, k := range sizes {
		if k < 1 || k > r.Len()-next {
			return Released{}, fmt.Errorf("released: a total of %d sums, must be of 1 to the %d that are left", k,
				r.Len()-next)
		}
		n, sum := 0, 0.0
		for i := next; i < next+k; i++ {
			n, sum = n+r.v.N[i], sum+r.v.Sum[i]
		}
		out.N, out.Sum = append(out.N, n), append(out.Sum, sum)
		next, most = next+k, max(most, k)
	}
	if next < r.Len() {
		return Released{}, fmt.Errorf("released: totals of %d sums, must be of all %d", next, r.Len())
	}
	if r.v == nil {
		return r, nil
	}
	m := float64(most)
	switch out.Tail, out.noises = r.v.Tail, r.v.noises; {
	case most == 1:
	case r.Laplace(): // integers round the scale up, and the tail says to what
		b := max(out.Tail.H, out.noises.scale)
		out.noises = laplaces{fixed: m, scale: b}
		out.Tail = Tail{Sigma: math.Sqrt(2*m) * b, H: b}
	case out.noises == laplaces{normal: out.noises.normal} && out.Tail.H == 0 && out.Tail.Log == 0:
		out.Tail.Sigma *= math.Sqrt(m)
	default:
		return Released{}, errors.New("released: sums are added up whose noise is neither Laplace's nor normal")
	}
	return Released{out}, nil
}

// like says that two releases have Laplace noises of one scale, except for its rounding, or normal noise,
// however many of it are in a sum.
func (v *Values) like(w *Values) bool {
	if v.noises.fixed > 0 && w.noises.fixed > 0 {
		return math.Abs(v.noises.scale-w.noises.scale) <= 1e-3*v.noises.scale && v.noises.each+w.noises.each == 0
	}
	return v.noises == w.noises && v.Tail.H == w.Tail.H && v.Tail.Log == w.Tail.Log
}

// Join has the sums of several releases, in their order, as if they had been released together: it is
// made of what was paid for, and costs nothing. Their noises must have the same law; where there
// are more of them in the totals of one (Fold), Tail and Noises are of these.
func Join(parts ...Released) (Released, error) {
	var out *Values
	for _, p := range parts {
		switch {
		case p.Len() == 0:
			continue
		case out == nil:
			out = &Values{Tail: p.v.Tail, noises: p.v.noises}
		case p.v.like(out):
			t, of := p.v.Tail, p.v.noises
			out.Tail = Tail{max(out.Tail.Sigma, t.Sigma), max(out.Tail.H, t.H), max(out.Tail.Log, t.Log)}
			out.noises = laplaces{max(out.noises.fixed, of.fixed), out.noises.each, max(out.noises.scale, of.scale),
				of.normal}
		default:
			return Released{}, fmt.Errorf("released: noise with tail %+v is joined to one with %+v, must have the "+
				"same law", p.v.Tail, out.Tail)
		}
		out.N, out.Sum = append(out.N, p.v.N...), append(out.Sum, p.v.Sum...)
	}
	return Released{out}, nil
}
