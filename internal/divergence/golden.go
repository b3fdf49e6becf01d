package divergence

// Golden is the least value that golden sections see of f, in narrowing [lo, hi] until it is no wider
// than within: near its least value if f is quasi-convex. Where f is smooth, a width finds twice as many
// digits of the value.
func Golden(f func(float64) float64, lo, hi, within float64) float64 {
	const golden = 0.6180339887498949
	p, q := hi-float64(golden*(hi-lo)), lo+float64(golden*(hi-lo))
	fp, fq := f(p), f(q)
	for hi-lo > within {
		if fp <= fq {
			hi, q, fq = q, p, fp
			p = hi - float64(golden*(hi-lo))
			fp = f(p)
		} else {
			lo, p, fp = p, q, fq
			q = lo + float64(golden*(hi-lo))
			fq = f(q)
		}
	}
	return min(fp, fq)
}
