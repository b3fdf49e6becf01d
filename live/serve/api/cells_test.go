package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Cells are in report, page, JSON, Prometheus, ledger, recipe and replay, with the same numbers.
func TestCells(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open}) // with noise that can be replayed
	w.want(201, "POST", "/v1/experiments", `
name: shop
arms: [red, blue]
policy: split
effect: 0.8
budget: {epsilon: 20}
unit: {of: visit}
window: 1m
by: {device: [phone, desktop]}
cell_minimum: 4
metrics: [{name: basket, budget: {epsilon: 10}}]
`)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	for i := range 400 {
		device := []string{"phone", "phone", "desktop", "tv"}[i%4]
		var d struct{ Decision, Arm string }
		if err := json.Unmarshal([]byte(w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(
			`{"unit": "unit %d", "context": {"device": %q}}`, i, device))), &d); err != nil {
			t.Fatal(err)
		}
		if (d.Arm == "red") == (device == "phone") { // red is for phones, blue for all else
			w.want(200, "POST", "/v1/experiments/shop/rewards", reward(d.Decision, "1"))
		}
	}
	for range 40 {
		w.pass(4 * time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", "/v1/experiments/shop", "")), &info); err != nil {
		t.Fatal(err)
	}
	r, of := w.asReport(), info.Cells
	if of == nil || !reflect.DeepEqual(of, r.Cells) || of.By != "device" || of.Minimum != 4 || len(of.Each) != 6 {
		t.Fatalf("%+v, and the report has %+v", of, r.Cells)
	}
	// Of 200 decisions of phones, and of 100 of desktops, all were rewarded or none, and the noises of 25 releases are in
	// a sum, of scale .05: those are beyond 10 with probability (1-λ²)^-25 e^(-200λ) at λ = 0.9, below 1e-50.
	for i, leader := range []string{"red", "blue", "blue"} {
		if v := of.Each[2*i].Verdict; v.Leader != leader || v.Word != "conclusive" {
			t.Errorf("%s: %+v", of.Each[2*i].Cell, v)
		}
	}
	apart := of.Each[2].Arms[1].Apart
	if here, there := of.Each[2].Arms[1].DifferenceInterval, of.Each[0].Arms[1].DifferenceInterval; apart == nil ||
		*apart != [2]float64{here[0] - there[1], here[1] - there[0]} || apart[0] <= 0 {
		t.Errorf("blue less red is %v, and of phones %v: %v", here, there, apart)
	}
	transcript := w.want(200, "GET", "/v1/experiments/shop/transcript", "")
	again, err := serve.Replay(strings.NewReader(transcript), catalog.Catalog{})
	if err != nil || !reflect.DeepEqual(again.ByCell(), of) {
		t.Errorf("a replay has %+v, %v", again.ByCell(), err)
	}
	var recipe strings.Builder
	for _, a := range info.Metrics.Each[0].Arms {
		fmt.Fprintf(&recipe, "basket\t%s\t%d\t%.6g\n", a.Arm, a.Released, a.Sum)
	}
	recipeFinds(t, transcript, recipe.String())
	for path, says := range map[string][]string{
		reportPath:          {"Against", "desktop: basket", "red is better than blue"},
		"/experiments/shop": {"By device", "Against phone", "desktop: basket", "fewer than 4 decisions"},
		"/metrics": {`sotto_released_cell_mean{arm="red",cell="other",experiment="shop",value="estimate"}`,
			`sotto_released_cell_difference{arm="blue",cell="phone",experiment="shop",value="high"}`},
		"/experiments/shop/ledger.csv": {`"red, phone"`},
	} {
		text := strings.ReplaceAll(w.plain(http.MethodGet, path, "").Body.String(), "against", "Against")
		for _, want := range says {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q: %.3000s", path, want, text)
			}
		}
	}
	w.want(409, "PATCH", "/v1/experiments/shop", `{"by": {"device": ["phone"]}}`)
}
