package page

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A cell that a spreadsheet would take for a formula is a text to it, and numbers stay numbers.
func TestCellsAreNoFormulas(t *testing.T) {
	w, p := httptest.NewRecorder(), &Pages{}
	if err := p.table(w, "x", []string{"a"}, func(row func(...any)) error {
		for _, cell := range []any{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", "", -1, -0.5, "é"} {
			row(1, cell)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	const want = "a\n1,'=1+1\n1,'+1\n1,'-1\n1,'@SUM(A1)\n1,'\t=1\n1,\"'\r=1\"\n1,a=1\n1,\n1,-1\n1,-0.5\n1,é\n"
	if got := w.Body.String(); strings.ReplaceAll(got, "\r\n", "\n") != want {
		t.Errorf("%q, must be %q", got, want)
	}
}
