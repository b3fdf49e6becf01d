package play

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/gramline"
)

// A line is what JSON reads in it, and refused where JSON, or how it is written, refuses it: whatever somebody
// has changed.
func TestReadContextual(t *testing.T) {
	t.Parallel()
	sound := 0
	rapid.Check(t, func(t *rapid.T) {
		row := line{N: rapid.IntRange(0, 20).Draw(t, "n"),
			Gram: rapid.SliceOfN(rapid.Int64Range(-20, 20), 0, 4).Draw(t, "gram")}
		if rapid.Bool().Draw(t, "release") {
			row.Release = json.RawMessage(`{"slot":0,"vector":[1,-0.5]}`)
		}
		if rapid.Bool().Draw(t, "rule") {
			row.Rules = []ruleLine{{Weights: 3, Squares: 4, Release: json.RawMessage(`[1]`)}}
		}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		bare := row
		bare.Gram = nil
		if rest, _ := json.Marshal(bare); row.N > 0 && len(rest) > len(`{"n":10}`) {
			if put := gramline.Put(rest, row.Gram); string(put) != string(text) {
				t.Fatalf("%s is written as %s", text, put)
			}
		}
		pieces := []string{"", "0", "-", ",", "]", "[", " ", `"gram":[1],`, `"n":2,`, "1.0", `"Gram"`, "}", "\n", "e1",
			"9223372036854775808"}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := min(len(text), from+rapid.IntRange(0, 3).Draw(t, "gone"))
			put := rapid.SampledFrom(pieces).Draw(t, "put")
			text = append(text[:from:from], append([]byte(put), text[to:]...)...)
		}
		var want line
		refused := readJSON(text, &want)
		got, err := readLine(text)
		if (err == nil) != (refused == nil) {
			t.Fatalf("%s: %v, must be %v", text, err, refused)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is read as %+v, must be %+v", text, got, want)
		}
		if _, _, cut := gramline.Cut(text); err == nil && cut {
			sound++
		}
	})
	if sound < 5 {
		t.Errorf("%d sound lines had sums", sound)
	}
}
