package identify

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Link says how the mean of an arm follows from its vector. The zero value is ⟨θ,x⟩.
type Link struct {
	// Bound B > 0 says that it is σ(⟨θ,x⟩), σ(η) = 1/(1+e^{−η}), and |⟨θ,x⟩| at most B for every arm.
	Bound float64
}

// A fit plays few arms whose vectors say of the means of all, and says what their noisy sums do.
type fit struct {
	x    [][]float64
	link Link
}

// An estimate is that of an arm's mean, Σ c_a S̃_a over the sums that were released.
type estimate struct {
	mean          float64
	square, total float64 // ΣN_a c_a² and Σ|c_a|
}

// unknown is the estimate of an arm of which nothing was released.
func unknown() estimate { return estimate{math.NaN(), math.Inf(1), math.Inf(1)} }

// newFit checks the vectors: one for each arm, of as many finite numbers, not all of them 0, that do not all but miss
// a direction.
func newFit(x [][]float64, arms int, link Link) (*fit, error) {
	if !(link.Bound >= 0 && link.Bound <= maxLogit) {
		return nil, fmt.Errorf("bound is %v, must be above 0 and at most %v, or 0 where means are linear", link.Bound, maxLogit)
	}
	if len(x) != arms {
		return nil, fmt.Errorf("vectors are %d, must be one for each of %d arms", len(x), arms)
	}
	for a, v := range x {
		sum := 0.0
		for _, y := range v {
			sum += float64(y * y)
		}
		if len(v) != len(x[0]) || !(sum > 0 && sum <= math.MaxFloat64) {
			return nil, fmt.Errorf("vectors: that of arm %d is %v, must have %d finite numbers, and one that is not 0",
				a+1, v, len(x[0]))
		}
	}
	x, err := conditioned(x)
	if err != nil {
		return nil, err
	}
	return &fit{x, link}, nil
}

// Singular values of vectors, as shares of the largest: up to rounded is rounding, below least is refused, and below
// whole the vectors are taken in their own coordinates.
const (
	rounded = 1e-13
	least   = 1e-9
	narrow  = 1e-3
)

// conditioned are the vectors after an invertible linear map, which changes no design, no estimate and no spanner,
// so that what spanOf and distance cut off says next to nothing of a mean. Columns are scaled by powers of two,
// which rounds nothing. Where that is not enough they are the rows of U, orthonormal in columns, of the singular value
// decomposition UΣVᵀ: means are U(Uᵀμ), so that no direction has a coefficient above √K.
func conditioned(x [][]float64) ([][]float64, error) {
	d := len(x[0])
	m := mat.NewDense(len(x), d, nil)
	for j := range d {
		most := 0.0
		for _, v := range x {
			most = max(most, math.Abs(v[j]))
		}
		_, power := math.Frexp(most)
		for i, v := range x {
			m.Set(i, j, math.Ldexp(v[j], -power))
		}
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDThin) {
		return nil, fmt.Errorf("vectors are %d, must be such that their singular values are found", len(x))
	}
	values, rank := svd.Values(nil), 0
	for rank < len(values) && values[rank] > rounded*values[0] {
		rank++
	}
	last := values[rank-1] / values[0]
	if last < least {
		return nil, fmt.Errorf("vectors have a singular value, columns brought to one scale, of %.2g of the largest, "+
			"must be 0 or at least %v of it: they all but miss a direction", last, least)
	}
	if last < narrow {
		var u mat.Dense
		svd.UTo(&u)
		m = u.Slice(0, len(x), 0, rank).(*mat.Dense)
	}
	out := make([][]float64, len(x))
	for i := range out {
		out[i] = mat.Row(nil, i, m)
	}
	return out, nil
}

// maxLogit is where σ is not yet 1 to within rounding.
const maxLogit = 20

func sigmoid(eta float64) float64 { return 1 / (1 + math.Exp(-eta)) }
func logit(m float64) float64     { return math.Log(m) - math.Log1p(-m) }

// design is a G-optimal one of these arms. Where its steps ran out it is one all the same, whose G is larger than
// its rank by more than a thousandth: plays are more then, in theorems that have G, and no interval is wrong.
func (f *fit) design(alive []int) design.Design {
	rows := make([][]float64, len(alive))
	for i, a := range alive {
		rows[i] = f.x[a]
	}
	d, _ := design.Optimal(rows, design.Options{})
	return d
}

