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
	for _, want := range []string{"2 versions: short, long", "a factor of 1.65.", "at most 62.3 %", "within 24 hours",
		"[your contact]", "when we archive the test: [when]", "no fixed end", "That you took part", "nothing counts any more", "epsilon=0.5",
		"in the test is given one.\nTotals of what happened", "it notes that a report came", "read it without noise, and whether a report",
		"Totals are kept without noise until", "all your outcomes in this test together."} {
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
	const contextual = "name: f\ncontextual:\n  context:\n    device: {values: [phone, desktop]}\n  action:\n    topic: {values: " +
		"[news, sport]}\n  cross: [{of: [device, topic]}]\n  actions: 4\nbudget: {rho: 1}\nunit: {of: visit}\nwindow: 10m\n"
	guarded := edit("dp-klucb", "split") + "metrics: [{name: returns, budget: {epsilon: 0.1}}]\n" +
		"guard: [{metric: returns, below: 0.5, risk: 0.01}]\n"
	for want, yaml := range map[string]string{
		"Chance alone decides which": edit("dp-klucb", "split"),
		"That is weak protection":    edit("0.5", "9"),
		"a factor of 8110.":          edit("0.5", "9"),
		"a million, or more":         edit("0.5", "15"),
		"of at most 1 in 1000000":    edit("dp-klucb", "adac-ucb", "epsilon: 0.5", "rho: 0.1"),
		"a factor of 317.":           edit("dp-klucb", "adac-ucb", "epsilon: 0.5", "rho: 0.5"), // its loss is above 5.22 more often
		"a chance that delta limits": edit("dp-klucb", "adac-ucb", "epsilon: 0.5", "epsilon: 0.5, delta: 1.0e-6"),
		"Also spend, from the event “order”; reports are added up": noticeShop + "reward: {event: order}\n" +
			"metrics: [{name: spend, range: [0, 50], event: order, field: total, aggregate: sum, budget: {epsilon: 0.2}}]\n",
		"until the total with it is released, and then overwrites": noticeShop + "reward: {aggregate: sum, range: [0, 9]}\n",
		"epsilon=0.7":                   noticeShop + "metrics: [{name: spend, range: [0, 50], budget: {epsilon: 0.2}}]\n",
		"Your device adds random noise": edit("dp-klucb", "adap-klucb") + "trust: local\n",
		"destroyed at the first midnight (UTC) after 90 days, or when the test has stopped. If you come back, you count as new, 2 times at most": edit("of: person",
			"of: person, assignments: 3") + "forget: 90d\nstart: 2026-01-01T00:00:00Z\nend: 2026-03-01T00:00:00Z\n",
		"ends on 1 March 2026":                                                   noticeShop + "end: 2026-03-01T00:00:00Z\n",
		"from a public plan":                                                     noticeShop + "reward: {event: order}\nleases: {for: 1h, delay: 1h}\n",
		"You count from then on only":                                            noticeShop + "exposure: activate\n",
		"Then you do not count":                                                  noticeShop + "exposure: retract\n",
		"Your device, one of phone, desktop":                                     edit("dp-klucb", "split") + "by: {device: [phone, desktop]}\n",
		"Everybody can see totals":                                               noticeShop + "public: true\n",
		"tell whether an outcome came":                                           noticeShop + "missing: drop\nreports: every\n",
		"no more than 2 do":                                                      edit("of: person", "of: device, per_person: 2"),
		"only by a name that the page gave it, or":                               noticeShop + "sticky: false\n",
		"Each visit in the test is given one":                                    noticeShop + "sticky: false\n",
		"outcome of one visit; several visits":                                   noticeShop + "sticky: false\n",
		"3 in all at most":                                                       edit("of: person", "of: person, assignments: 3"),
		"Chance decides who is in the test.\nAll others":                         noticeShop + "share: 0.1\n",
		"Chance decides who is in the test.\nFew are at":                         noticeShop + "ramp: [{share: 0.1, for: 1h}, {share: 1}]\n",
		"who is in the test.\nWho is in the test dep":                            noticeShop + "layer: {name: y, from: 0, to: 0.5}\nonly: {country: [de]}\n",
		"these facts about a visit: country.":                                    noticeShop + "only: {country: [de]}\n",
		"the test “base” decides who":                                            noticeShop + "holdout: base\n",
		"is removed, or the test is paused":                                      guarded,
		"Chance decides which.":                                                  guarded,
		"For some, chance alone decides which":                                   noticeShop + "floor: 0.1\n",
		"decide which, and when the test ends.":                                  edit("dp-klucb", "adap-tt") + "risk: 0.05\n",
		"No noise hides whether the version was shown":                           noticeShop + "exposure: retract\n",
		"if there was one, by at most":                                           noticeShop + "missing: drop\nreports: every\n",
		"Your device may go on showing a version":                                noticeShop + "reward: {event: order}\nleases: {for: 1h, delay: 1h}\n",
		"What your device sends us is kept":                                      edit("dp-klucb", "adap-klucb") + "trust: local\n",
		"and your outcome by itself":                                             noticeShop + "reward: {aggregate: sum, range: [0, 9]}\n",
		"Until the test ends the first one is shown":                             strings.Replace(contextual, "  actions", "  mode: apprentice\n  actions", 1),
		"A part of the choices is random":                                        contextual + "floor: 0.1\n",
		"which choices work. The choices follow from":                            contextual,
		"That your device took part":                                             edit("of: person", "of: device"),
		"For a choice: device, facts about what is offered. These facts are not": contextual,
		"within the limit below, too": strings.NewReplacer("contextual:", "contextual:\n  protect: joint", "rho: 1", "epsilon: 1",
			"of: visit", "of: visit, per_person: 2").Replace(contextual) + "horizon: 10000\n",
	} {
		text, _ := told(t, yaml, decl.Sender{})
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
		if strings.Contains(base, want) {
			t.Errorf("it says %q of what does not declare it", want)
		}
	}
	for _, c := range []struct{ not, yaml string }{
		{"Chance alone", guarded},
		{"Totals are kept without noise", edit("dp-klucb", "adap-klucb") + "trust: local\n"},
		{"it notes that a report came", noticeShop + "reward: {aggregate: sum, range: [0, 9]}\n"},
		{"1 in 1000000", edit("dp-klucb", "adac-ucb", "epsilon: 0.5", "epsilon: 0.5, delta: 1.0e-6")},
		{"Each person", noticeShop + "sticky: false\n"},
		{"you then get the usual version", noticeShop + "reward: {event: order}\nleases: {for: 1h, delay: 1h}\n"},
		{"choices is random", contextual},
	} {
		if text, _ := told(t, c.yaml, decl.Sender{}); strings.Contains(text, c.not) {
			t.Errorf("it says %q:\n%s", c.not, text)
		}
	}
}
