package privacy

import "testing"

// A loss is written as the budget was that it spends, never as less than it is.
func TestWritten(t *testing.T) {
	for x, want := range map[float64]float64{1.0499999962: 1.05, 0.30000000000000004: 0.3, 1: 1, 0.999999999: 1,
		1.00000001: 1.00000001, 0.99999: 0.99999, 1.0499: 1.0499, 1.04999: 1.04999, 2.0000000001: 2.0000000001,
		123456: 123456, 1234567.8: 1234567.8, 9.99999999: 10, 1e-9: 1e-9, 0: 0, 0.1234567: 0.1234567} {
		got := shortUp(x)
		if got != want {
			t.Errorf("%v is written %v, must be %v", x, got, want)
		}
	}
	for x := 1e-6; x < 1e6; x *= 1.0000371 {
		if y := shortUp(x); y < x*(1-1e-14) || y > x*(1+1e-8) {
			t.Fatalf("%v is written %v", x, y)
		}
	}
}
