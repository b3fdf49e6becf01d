package testkit

import (
	"math"
	"testing"
)

// Must is a value that is there: an error would be a fault of the test, and ends it.
func Must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// Near fails a test unless a value is within a distance of the one that is wanted.
func Near(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %v, must be %v ± %v", what, got, want, within)
	}
}

// Close is Near within a share of the value that is wanted.
func Close(t testing.TB, what string, got, want, share float64) {
	t.Helper()
	if got != want && !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s is %.17g, must be %.17g ± %.2g of it", what, got, want, share)
	}
}
