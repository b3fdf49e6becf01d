package paper

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateVerdicts = flag.Bool("update", false, "write the verdicts of docs/verdicts.md anew")

// The list of docs/verdicts.md has each grave verdict of docs/claims.csv with what the code says of its claim: why, the
// proof, and what a reader should do.
func TestVerdictsPage(t *testing.T) {
	f, err := os.Open("../../docs/claims.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	claims, source := map[string]Claim{}, map[string]string{}
	for _, figure := range All() {
		for _, c := range figure.Claims {
			id := figure.ID + "/" + c.ID
			claims[id], source[id] = c, workOf(figure.Source).Key
		}
	}
	var list strings.Builder
	for _, v := range Verdicts() {
		title := "\n### " + strings.ToUpper(string(v)[:1]) + string(v)[1:] + "\n\n" + v.Means() + "\n\n"
		for _, r := range rows[1:] {
			if Verdict(r[4]) != v || !v.Grave() {
				continue
			}
			c, ok := claims[r[0]]
			if !ok {
				t.Errorf("claims.csv has %s, and no figure does", r[0])
			}
			fmt.Fprintf(&list, "%s- `%s`: %s, %s. *%s* %s", title, r[0], source[r[0]], markdown(withoutPages(r[2])),
				markdown(r[3]), markdown(c.Why))
			title = ""
			if c.Proof != "" {
				list.WriteString(" *Proof.* " + markdown(c.Proof))
			}
			if c.Reader != "" {
				list.WriteString(" **Instead:** " + markdown(c.Reader))
			}
			list.WriteString("\n")
		}
	}
	const path, begin, end = "../../docs/verdicts.md",
		"<!-- verdicts: go test ./lab/paper -run VerdictsPage -update -->\n", "\n<!-- end of verdicts -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(page), begin)
	_, tail, ok := strings.Cut(rest, end)
	want := head + begin + list.String() + end + tail
	switch {
	case !ok:
		t.Error("docs/verdicts.md has no place for the verdicts")
	case *updateVerdicts:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(page):
		t.Error("docs/verdicts.md is not what claims.csv and the figures say: go test ./lab/paper -run VerdictsPage -update")
	}
}
