package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/lease"
)

func planOf(buckets ...int) lease.Plan {
	p := lease.Plan{Experiment: "shop", Epoch: 9, Salt: lease.Salt{1, 2, 3}, From: time.UnixMilli(0), Until: time.UnixMilli(1)}
	for i, n := range buckets {
		p.Arms = append(p.Arms, lease.Share{Arm: string(rune('a' + i)), Buckets: n})
	}
	p.Arms[0].Value = json.RawMessage(`true`)
	return p
}

// Each of the buckets is in the range of its arm alone, as clients compute it with float64, and
// cumulative sums of weights would not be: of five random ones a quarter has such a bucket.
func TestGrowthBookRanges(t *testing.T) {
	p := planOf(4656, 3526, 0, 97, 1348, 373)
	b, err := json.Marshal(GrowthBookOf(p, 2.5, lease.Share{Arm: "x", Value: json.RawMessage(`false`)}))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Default any `json:"defaultValue"`
		Rules   []struct {
			Key, Seed, HashAttribute string
			HashVersion              int
			Variations               []any
			Ranges                   [][2]float64
			Meta                     []struct{ Key, Name string }
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	r := f.Rules[0]
	if len(r.Variations) != 18 || len(r.Ranges) != 18 || len(r.Meta) != 18 || f.Default != false || r.HashVersion != 2 ||
		r.Key != "shop" || r.Seed != p.Salt.String() || r.HashAttribute != "id" || fmt.Sprint(r.Variations[12:]) != "[true b c d e f]" {
		t.Fatalf("%s", b)
	}
	for i, m := range r.Meta {
		if want := fmt.Sprintf("%s:%d", p.Arms[i%6].Arm, 9-i/6); m.Key != want || m.Name != p.Arms[i%6].Arm {
			t.Errorf("variation %d: %v, must be %s", i, m, want)
		}
	}
	summed := 0
	for bucket := range lease.Buckets {
		n, sum := float64(bucket)/10000, 0.
		for i, of := range r.Ranges {
			if in := n >= of[0] && n < of[1]; in != (i == p.At(bucket)) {
				t.Fatalf("bucket %d is in range %d, %v: %v", bucket, i, of, in)
			}
			if i < 6 {
				from := sum
				sum += float64(p.Arms[i].Buckets) / 10000
				if in := n >= from && n < sum; in != (i == p.At(bucket)) {
					summed++
				}
			}
		}
	}
	if summed == 0 {
		t.Error("sums of weights agree, so that this test shows nothing")
	}
}

// What plugins send that is no exposure of ours is left alone, also what came of a decision.
func TestGrowthBookExposures(t *testing.T) {
	const properties = `{"experimentId": "shop", "variationId": "a:b:9", "hashAttribute": "id", "hashValue": %s}`
	event := func(name, properties string) string {
		return fmt.Sprintf(`{"event_name": %q, "properties_json": %s, "device_id": null}`, name, properties)
	}
	for body, want := range map[string]string{
		event(viewed, fmt.Sprintf(properties, `"Zoë"`)):         "{shop Zoë 9 a:b growthbook}",
		event(viewed, fmt.Sprintf(properties, ` 17 `)):          "{shop 17 9 a:b growthbook}",
		event("checkout", `{"value": 1}`):                       "",
		event("Feature Evaluated", `{"feature": "shop"}`):       "",
		strings.Replace(event(viewed, properties), ":9", "", 1): "",
		event(viewed, fmt.Sprintf(properties, "1.5")):           "{shop 1.5 9 a:b growthbook}",
		event(viewed, fmt.Sprintf(properties, "true")):          "",
		event(viewed, `"text"`):                                 "error properties_json",
		`{"event_name": 1}`:                                     "error event_name",
	} {
		body = strings.ReplaceAll(body, "%s", `"x"`)
		got, err := GrowthBookExposures([]byte("[" + body + "]"))
		switch said := ""; {
		case err != nil:
			if word, isError := strings.CutPrefix(want, "error "); !isError || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v", body, err)
			}
		default:
			for _, e := range got {
				said += fmt.Sprint(e)
			}
			if said != want {
				t.Errorf("%s: %s, must be %s", body, said, want)
			}
		}
	}
	if _, err := GrowthBookExposures([]byte(`{}`)); err == nil {
		t.Error("an object is read as an array")
	}
}

func FuzzGrowthBookExposures(f *testing.F) {
	f.Add([]byte(`[{"event_name":"Experiment Viewed","properties_json":{"experimentId":"x","variationId":"731:1","hashValue":"731"}}]`))
	f.Add([]byte(`[{"event_name":"Experiment Viewed","properties_json":{"experimentId":731,"variationId":":1","hashValue":731e9}}]`))
	f.Add([]byte(`[null, {}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := GrowthBookExposures(body)
		if err != nil {
			var of *keyed.Error
			if len(out) > 0 || !errors.As(err, &of) || len(of.Error()) > 200 || strings.Contains(of.Error(), "731") {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		for _, e := range out {
			if e.Arm == "" || e.Hash != lease.GrowthBook {
				t.Errorf("%q: %+v", body, e)
			}
		}
	})
}

// A plan's flag has whole numbers of buckets, and everybody without a name gets one arm.
func TestFlagd(t *testing.T) {
	b, err := json.Marshal(FlagdDefinitionsOf(map[string]FlagdFlag{"shop": FlagdOf(planOf(9000, 1000), "b")}))
	const want = `{"$schema":"https://flagd.dev/schema/v0/flags.json","flags":{"shop":{"state":"ENABLED","variants":{"a":true,"b":"b"},` +
		`"defaultVariant":"b","targeting":{"if":[{"var":"targetingKey"},{"fractional":[{"cat":["01020300000000000000000000000000",` +
		`{"var":"targetingKey"}]},["a",9000],["b",1000]]},null]},"metadata":{"epoch":9,"experiment":"shop"}}}}`
	if string(b) != want || err != nil {
		t.Errorf("%s, must be\n%s", b, want)
	}
}
