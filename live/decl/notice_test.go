package decl_test

import (
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
)

// told is all that a notice says, and what is left to do.
func told(t *testing.T, yaml string, by decl.Sender) (text, todo string) {
	t.Helper()
	l, err := decl.Parse("notice.yaml", []byte(yaml))
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		t.Errorf("%v\n%s", err, yaml)
		return "", ""
	}
	n, err := l.Notice(by)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(n.Title)
	for _, s := range n.Sections {
		if s.Title == "" || len(s.Text)+len(s.Items) == 0 {
			t.Errorf("a section has no title, or says nothing: %+v", s)
		}
		for _, line := range append(append([]string{s.Title}, s.Text...), s.Items...) {
			if strings.Contains(line, "%!") || strings.TrimSpace(line) == "" {
				t.Errorf("a line is %q", line)
			}
			b.WriteString("\n" + line)
		}
	}
	return b.String(), strings.Join(n.Todo, "\n")
}

const noticeShop = `name: shop
arms: [short, long]
policy: dp-klucb
budget: {epsilon: 0.5}
unit: {of: person}
window: 24h
`

// Whatever a declaration says that concerns a visitor, its notice says in words, and says nothing of what
// is not declared.
func TestNotice(t *testing.T) {
	base, todo := told(t, noticeShop, decl.Sender{})
	for _, want := range []string{"2 versions: short, long", "a factor of about 1.65.", "at most about 62 %", "within 24 hours",
		"[your contact]", "when we archive the test: [when]", "no fixed end", "That you took part", "nothing counts any more", "epsilon=0.5",
		"keeps no record of what your outcome was"} {
		if !strings.Contains(base, want) {
			t.Errorf("it does not say %q:\n%s", want, base)
		}
	}
	for _, want := range []string{"who you are", "reach you", "archive", "cookie"} {
		if !strings.Contains(todo, want) {
			t.Errorf("it does not ask for %q: %s", want, todo)
		}
	}
	filled, todo := told(t, noticeShop+"retention: 720h\n", decl.Sender{Name: "Shop Ltd", Contact: "a@b.example"})
	if strings.Contains(filled, "[") || strings.Contains(todo, "reach you") || strings.Contains(todo, "archive") ||
		!strings.Contains(filled, "30 days after the test has stopped") ||
		!strings.Contains(filled, "Write to a@b.example") || !strings.Contains(filled, "Shop Ltd compares") {
		t.Errorf("%s\n%s", filled, todo)
	}
	edit := func(pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(noticeShop)
		if out == noticeShop {
			t.Fatalf("%q changes nothing", pairs)
		}
		return out
	}
	for want, yaml := range map[string]string{
		"Chance alone decides which": edit("dp-klucb", "split"),
		"That is weak protection":    edit("0.5", "9"),
		"a factor of about 8100.":    edit("0.5", "9"),
		"a million, or more":         edit("0.5", "15"),
		"of at most 1 in 1000000":    edit("dp-klucb", "adac-ucb", "epsilon: 0.5", "rho: 0.1"),
		"Also spend, from the event “order”; reports are added up": noticeShop + "reward: {event: order}\n" +
			"metrics: [{name: spend, range: [0, 50], event: order, field: total, aggregate: sum, budget: {epsilon: 0.2}}]\n",
		"until it is in a total, and then overwrites": noticeShop + "reward: {aggregate: sum, range: [0, 9]}\n",
		"epsilon=0.7":                   noticeShop + "metrics: [{name: spend, range: [0, 50], budget: {epsilon: 0.2}}]\n",
		"Your device adds random noise": edit("dp-klucb", "adap-klucb") + "trust: local\n",
		"destroyed in the night after 90 days. If you come back, you count as new, 2 times at most": edit("of: person",
			"of: person, assignments: 3") + "forget: 90d\nstart: 2026-01-01T00:00:00Z\nend: 2026-03-01T00:00:00Z\n",
		"ends on 1 March 2026":                   noticeShop + "end: 2026-03-01T00:00:00Z\n",
		"from a public plan":                     noticeShop + "reward: {event: order}\nleases: {for: 1h, delay: 1h}\n",
		"You count from then on only":            noticeShop + "exposure: activate\n",
		"Then you do not count":                  noticeShop + "exposure: retract\n",
		"Your device, one of phone, desktop":     edit("dp-klucb", "split") + "by: {device: [phone, desktop]}\n",
		"Everybody can see totals":               noticeShop + "public: true\n",
		"tell whether an outcome came":           noticeShop + "missing: drop\nreports: every\n",
		"no more than 2 do":                      edit("of: person", "of: device, per_person: 2"),
		"We keep nothing by which we could find": noticeShop + "sticky: false\n",
		"That your device took part":             edit("of: person", "of: device"),
		"For a choice: device. These facts are not protected": "name: f\ncontextual:\n  context:\n    device: {values: " +
			"[phone, desktop]}\n  action:\n    topic: {values: [news, sport]}\n  cross: [{of: [device, topic]}]\n  actions: 4\n" +
			"budget: {rho: 1}\nunit: {of: visit}\nwindow: 10m\n",
	} {
		text, _ := told(t, yaml, decl.Sender{})
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
		if strings.Contains(base, want) {
			t.Errorf("it says %q of what does not declare it", want)
		}
	}
}
