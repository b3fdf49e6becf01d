package api

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// An A/B test comes to its answer, which page, report and replay say alike, and which does not assume
// constant rates: of arms of .2 and .6 it is not conclusive after 1500 visitors once in a million.
func TestSplitVerdict(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	w.want(201, "POST", "/v1/experiments", `
name: shop
arms: [red, blue]
policy: split
effect: 0.4
rate: 0.4
budget: {epsilon: 1}
unit: {of: person}
reward: {range: [0, 1], default: 0}
window: 10s
public: true
`)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	src := rand.New(rand.NewPCG(2, 3))
	for i := range 1500 {
		d := w.decide(fmt.Sprint("visitor ", i))
		if src.Float64() < map[string]float64{"red": 0.2, "blue": 0.6}[d.Arm] {
			w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*d.Decision, "1"))
		}
		if i%50 == 49 {
			w.pass(11 * time.Second)
		}
	}
	for range 40 {
		w.pass(11 * time.Second)
	}
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	lo, hi, err := interval.Effect(info.Arms[1].Sums(), info.Arms[0].Sums(), 0.5, interval.Plan{Base: 0.4, Effect: 0.4}, 0.045)
	v := w.asReport().Verdict
	if err != nil || v.Word != interval.Conclusive || v.Leader != "blue" || v.ConstantRates ||
		math.Abs(v.Over[0].Interval[0]-lo) > 1e-12 || math.Abs(v.Over[0].Interval[1]-hi) > 1e-12 || !(lo < 0.4 && 0.4 < hi) {
		t.Errorf("%+v; [%v, %v], %v", v, lo, hi, err)
	}
	page := strings.ReplaceAll(w.want(200, "GET", "/experiments/shop", ""), "&#39;", "'")
	for text, is := range map[string]bool{`data-verdict="conclusive"`: true, "blue is better than red, by ": true,
		"assume that each arm's mean": false, "against an even split": false} {
		if strings.Contains(page, text) != is {
			t.Errorf("it is not %v that the page has %s", is, text)
		}
	}
	r, err := serve.Replay(strings.NewReader(w.want(200, "GET", "/v1/experiments/shop/transcript", "")), catalog.Catalog{})
	if err != nil || !reflect.DeepEqual(serve.VerdictOf(&r.Experiment, r.Arms), *v) {
		t.Errorf("%v: %+v, and the report %+v", err, r, v)
	}
}
