package testkit

import (
	"os"
	"strconv"
	"testing"
)

// Full says that tests are asked for at their full size, by SOTTO_FULL in the environment: .ci/run
// does so, without the race detector.
func Full() bool { return os.Getenv("SOTTO_FULL") != "" }

// Timing is how many pairs a test of times measures by hand, by SOTTO_TIMING in the environment: 0
// elsewhere, where times are those of whatever else the machine does.
func Timing() int {
	n, err := strconv.Atoi(os.Getenv("SOTTO_TIMING"))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Size is how much a test does: quick as a rule, full where Full says so. A test with two sizes
// finds its broken twins at both. One that holds what it measured in real time against a limit is
// called Test…InTime, and is done there with nothing beside it.
func Size[T any](quick, full T) T {
	if Full() {
		return full
	}
	return quick
}

// OneGoroutine skips a test under the race detector, which has nothing to find in what one goroutine
// computes, and makes it ten times as long. The full size has it.
func OneGoroutine(t testing.TB) {
	if Race {
		t.Helper()
		t.Skip("one goroutine computes it, slowly under the race detector")
	}
}

// RacedBefore skips a test under the race detector whose concurrency another one's of its package is, in fewer
// runs. The full size has it.
func RacedBefore(t testing.TB) {
	if Race {
		t.Helper()
		t.Skip("another test of the package has its concurrency, in fewer runs")
	}
}
