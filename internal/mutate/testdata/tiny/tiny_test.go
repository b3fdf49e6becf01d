package tiny

import "testing"

func TestHalf(t *testing.T) {
	if Half(12) != 10 || Half(4) != 2 {
		t.Error("12 → 10, 4 → 2")
	}
}

func TestName(t *testing.T) {
	if Name("x") != "tiny x" {
		t.Error(Name("x"))
	}
}

func TestSign(t *testing.T) {
	if Sign(-1) != "minus" || Sign(0) != "none" || Sign(1) != "plus" {
		t.Error("−1, 0, 1")
	}
}

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Error(Count(3))
	}
}
