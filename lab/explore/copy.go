package explore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/privacy"
)

// YAML is an experiment for sotto run whose numbers are those of so many runs.
func (e *Explorer) YAML(runs int) string {
	r := &e.request
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("name: explored")
	line("horizon: %d", r.Horizon)
	line("runs: %d", runs)
	line("seed: %d", r.Seed)
	line("checkpoints: %d", r.Points)
	if r.Lo != 0 || r.Hi != 1 {
		line("range: [%s, %s]", number(r.Lo), number(r.Hi))
	}
	if r.Trust != continuous {
		line("trust: %s", r.Trust)
	}
	line("bounds: true")
	if line("instances:"); r.CSV != "" {
		line("  - {name: log, csv: %s}", strconv.Quote(r.CSV))
	} else {
		arms := make([]string, len(r.Arms))
		for i, law := range r.Arms {
			if arms[i] = law; strings.Contains(law, "(") {
				arms[i] = strconv.Quote(law)
			}
		}
		line("  - {name: arms, laws: [%s]}", strings.Join(arms, ", "))
	}
	line("policies:")
	for _, c := range e.cells {
		if !c.asked {
			continue
		}
		more := ""
		for _, s := range c.choice.Settings {
			more += ", " + s.Name + ": " + s.Value
		}
		if c.entry.Private {
			more += ", budgets: [" + budget(c.budget)
			if c.twin >= 0 {
				more += ", none"
			}
			more += "]"
		}
		line("  - {policy: %s%s}", c.entry.Name, more)
	}
	return b.String()
}

func budget(b privacy.Budget) string {
	return "{" + strings.NewReplacer("=", ": ", ",", ", ").Replace(b.String()) + "}"
}

// plain is text that a shell leaves as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.,:=+/-]+$`)

func quoted(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Command is sotto run with the numbers of so many runs, at the horizon.
func (e *Explorer) Command(runs int) string {
	r := &e.request
	var policies []string
	private := false
	for _, c := range e.cells {
		if c.asked {
			policies, private = append(policies, c.text), private || c.entry.Private
		}
	}
	s := "sotto run"
	add := func(name, value string) { s += " --" + name + " " + quoted(value) }
	if r.CSV != "" {
		add("csv", r.CSV)
	} else {
		add("arms", strings.Join(r.Arms, ","))
	}
	if r.Lo != 0 || r.Hi != 1 || r.CSV != "" {
		add("range", number(r.Lo)+","+number(r.Hi))
	}
	add("policies", strings.Join(policies, ","))
	if private {
		for _, f := range strings.Split(r.Budget.String(), ",") {
			name, value, _ := strings.Cut(f, "=")
			add(name, value)
		}
		s += " --no-budget"
		if r.Trust != continuous {
			add("trust", r.Trust)
		}
	}
	add("horizon", strconv.Itoa(r.Horizon))
	add("runs", strconv.Itoa(runs))
	add("seed", strconv.FormatUint(r.Seed, 10))
	return s
}
