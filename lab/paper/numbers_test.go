package paper

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// What set keeps comes back, in the order of fields; a check ends at the first error.
func TestNumbersHaveNames(t *testing.T) {
	type inner struct{ A, B float64 }
	type outer struct {
		inner
		C    float64
		Ends [2]float64
	}
	n := &Numbers{Values: map[string][]float64{}}
	want := []outer{{inner{1, 2}, 3, [2]float64{4, 5}}, {inner{6, 7}, 8, [2]float64{9, 10}}}
	n.set("many", want)
	n.set("one", 11.0)
	if got := n.Values["many"]; !reflect.DeepEqual(got, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("kept as %v", got)
	}
	_, err := Check(func(e *Evidence) Finding {
		if got := rows[outer](e, "many"); !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		if got := named[inner](e, "many"); got != want[0].inner {
			t.Errorf("the first numbers are %v", got)
		}
		if got := named[float64](e, "one"); got != 11 {
			t.Errorf("one number is %v", got)
		}
		return Finding{}
	}).Of(&Evidence{Numbers: n})
	if err != nil {
		t.Error(err)
	}
	short := Check(func(e *Evidence) Finding {
		got := named[inner](e, "one")
		t.Errorf("of too few numbers %v came", got)
		return Finding{}
	})
	if _, err := short.Of(&Evidence{Numbers: n}); err == nil ||
		!strings.Contains(err.Error(), "1 numbers of one, must be 2") {
		t.Errorf("too few numbers: %v", err)
	}
	var not *NotPlayedError
	if _, err := short.Of(&Evidence{}); !errors.As(err, &not) || not.Name != "one" {
		t.Errorf("no numbers: %v", err)
	}
	if _, err := largest("one", 20, "at %v").Of(&Evidence{Numbers: n}); err == nil {
		t.Error("a place that is not kept was shown")
	}
	var broken Check = func(*Evidence) Finding { panic("a slip") }
	defer func() {
		if x := recover(); x != "a slip" {
			t.Errorf("a slip came out as %v", x)
		}
	}()
	_, _ = broken.Of(&Evidence{})
	t.Error("a slip was taken for missing evidence")
}
