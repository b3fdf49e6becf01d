package choose_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/internal/stats"
)

// looks draws three policies of 1000 in the mean, one above the other by step, and says whether
// Judge orders two of them at any size up to 512.
func looks(t *testing.T, seed uint64, step, level float64) (ordered bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	samples := make([][]float64, 3)
	for n := 16; n <= 512; n *= 2 {
		for len(samples[0]) < n {
			shared := 100 * r.NormFloat64()
			for i := range samples {
				samples[i] = append(samples[i], 1000+step*float64(i)+shared+10*r.NormFloat64())
			}
		}
		order, verdicts, err := choose.Judge(samples, 1e6, level, 1e-9)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(verdicts, choose.Better) {
			if step > 0 && !slices.Equal(order, []int{0, 1, 2}) {
				t.Errorf("seed %d: order %v", seed, order)
			}
			ordered = true
		}
	}
	return ordered
}

// Equal means are ordered with probability at most the level, although one looks at six sizes.
// False alarm: 1e-6. (TestLooksWithoutASplitAreCaught has what this test would see of a level that
// is not divided.)
func TestJudgeHoldsItsLevel(t *testing.T) {
	const questions = 600
	wrong := 0
	for q := range questions {
		if looks(t, uint64(q), 0, 0.05) {
			wrong++
		}
	}
	lo, _, err := stats.ClopperPearson(wrong, questions, 1-2e-6)
	if err != nil || lo > 0.05 {
		t.Errorf("%d of %d are wrong, %v", wrong, questions, err)
	}
}

// Means that differ are told apart, in their order.
func TestJudgeTellsApart(t *testing.T) {
	if !looks(t, 1, 20, 0.05) {
		t.Error("three means that differ by two standard deviations are not told apart")
	}
}

func TestJudgeRefuses(t *testing.T) {
	good := [][]float64{make([]float64, 16), make([]float64, 16)}
	for name, err := range map[string]error{
		"none":       errorOf(choose.Judge(nil, 1, 0.05, 0.01)),
		"few":        errorOf(choose.Judge([][]float64{make([]float64, 15)}, 1, 0.05, 0.01)),
		"uneven":     errorOf(choose.Judge([][]float64{good[0], make([]float64, 17)}, 1, 0.05, 0.01)),
		"level":      errorOf(choose.Judge(good, 1, 1, 0.01)),
		"resolution": errorOf(choose.Judge(good, 1, 0.05, 0)),
	} {
		if !errors.Is(err, choose.ErrQuestion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errorOf(_ []int, _ []choose.Verdict, err error) error { return err }
