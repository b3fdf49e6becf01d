package gramline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is put is what JSON says, and is cut and read again.
func TestPutCutParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type text struct {
			N    int     `json:"n,omitempty"`
			Gram []int64 `json:"gram,omitempty"`
			More string  `json:"more"`
		}
		in := text{N: rapid.IntRange(1, 1<<30).Draw(t, "n"), Gram: rapid.SliceOf(rapid.Int64()).Draw(t, "sums"),
			More: rapid.String().Draw(t, "more")}
		want, _ := json.Marshal(in)
		rest, _ := json.Marshal(text{N: in.N, More: in.More})
		if got := Put(rest, in.Gram); !bytes.Equal(got, want) {
			t.Fatalf("%s, must be %s", got, want)
		}
		cut, list, ok := Cut(want)
		if ok != (len(in.Gram) > 0) || !bytes.Equal(cut, rest) {
			t.Fatalf("cut to %s, %v, must be %s", cut, ok, rest)
		}
		if got, whole := Parse(list); ok && (!whole || !slices.Equal(got, in.Gram)) {
			t.Fatalf("%s is read as %v", list, got)
		}
	})
}

// What is read is what JSON would write of it, whatever is there.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", ",", "1,", ",1", "01", "-0", "-", "--1", "0,-1,10", "1,,2", "9223372036854775807",
		"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551617",
		"12345678901234567890", "1e3", "1.0", " 1", "+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want []int64
		err := json.Unmarshal([]byte("["+s+"]"), &want)
		again, _ := json.Marshal(want)
		written := err == nil && len(want) > 0 && string(again) == "["+s+"]"
		got, ok := Parse([]byte(s))
		if ok != written || ok && !slices.Equal(got, want) {
			t.Errorf("%q is read as %v, %v, must be %v, %v", s, got, ok, want, written)
		}
	})
}

// Lines that are written in another way are left whole.
func TestCutLeaves(t *testing.T) {
	for _, s := range []string{"", "{}", `{"n":1}`, `{"n":1,"gram":[]}`, `{"n":1,"gram":[],"release":{}}`,
		`{"n":1,"gram":[1]}`, `{"n":1,"gram":[1],`[:16], `{"n":1,"gram":[[1]],"release":{}}`,
		`{"n":1,"gram":["1"],"release":{}}`, `{"n":1, "gram":[1],"release":{}}`, `{"gram":[1],"n":1}`,
		`{"N":1,"gram":[1],"n":1}`, `{"n":"1","gram":[1],"n":1}`, `{"n":1,"Gram":[1],"n":1}`} {
		if rest, _, ok := Cut([]byte(s)); ok || string(rest) != s {
			t.Errorf("%s is cut to %s", s, rest)
		}
	}
	if rest, list, ok := Cut([]byte(`{"n":1,"gram":[1,-2],"release":{}}`)); !ok || string(list) != "1,-2" ||
		string(rest) != `{"n":1,"release":{}}` {
		t.Errorf("%s, %s", rest, list)
	}
	if !strings.HasPrefix(string(Put([]byte(`{"n":1,"release":{}}`), []int64{1, -2})), `{"n":1,"gram":[1,-2],"rel`) {
		t.Error("put elsewhere")
	}
}
