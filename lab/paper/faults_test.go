package paper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// cellOf is an identification cell with so many wrong answers.
func cellOf(policy string, wrong int, times []float64) experiment.CellResult {
	return experiment.CellResult{
		CellInfo: experiment.CellInfo{Instance: "two", Policy: policy,
			Budget: "epsilon=0.1", Identify: &experiment.IdentifyCell{Risk: 0.1}},
		FinalStoppingTime: times, Failures: wrong,
	}
}

func claimOf(t *testing.T, f Figure, id string) Claim {
	t.Helper()
	for _, c := range f.Claims {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("%s has no claim %s", f.ID, id)
	return Claim{}
}

// The DP-SE of the program is that of [Sajed 2019] if their plays are.
func TestMeansClaimComesOutEachWay(t *testing.T) {
	times := func(by float64) []float64 {
		out := make([]float64, 1000)
		for i := range out {
			out[i] = by * float64(100+i%7)
		}
		return out
	}
	for by, want := range map[float64]Answer{1: Holds, 1.5: Fails} {
		e := &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{
			"means": {Cells: []experiment.CellResult{cellOf(dpse, 0, times(by)),
				cellOf(dpseOf002, 0, times(1))}}}}
		f, err := claimOf(t, publishedMeans(), "same").Decide.Of(e)
		if err != nil || f.Answer != want {
			t.Errorf("%v times the plays: %+v, %v, want %s", by, f, err, want)
		}
	}
}

// With copies an interval covers as seldom as Student's law says.
func TestCopiesOfRunsAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	times := make([]float64, 100_000)
	for i := range times {
		times[i] = rng.NormFloat64()
	}
	e := &Evidence{Preset: Full, Experiments: map[string]*experiment.Results{
		"times": {Cells: []experiment.CellResult{cellOf("published", 0, times)}}}}
	for id, want := range map[string]Answer{"independent": Fails, "ours": Holds} {
		f, err := claimOf(t, publishedStreams(), id).Decide.Of(e)
		if err != nil || f.Answer != want {
			t.Errorf("%s: %+v, %v, want %s", id, f, err, want)
		}
	}
	// Ten copies of ten have the mean of ten, and its error is taken to be √(9/99) of what it is.
	f, err := coverage(slices.Repeat([]int{10}, 10)).Of(e)
	if err != nil {
		t.Fatal(err)
	}
	student := distuv.StudentsT{Sigma: 1, Nu: 9}
	want := 2*student.CDF(stats.T(100, 0.95)*math.Sqrt(9./99)) - 1
	// false alarm 6·10⁻⁷
	if sd := math.Sqrt(want * (1 - want) / 10_000); math.Abs(f.Value-want) > 5*sd {
		t.Errorf("coverage with ten copies is %v, want %v", f.Value, want)
	}
}

func TestAuditClaimsComeOutEachWay(t *testing.T) {
	for _, c := range []struct {
		low  float64
		want Answer
	}{{0.9, Undecided}, {1.1, Fails}} {
		e := &Evidence{Preset: Full, Numbers: &Numbers{Values: map[string][]float64{"published": {1.2,
			c.low, 1}}}}
		f, err := claimOf(t, publishedPolya(), "private").Decide.Of(e)
		if err != nil || f.Answer != c.want {
			t.Errorf("lower end %v: %+v, %v, want %s", c.low, f, err, c.want)
		}
	}
	for _, c := range []struct {
		low  float64
		want Answer
	}{{0.9, Holds}, {1.1, Fails}} {
		e := &Evidence{Preset: Full, Numbers: &Numbers{Values: map[string][]float64{"ours": {1.2, c.low, 1}}}}
		f, err := claimOf(t, publishedPolya(), "ours").Decide.Of(e)
		if err != nil || f.Answer != c.want {
			t.Errorf("ours, lower end %v: %+v, %v, want %s", c.low, f, err, c.want)
		}
	}
	for _, c := range []struct {
		sd   float64
		want Answer
	}{{0.002, Fails}, {1, Holds}, {0.9, Undecided}} {
		e := &Evidence{Preset: Full, Numbers: &Numbers{Values: map[string][]float64{"sd published": {c.sd,
			c.sd - 0.001, c.sd + 0.001}}}}
		f, err := claimOf(t, publishedPolya(), "noise").Decide.Of(e)
		if err != nil || f.Answer != c.want {
			t.Errorf("%s: %+v, %v, want %s", fmt.Sprint(c.sd), f, err, c.want)
		}
	}
}
