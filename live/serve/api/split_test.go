package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// An A/B test from nothing, by the page and over HTTP: declared by the form, started, decided by coins
// whose propensities are the shares, rewarded, and released arm beside arm; everybody's transcript is
// replayed to the same.
func TestSplitFromTheForm(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	b := w.login(w.key)
	if page := b.want(200, "GET", "/new", ""); !strings.Contains(page, `name="policy" value="split"`) {
		t.Error(page)
	}
	// as the form is, with its own floor
	fields := func(more ...string) string {
		return shopForm(append([]string{"policy", "split", "floor", "0.05", "effect", "0.5", "rate", "0.4"}, more...)...)
	}
	for _, c := range []struct{ name, value, detail string }{
		{"floor", "0.1", "each arm keeps its share"}, {"effect", "2", "at most 1"}, {"effect", "much", "must be a number"},
		{"rate", "1", "below 1"}, {"shares", "red", "line 1 must be the name of an arm"},
		{"shares", "red = half", "must be a number"}, {"shares", "red = 0.6\nblue = 0.6", "with &#34;red&#34; at 0.4 they would"},
		{"shares", "red = 0.6", "with &#34;blue&#34; at 0.4 they would"},
	} {
		page := b.want(400, "POST", "/new", fields(c.name, c.value, "do", "create"))
		_, field, _ := strings.Cut(page, `id="`+c.name+`-error">`)
		if said, _, _ := strings.Cut(field, "<"); !strings.Contains(said, c.detail) {
			t.Errorf("%s %q: %q", c.name, c.value, said)
		}
	}
	made := fields("shares", "red = 0.75\r\nblue = 0.25", "do", "create")
	if promise := b.want(200, "POST", "/new", strings.Replace(made, "do=create", "do=check", 1)); !strings.Contains(promise,
		"(red 0.75, blue 0.25) and releases all arms together, the first time when the windows of 48 decisions") {
		t.Error(promise)
	}
	b.want(303, "POST", "/new", made)
	b.want(303, "POST", "/experiments/shop/start", "")
	n := [2]int{}
	for i := range 200 {
		d := w.decide(fmt.Sprint("visitor ", i))
		arm := map[string]int{"red": 0, "blue": 1}[d.Arm]
		if n[arm]++; d.Propensity != []float64{0.75, 0.25}[arm] {
			t.Fatalf("%+v", d)
		}
		if i%3 == 0 {
			w.want(200, "POST", "/v1/experiments/shop/rewards", fmt.Sprintf(`{"decision":%q,"reward":1}`, *d.Decision))
		}
	}
	if n[1] < 20 || n[1] > 90 { // of a binomial(200, .25) with probability below 1e-6
		t.Errorf("arms have %v", n)
	}
	for range 10 {
		w.pass(10 * time.Second)
		w.pass(time.Second)
	}
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil || info.Batches != 4 || info.Arms[0].Released+info.Arms[1].Released != 4*48 ||
		info.Arms[0].Releases != 4 || info.Arms[1].Releases < 3 { // a row has none of blue once in 1e6
		t.Fatalf("%d batches, %+v, %v", info.Batches, info.Arms, err)
	}
	if page := b.want(200, "GET", "/experiments/shop", ""); !strings.Contains(page, "split") {
		t.Error(page)
	}
	if got := w.want(200, "GET", "/v1/experiments/shop", ""); !strings.Contains(got, `"shares":{"blue":0.25,"red":0.75}`) ||
		!strings.Contains(got, `"effect":0.5`) {
		t.Error(got)
	}
	r, err := serve.Replay(strings.NewReader(w.want(200, "GET", "/v1/experiments/shop/transcript", "")), catalog.Catalog{})
	if err != nil || r.Batches != 4 || r.Arms[1].Sum != info.Arms[1].Sum || r.Spent.Pure() > 1 {
		t.Errorf("%+v, %v", r, err)
	}
	b.want(303, "POST", "/experiments/shop/stop", form("confirm", "shop", "arm", "blue"))
}
