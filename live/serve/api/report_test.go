package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/http"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/page"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

const reportPath = "/v1/experiments/shop/report"

// asReport reads the numbers of a report.
func (w *world) asReport() (out page.Summary) {
	w.t.Helper()
	text := w.want(200, "GET", reportPath, "", "Accept", "application/json")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatal(text, err)
	}
	return out
}

// A report has what was released, with intervals, and what it costs; as a page it says the same,
// and has nothing that a browser would run or fetch but its own script.
func TestReport(t *testing.T) {
	w := shopOpen(t)
	if r := w.asReport(); r.Released != 0 || r.Last != nil || r.Arms[0].Mean != nil ||
		r.Arms[0].Interval != nil ||
		r.State != serve.Running || *r.Share != 0 || r.Leader != "" || len(r.Differences) > 0 {
		t.Errorf("before the first release: %+v", r)
	}
	for minute := range 30 {
		for i := range 30 {
			d := w.decide(fmt.Sprint("unit ", minute, " ", i))
			reward(*d.Decision, "1")
			if d.Arm == "blue" && i%10 < 9 || i%10 < 3 {
				w.plain(http.MethodPost, "/v1/experiments/shop/rewards", reward(*d.Decision, "1"))
			}
		}
		for range 4 {
			w.pass(20 * time.Second)
		}
	}
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	r := w.asReport()
	if r.Leader != "blue" || *r.Share != 1 || r.Tip != info.Tip || r.Lines != info.Lines || r.Last == nil ||
		len(r.Differences) != 1 || r.Differences[0].Arm != "red" || r.Confidence != 0.95 {
		t.Fatalf("%+v", r)
	}
	total := 0
	for a, arm := range info.Arms {
		got := r.Arms[a]
		lo, hi, err := arm.Sums().Interval(0.025 / 2)
		if err != nil || got.Released != arm.Released ||
			math.Abs(*got.Mean-arm.Sum/float64(arm.Released)) > 1e-12 ||
			got.Interval[0] != lo || got.Interval[1] != hi || !(lo < *got.Mean && *got.Mean < hi) {
			t.Errorf("%+v, must be of %+v: [%v, %v], %v", got, arm, lo, hi, err)
		}
		total += arm.Released
	}
	if d := r.Differences[0].Interval; total != r.Released || !(d[0] < d[1] && d[1] < 0.2) {
		t.Errorf("%d released of %d; difference %v", r.Released, total, d)
	}
	v := r.Verdict
	if v == nil || v.Leader != "blue" || v.Word != interval.Ahead || v.Over[0].Arm != "red" || !v.ConstantRates ||
		*v.Over[0].Interval != [2]float64{0 - r.Differences[0].Interval[1], 0 - r.Differences[0].Interval[0]} ||
		v.Earned == nil || !(v.Earned.Interval[0] <= v.Earned.Estimate && v.Earned.Estimate <= v.Earned.Interval[1]) {
		t.Errorf("the verdict is %+v", v)
	}
	live := w.want(200, "GET", "/experiments/shop", "")
	for _, want := range []string{`data-leader="blue"`, `data-verdict="ahead"`, "blue is ahead, not yet conclusive</h2>",
		"against an even split", v.Assumes()} {
		if !strings.Contains(strings.ReplaceAll(live, "&#39;", "'"), want) {
			t.Errorf("%s is not on the live page", want)
		}
	}
	html := w.ask("GET", reportPath, "")
	policy := html.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s is not in %s", want, policy)
		}
	}
	body := html.Body.String()
	for _, want := range []string{"<meter", "blue leads", "epsilon=1 of epsilon=1 spent", r.Tip, v.Text, v.Assumes(),
		"<svg", r.Guarantee} {
		if !strings.Contains(body, strings.ReplaceAll(want, "'", "&#39;")) {
			t.Errorf("%s is not on the page", want)
		}
	}
	for _, bad := range []string{"src=", "href=", "http-equiv=\"refresh\"", "url("} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is on the page", bad)
		}
	}
	if w.want(200, "GET", reportPath, "") != body {
		t.Error("asked again it is another")
	}
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"arm": "blue", "now": true, "confirm": "shop"}`)
	if r := w.asReport(); r.State != serve.Stopped || r.Kept != "blue" {
		t.Errorf("%+v", r)
	}
	w.want(404, "GET", "/v1/experiments/other/report", "")
	w.key = ""
	w.want(200, "GET", reportPath, "") // it is public
}

// Between public ticks nobody changes a byte of a report, by deciding or by reporting; at the tick
// of a release it changes.
func TestReportChangesOnTicks(t *testing.T) {
	w := shopOpen(t)
	look := func() string {
		return w.want(200, "GET", reportPath, "") +
			w.want(200, "GET", reportPath, "", "Accept", "application/json")
	}
	before, changes := look(), 0
	for second := range 200 {
		d := w.decide(fmt.Sprint("unit ", second))
		if look() != before {
			t.Fatalf("second %d: a decision changes it", second)
		}
		w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*d.Decision, "1"))
		if look() != before {
			t.Fatalf("second %d: a reward changes it", second)
		}
		w.pass(time.Second)
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		now := look()
		if (now != before) != (info.Batches != changes) {
			t.Fatalf("second %d: changed %t, at %d batches, %d before", second, now != before,
				info.Batches, changes)
		}
		before, changes = now, info.Batches
	}
	if changes < 3 {
		t.Errorf("only %d releases", changes)
	}
}

// Names that look like a page's parts are text.
func TestReportEscapes(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: shop\ndescription: "+
		"\"<img src=x onerror=alert(1)></p><script>\\nalert(1)</script>\"").Replace(shop))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	body := w.want(200, "GET", reportPath, "")
	if strings.Contains(body, "<img") || strings.Contains(body, "<script>\nalert") ||
		!strings.Contains(body, "&lt;img") {
		t.Error(body[:2000])
	}
}

// cut is a store that has lost the second line of each transcript.
type cut struct{ store.Store }

func (s cut) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := from
		for line, err := range s.Store.Lines(ctx, id, from) {
			if n++; n != 2 && !yield(line, err) {
				return
			}
		}
	}
}

// Of an experiment whose transcript is damaged there is a report, which says so.
func TestReportOfDamagedTranscript(t *testing.T) {
	disk := store.NewMemory()
	w := newWorldOn(t, disk)
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	for i := range 60 {
		w.decide(fmt.Sprint("unit ", i))
	}
	for range 5 {
		w.pass(time.Minute)
	}
	if w.asReport().Batches < 2 {
		t.Fatal("nothing was released")
	}
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := serve.Open(t.Context(), serve.Config{Clock: w.clock.Now, Curator: seeded,
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := disk.Open(ctx)
			return cut{s}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	w.front = Handler(Config{Engine: e}).(*front)
	w.asked, w.engine = w.front, e
	r := w.asReport()
	if r.State != serve.Failed || !strings.Contains(r.Reason, "line 2: it does not follow the line before") {
		t.Errorf("%+v", r)
	}
	if body := w.want(200, "GET", reportPath, ""); !strings.Contains(body, "line 2: it does not follow") {
		t.Error("the page does not say so")
	}
}

// Metrics are in report, page, JSON, Prometheus, ledger and replay: the same numbers, in their own
// units, with each arm's difference to the control. What is spent is held against the budget of all
// that is released of a decision.
func TestReportOfMetrics(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open}) // with noise that can be replayed
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m", "window: 1m\nfallback: blue\n"+
		"metrics: [{name: basket, range: [-20, 200], budget: {epsilon: 50}}, {name: pages, range: [0, 9], "+
		"default: 1, budget: {epsilon: 10}}]", 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	said := func() *serve.Measures {
		t.Helper()
		var info infoJSON
		if err := json.Unmarshal([]byte(w.want(200, "GET", "/v1/experiments/shop", "")), &info); err != nil {
			t.Fatal(err)
		}
		r := w.asReport()
		if !reflect.DeepEqual(info.Metrics, r.Metrics) || info.Metrics == nil {
			t.Fatalf("%+v, the report has %+v", info.Metrics, r.Metrics)
		}
		return r.Metrics
	}
	if m := said(); m.Control != "blue" || m.Each[0].Arms[0] != (serve.MeasuredArm{Arm: "red"}) {
		t.Errorf("before the first release: %+v", m)
	}
	reported := map[string]float64{"red": 30, "blue": 80}
	for minute := range 6 {
		for i := range 60 {
			d := w.decide(fmt.Sprint("unit ", minute, " ", i))
			w.plain(http.MethodPost, "/v1/experiments/shop/rewards", strings.Replace(reward(*d.Decision, "0.5"), "}",
				fmt.Sprintf(`, "metrics": {"basket": %v}}`, reported[d.Arm]), 1))
		}
		for range 4 {
			w.pass(20 * time.Second)
		}
	}
	m, r := said(), w.asReport()
	if text := w.want(200, "GET", "/v1/experiments/shop", ""); r.First == nil || !r.First.Before(*r.Last) ||
		!strings.Contains(text, r.First.Format(`"first_release":"2006-01-02T15:04:05Z"`)) {
		t.Errorf("the first release is not told: %v, %s", r.First, text)
	}
	if r.Share == nil || math.Abs(*r.Share-1) > 1e-5 || r.Released == 0 || r.Each != "epsilon=61" {
		t.Errorf("%+v: %v of %q", r, *r.Share, r.Each)
	}
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	row := interval.Controlled{Arms: 2, Lo: -20, Hi: 200, Risk: 0.05 / 2}
	sums := func(a int) interval.Sums {
		return interval.Sums{N: info.Arms[a].Released, Releases: info.Arms[a].Releases, Sum: info.Metrics[0][a],
			Noise: privacy.Laplace{Scale: 1.0 / 50}}
	}
	for i, name := range []string{"red", "blue"} {
		basket, pages := m.Each[0].Arms[i], m.Each[1].Arms[i]
		// The noise of a release has the scale 4.4, or 0.9. Ten are beyond sixty times that with probability
		// (1-λ²)^-10 e^(-60λ) at λ = 0.9: below 1e-16.
		if n := float64(basket.Released); n == 0 || math.Abs(basket.Sum-reported[name]*n) > 60*4.4 ||
			math.Abs(*basket.Mean*n-basket.Sum) > 1e-9*math.Abs(basket.Sum) || math.Abs(pages.Sum-n) > 60*0.9 ||
			*basket.Interval != *row.Mean(sums(i)) {
			t.Errorf("%s: %+v, %+v", name, basket, pages)
		}
	}
	red := m.Each[0].Arms[0]
	if math.Abs(*red.Difference-*red.Mean+*m.Each[0].Arms[1].Mean) > 1e-9 || m.Each[0].Arms[1].DifferenceInterval != nil ||
		*red.DifferenceInterval != *row.Difference(sums(0), sums(1)) {
		t.Errorf("%+v", red)
	}
	const share = "each metric has 1/2 of the risk"
	for _, path := range []string{reportPath, "/experiments/shop"} {
		if text := w.plain("GET", path, "").Body.String(); !strings.Contains(text, share) ||
			!strings.Contains(text, "basket") || !strings.Contains(text, "ifference to blue") {
			t.Errorf("%s has no metrics: %s", path, text)
		}
	}
	scraped := w.want(200, "GET", "/metrics", "")
	for _, line := range []string{
		fmt.Sprintf(`sotto_released_metric_mean{arm="red",experiment="shop",metric="basket",value="estimate"} %v`, *red.Mean),
		fmt.Sprintf(`sotto_released_metric_difference{arm="red",experiment="shop",metric="basket",value="high"} %v`,
			red.DifferenceInterval[1])} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("%s is not in\n%s", line, scraped)
		}
	}
	transcript := w.want(200, "GET", "/v1/experiments/shop/transcript", "")
	again, err := serve.Replay(strings.NewReader(transcript), catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Measured(); !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, must be %+v", got, m)
	}
	rows, err := csv.NewReader(strings.NewReader(w.login(w.key).want(200, "GET", "/experiments/shop/ledger.csv", ""))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	booked := map[string]float64{}
	for _, row := range rows[1:] {
		sum, err := strconv.ParseFloat(row[9], 64)
		if err != nil {
			t.Fatal(err)
		}
		booked[row[2]+" "+row[3]] += sum
	}
	var recipe strings.Builder
	for _, one := range m.Each {
		for _, a := range one.Arms {
			testkit.Close(t, "the ledger's sum of "+one.Name+" of "+a.Arm, booked[one.Name+" "+a.Arm], a.Sum, 1e-9)
			fmt.Fprintf(&recipe, "%s\t%s\t%d\t%.6g\n", one.Name, a.Arm, a.Released, a.Sum)
		}
	}
	recipeFinds(t, transcript, recipe.String())
}

// A ratio of two metrics is wherever metrics are, with the same numbers: of what was released anyway, at no further
// price. A decision counts no more of the one than the other allows, in whatever order it is reported.
func TestReportOfRatios(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	w.want(201, "POST", "/v1/experiments", shop+"metrics: [{name: revenue, range: [0, 100], aggregate: sum, budget: "+
		"{epsilon: 20}}, {name: orders, range: [0, 2], aggregate: count, budget: {epsilon: 10}}]\n"+
		"ratios: [{name: order_value, of: revenue, per: orders}]\n")
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	counted := map[string][][2]float64{} // by arm, of each decision
	for minute := range 6 {
		for i := range 60 {
			d := w.decide(fmt.Sprint("unit ", minute, " ", i))
			each := map[string]int{"red": 20, "blue": 30}[d.Arm]
			counted[d.Arm] = append(counted[d.Arm], [3][2]float64{{}, {2 * float64(each), 2}, {50, 1}}[i%3])
			report := func(id, metrics string) {
				w.plain(http.MethodPost, "/v1/experiments/shop/rewards", fmt.Sprintf(`{"decision": %q, "id": %q, "metrics": {%s}}`,
					*d.Decision, id, metrics))
			}
			switch i % 3 { // none, two, or two of revenue and one order, which allows 50
			case 1:
				report("a", fmt.Sprintf(`"revenue": %d, "orders": 1`, each))
				report("b", fmt.Sprintf(`"revenue": %d, "orders": 1`, each))
			case 2:
				report("a", fmt.Sprintf(`"revenue": %d`, 2*each))
				report("b", fmt.Sprintf(`"revenue": %d, "orders": 1`, each))
			}
		}
		for range 4 {
			w.pass(20 * time.Second)
		}
	}
	m, r := w.asReport().Metrics, w.asReport()
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil || r.Each != "epsilon=31" || len(m.Each) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	one := m.Each[2]
	if one.Title() != "order_value (revenue per orders)" || one.Range != [2]float64{0, 50} || one.Budget != "" {
		t.Errorf("%+v", one)
	}
	var want strings.Builder
	for i, name := range []string{"red", "blue"} {
		sums := func(metric int, scale float64) interval.Sums {
			return interval.Sums{N: info.Arms[i].Released, Releases: info.Arms[i].Releases, Sum: info.Metrics[metric][i],
				Noise: privacy.Laplace{Scale: scale}}
		}
		lo, hi, err := interval.Ratio(sums(0, 1./20), sums(1, 1./10), 0.05/3/2)
		a := one.Arms[i]
		if err != nil || a.Interval == nil || *a.Interval != [2]float64{50 * lo, 50 * hi} ||
			*a.Mean != 50*info.Metrics[0][i]/info.Metrics[1][i] || a.Arm != name || a.Sum != m.Each[0].Arms[i].Sum {
			t.Errorf("%s: %+v, must be from %v to %v, %v", name, a, 50*lo, 50*hi, err)
		}
		// As above, noise is beyond sixty scales with probability below 1e-16.
		var have [2]float64
		for _, of := range counted[name][:a.Released] {
			have[0], have[1] = have[0]+of[0], have[1]+of[1]
		}
		if revenue, orders := m.Each[0].Arms[i].Sum, m.Each[1].Arms[i].Sum; a.Released < 8 || math.Abs(revenue-have[0]) > 60*5 ||
			math.Abs(orders-have[1]) > 60*0.2 {
			t.Errorf("%s: %v of %v orders, must be about %v", name, revenue, orders, have)
		}
		fmt.Fprintf(&want, "%s\t%.6g\n", name, *a.Mean)
	}
	red, blue := one.Arms[0], one.Arms[1]
	if *blue.Difference != *blue.Mean-*red.Mean || red.Difference != nil ||
		*blue.DifferenceInterval != [2]float64{blue.Interval[0] - red.Interval[1], blue.Interval[1] - red.Interval[0]} {
		t.Errorf("%+v", blue)
	}
	for _, path := range []string{reportPath, "/experiments/shop"} {
		if text := w.plain("GET", path, "").Body.String(); !strings.Contains(text, "order_value (revenue per orders)") ||
			!strings.Contains(text, "of all 3 metrics and ratios") {
			t.Errorf("%s has no ratio", path)
		}
	}
	if line := fmt.Sprintf(`sotto_released_metric_mean{arm="red",experiment="shop",metric="order_value",value="low"} %v`,
		red.Interval[0]); !strings.Contains(w.want(200, "GET", "/metrics", ""), line+"\n") {
		t.Errorf("%s is not told", line)
	}
	transcript := w.want(200, "GET", "/v1/experiments/shop/transcript", "")
	again, err := serve.Replay(strings.NewReader(transcript), catalog.Catalog{})
	if err != nil || !reflect.DeepEqual(again.Measured(), m) {
		t.Errorf("%+v, must be %+v: %v", again, m, err)
	}
	sums := recipe(t, "metrics.jq", transcript, "-nr")
	got := recipe(t, "ratio.jq", sums, "-Rnr", "--arg", "of", "revenue", "--arg", "per", "orders")
	for line := range strings.Lines(got) {
		cells := strings.Fields(line)
		x, err := strconv.ParseFloat(cells[1], 64)
		if text := fmt.Sprintf("%s\t%.6g\n", cells[0], x); err != nil || !strings.Contains(want.String(), text) {
			t.Errorf("the recipe finds %q, must find %q: %v", text, want.String(), err)
		}
	}
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("the recipe finds %q", got)
	}
}

// recipe runs a program of jq of examples/live.
func recipe(t *testing.T, name, in string, flags ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), testkit.Program(t, "jq"), append(flags, "-f", "../../../examples/live/"+name)...)
	c.Stdin = strings.NewReader(in)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// recipeFinds runs the recipe for the sums of metrics that a transcript has.
func recipeFinds(t *testing.T, transcript, want string) {
	t.Helper()
	out := recipe(t, "metrics.jq", transcript, "-nr")
	var got []string
	for line := range strings.Lines(out) {
		cells := strings.Fields(line)
		sum, err := strconv.ParseFloat(cells[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s\t%s\t%s\t%.6g\n", cells[0], cells[1], cells[2], sum))
	}
	slices.Sort(got)
	if all := slices.Sorted(strings.Lines(want)); !slices.Equal(got, all) {
		t.Errorf("the recipe finds %q, must find %q", got, all)
	}
}
