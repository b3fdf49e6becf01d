package verdict

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
)

// The answer of an audit is an error where a claim is refuted or a twin is not, and its page is
// written in each case.
func TestPage(t *testing.T) {
	row := func(name string, low, claimed float64, twin bool) Row {
		return Row{Finding: audit.Finding{Name: name, Claimed: claimed, Low: low,
			Estimate: low, High: math.Inf(1), Refuted: low > claimed, Games: 100}, Twin: twin}
	}
	for _, c := range []struct {
		rows []Row
		want string // in the error; "" is none
	}{
		{[]Row{row("own", 0.5, 1, false)}, ""},
		{[]Row{row("own", 0.5, 1, false), row("twin", 2, 1, true)}, ""},
		{[]Row{row("own", 1.5, 1, false), row("twin", 2, 1, true)}, "refuted: own"},
		{[]Row{row("own", 0.5, 1, false), row("twin", 0.2, 1, true)},
			"broken on purpose and not refuted: twin"},
		{[]Row{row("plain", 9, math.Inf(1), false)}, ""},
	} {
		var out bytes.Buffer
		p := &Page{Title: "Audit", Rows: c.rows, Gamma: 0.05}
		if err := p.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := p.WriteDir(dir, report.Selection{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"report.html", "audit.json"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		err := p.Err()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.rows, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: error %v, want %q", c.rows, err, c.want)
		}
		if strings.Contains(c.want, "refuted: own") &&
			!strings.Contains(out.String(), "The claim of own is refuted") {
			t.Errorf("nothing is said of the refuted claim:\n%s", out.String())
		}
	}
}
