package rows_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/rows"
)

func TestFind(t *testing.T) {
	flat := []float64{1, 0, 0, 1, 1, 1, 0.5, 0.5}
	table, err := rows.New(2, flat)
	if err != nil || table.Len() != 4 {
		t.Fatal(table, err)
	}
	for i := range table.Len() {
		if got := table.Find(flat[2*i : 2*i+2]); got != i {
			t.Errorf("row %d is found at %d", i, got)
		}
	}
	for _, v := range [][]float64{{1, 0.5}, {2, 2}, {-1, 0}, {1}, {1, 0, 0}, nil, {math.NaN(), 0}} {
		if got := table.Find(v); got != -1 {
			t.Errorf("%v is found at %d", v, got)
		}
	}
	if n := testing.AllocsPerRun(10, func() { table.Find(flat[2:4]) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	if (rows.Table{}).Find([]float64{1}) != -1 || (rows.Table{}).Len() != 0 {
		t.Error("a table of none has one")
	}
	for mention, c := range map[string]struct {
		dim  int
		flat []float64
	}{
		"rows is of 3 numbers": {2, []float64{1, 2, 3}}, "rows is of 0 numbers": {2, nil},
		"at least one vector of 0":      {0, []float64{1}},
		"rows[1] is NaN":                {2, []float64{1, math.NaN()}},
		"rows has vector 0 again as 2,": {1, []float64{1, 2, 1}},
	} {
		if _, err := rows.New(c.dim, c.flat); err == nil || !strings.Contains(err.Error(), mention) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
