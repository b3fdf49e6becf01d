package linear

import (
	"reflect"
	"slices"
)

// SameOFUL says whether two have the same state: V of all decisions and its factor, the open
// segment, the segments that wait, and the estimate.
func SameOFUL(p, q *OFUL) bool {
	same := func(p, q *factor) bool {
		return reflect.DeepEqual(p.v, q.v) && reflect.DeepEqual(p.l, q.l)
	}
	p.settle()
	q.settle()
	return p.t == q.t && p.tau == q.tau && p.ell == q.ell && p.radius == q.radius &&
		reflect.DeepEqual([][]float64{p.sum, p.theta, p.w, p.v}, [][]float64{q.sum, q.theta, q.w, q.v}) &&
		p.shrunk == q.shrunk && same(p.now, q.now) &&
		reflect.DeepEqual(p.late.base, q.late.base) && reflect.DeepEqual(p.late.gram, q.late.gram) &&
		p.late.rounds == q.late.rounds &&
		slices.EqualFunc(p.late.waiting, q.late.waiting, func(a, b cut) bool {
			return a.t == b.t && slices.Equal(a.v, b.v)
		})
}

// Settled says whether nothing is left to be made of what was learned.
func Settled(p *OFUL) bool { return p.late == nil || p.late.learned == nil }

// Formulas of the sources, which tests hold against printed numbers.
var (
	EigenvalueBound = eigenvalueBound
	EllipsoidGrowth = ellipsoidGrowth
	EllipsoidRadius = ellipsoidRadius
	NoiseRadius     = noiseRadius
	NormalNorm      = normalNorm
	PhaseLength     = phaseLength
	PhaseNormal     = phaseNormal
	PhaseRisk       = phaseRisk
)