// plays appends those of a batch by a design, of a length that follows from its rank.
func (f *fit) plays(to []policy.Play, alive []int, length func(rank int) float64) []policy.Play {
	if f.link.Bound > 0 {
		s := f.spanner(alive)
		for _, a := range s.arms {
			n := math.Floor(length(len(s.arms)) / float64(len(s.arms)))
			to = append(to, policy.Play{Arm: a, Rounds: int(max(1, min(n, longest))), Release: true})
		}
		return to
	}
	d := f.design(alive)
	for _, i := range d.Support {
		n := math.Ceil(float64(length(d.Rank) * d.Weights[i]))
		to = append(to, policy.Play{Arm: alive[i], Rounds: int(max(1, min(n, longest))), Release: true})
	}
	return to
}

// within is plays, with no more than n of them in all.
func (f *fit) within(to []policy.Play, alive []int, n int) []policy.Play {
	spare := 0 // plays of a design are rounded up
	if f.link.Bound == 0 {
		spare = len(f.design(alive).Support)
	}
	return f.plays(to, alive, func(int) float64 { return float64(max(0, n-spare)) })
}

// intervals tells an interval of each mean that is alive, by its place: those of DPRace, at level x, with noise of at
// most so much in a sum.
func (f *fit) intervals(released privacy.Released, plays []policy.Play, alive []int, x, noise float64,
	tell func(i int, lo, hi float64)) {
	if f.link.Bound == 0 {
		f.estimate(released, plays, alive, func(i int, e estimate) {
			if math.IsNaN(e.mean) {
				tell(i, math.Inf(-1), math.Inf(1))
				return
			}
			r := math.Sqrt(x*e.square/2) + float64(noise*e.total)
			tell(i, e.mean-r, e.mean+r)
		})
		return
	}
	lo, hi := make([]float64, len(plays)), make([]float64, len(plays))
	for j := range plays {
		lo[j], hi[j] = -f.link.Bound, f.link.Bound
		if n := float64(released.N(j)); n > 0 {
			r := math.Sqrt(x/(2*n)) + noise/n
			lo[j], hi[j] = f.eta(released.Mean(j)-r), f.eta(released.Mean(j)+r)
		}
	}
	s := f.spanner(alive)
	for i := range alive {
		from, to := 0.0, 0.0
		for j, c := range s.shares[i] {
			if c > 0 {
				from, to = from+float64(c*lo[j]), to+float64(c*hi[j])
			} else {
				from, to = from+float64(c*hi[j]), to+float64(c*lo[j])
			}
		}
		tell(i, sigmoid(from), sigmoid(to))
	}
}

// means tells an estimate of each mean that is alive, or of ⟨θ,x⟩, by its place; −∞ of one of which nothing is
// known.
func (f *fit) means(released privacy.Released, plays []policy.Play, alive []int, tell func(i int, mean float64)) {
	if f.link.Bound == 0 {
		f.estimate(released, plays, alive, func(i int, e estimate) {
			if math.IsNaN(e.mean) {
				e.mean = math.Inf(-1)
			}
			tell(i, e.mean)
		})
		return
	}
	s := f.spanner(alive)
	for i := range alive {
		sum := 0.0
		for j, c := range s.shares[i] {
			if released.N(j) > 0 { // or 0, which is the middle of what is known
				sum += float64(c * f.eta(released.Mean(j)))
			}
		}
		tell(i, sum)
	}
}

// eta is σ⁻¹ of a mean, cut to ±B.
func (f *fit) eta(mean float64) float64 {
	b := f.link.Bound
	return max(-b, min(b, logit(max(sigmoid(-b), min(sigmoid(b), mean)))))
}

// A spanner is arms whose vectors all others are sums of, with shares from −2 to 2.
type spanner struct {
	arms   []int
	shares [][]float64 // of each arm that is alive
}

