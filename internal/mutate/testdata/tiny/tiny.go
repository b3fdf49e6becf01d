// Package tiny has mutants of every fate.
package tiny

// Half is tested, but not at 10.
func Half(n int) int {
	if n > 10 {
		return 10
	}
	return n / 2
}

// Name has a + of which nothing else compiles.
func Name(s string) string { return "tiny " + s }

// Sign is a condition in a case clause, and has a constant.
func Sign(n int) string {
	switch {
	case n < 0:
		return "minus"
	case n == 1-1:
		return "none"
	}
	return "plus"
}

// Count never ends if it counts backwards.
func Count(n int) (c int) {
	for i := 0; i != n; i++ {
		c++
	}
	return c
}

// Idle is not tested.
func Idle(x float64) float64 { return -x }
