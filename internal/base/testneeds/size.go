package testneeds

import "os"

// Full says that tests are asked for at their full size, by SOTTO_FULL in the environment: .ci/run
// does so, without the race detector.
func Full() bool { return os.Getenv("SOTTO_FULL") != "" }

// Size is how much a test does: quick as a rule, full where Full says so. A test with two sizes
// finds its broken twins at both.
func Size[T any](quick, full T) T {
	if Full() {
		return full
	}
	return quick
}
