package release

// Range is a declared range of rewards: [lo, hi], and [0,1] if both are 0, for not declared.
func Range(lo, hi float64) (float64, float64) {
	if lo == 0 && hi == 0 {
		return 0, 1
	}
	return lo, hi
}