// spanner finds one of the arms that are alive: vectors that are far from what was taken before, and then others for
// them as long as that makes their volume twice as large.
func (f *fit) spanner(alive []int) spanner {
	basis, rank := spanOf(f.x, alive)
	z := make([]*mat.VecDense, len(alive))
	for i, a := range alive {
		z[i] = mat.NewVecDense(rank, nil)
		z[i].MulVec(basis.T(), mat.NewVecDense(len(f.x[a]), f.x[a]))
	}
	taken := farthest(z, rank)
	shares := make([][]float64, len(alive))
	for range 64 * rank { // each doubles a volume that is no larger than that of the longest vectors
		m := mat.NewDense(rank, rank, nil)
		for j, i := range taken {
			m.SetCol(j, z[i].RawVector().Data)
		}
		var lu mat.LU
		lu.Factorize(m)
		most, at, in := 2.0, -1, -1
		for i := range z {
			var c mat.VecDense
			if err := lu.SolveVecTo(&c, false, z[i]); err != nil {
				c.ReuseAsVec(rank)
			}
			shares[i] = c.RawVector().Data
			for j, x := range shares[i] {
				if math.Abs(x) > most+1e-9 {
					most, at, in = math.Abs(x), j, i
				}
			}
		}
		if at < 0 {
			break
		}
		taken[at] = in
	}
	out := spanner{shares: shares}
	for _, i := range taken {
		out.arms = append(out.arms, alive[i])
	}
	return out
}

// farthest are so many vectors, each the one of those that are left that is farthest from the span of those before.
func farthest(z []*mat.VecDense, rank int) []int {
	rest := make([]*mat.VecDense, len(z))
	for i := range z {
		rest[i] = mat.VecDenseCopyOf(z[i])
	}
	var out []int
	for range rank {
		best, at := -1.0, 0
		for i := range rest {
			if n := mat.Norm(rest[i], 2); n > best {
				best, at = n, i
			}
		}
		out = append(out, at)
		q := mat.VecDenseCopyOf(rest[at])
		q.ScaleVec(1/best, q)
		for i := range rest {
			rest[i].AddScaledVec(rest[i], -mat.Dot(rest[i], q), q)
		}
	}
	return out
}

// estimate tells the estimate of each arm that is alive, by its place.
func (f *fit) estimate(released privacy.Released, plays []policy.Play, alive []int, tell func(int, estimate)) {
	basis, rank := f.span(plays, released)
	if rank == 0 {
		for i := range alive {
			tell(i, unknown())
		}
		return
	}
	at := func(a int) *mat.VecDense { // in the span
		var z mat.VecDense
		z.MulVec(basis.T(), mat.NewVecDense(len(f.x[a]), f.x[a]))
		return &z
	}
	gram := mat.NewSymDense(rank, nil)
	for i, play := range plays {
		if n := released.N(i); n > 0 {
			gram.SymRankOne(gram, float64(n), at(play.Arm))
		}
	}
	var inverse mat.Cholesky
	known := inverse.Factorize(gram)
	for i, b := range alive {
		var h, back mat.VecDense
		z := at(b)
		// outside of the span of what was answered nothing is known
		if back.MulVec(basis, z); !known || distance(back.RawVector().Data, f.x[b]) > 1e-7 ||
			inverse.SolveVecTo(&h, z) != nil {
			tell(i, unknown())
			continue
		}
		var e estimate
		for j, play := range plays {
			if n := float64(released.N(j)); n > 0 {
				c := mat.Dot(&h, at(play.Arm))
				e.mean += float64(c * released.Sum(j))
				e.square += float64(n * float64(c*c))
				e.total += math.Abs(c)
			}
		}
		tell(i, e)
	}
}

// span is an orthonormal basis of what the arms span that were answered, in columns.
func (f *fit) span(plays []policy.Play, released privacy.Released) (basis mat.Matrix, rank int) {
	var answered []int
	for i, play := range plays {
		if released.N(i) > 0 {
			answered = append(answered, play.Arm)
		}
	}
	if answered == nil {
		return nil, 0
	}
	return spanOf(f.x, answered)
}

// spanOf is an orthonormal basis of what the vectors of some arms span, in columns.
func spanOf(x [][]float64, arms []int) (basis mat.Matrix, rank int) {
	d := len(x[0])
	m := mat.NewDense(len(arms), d, nil)
	for i, a := range arms {
		m.SetRow(i, x[a])
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDThin) {
		return nil, 0
	}
	values := svd.Values(nil)
	for rank < len(values) && values[rank] > 1e-9*values[0] {
		rank++
	}
	var v mat.Dense
	svd.VTo(&v)
	return v.Slice(0, d, 0, rank), rank
}

// distance is that of two vectors, as a share of the second's length.
func distance(x, y []float64) float64 { return floats.Distance(x, y, 2) / floats.Norm(y, 2) }
