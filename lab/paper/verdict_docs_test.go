package paper

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"
)

// The page on how verdicts changed says of each entry what claims.csv says.
func TestVerdictsPageAgreesWithClaims(t *testing.T) {
	f, err := os.Open("../../docs/claims.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	now, count := map[string]string{}, map[string]int{}
	for _, r := range rows[1:] {
		now[r[0]] = r[4]
		count[r[4]]++
	}
	b, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, line := range strings.Split(string(b), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || !strings.Contains(cells[0], "/") {
			continue
		}
		said := cells[len(cells)-2]
		for _, id := range strings.Split(cells[0], ", ") {
			is, ok := now[id]
			if !ok {
				is = "gone"
			}
			if said != is {
				t.Errorf("verdicts.md has %q for %s, claims.csv %q", said, id, is)
			}
			named[id] = true
		}
	}
	for id, v := range now {
		if Verdict(v).Grave() && !named[id] {
			t.Errorf("verdicts.md does not tell of %s, %s", id, v)
		}
	}
}
