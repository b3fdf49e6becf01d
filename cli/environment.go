package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// slips are the variables of an environment that a command does not read, and whose names are one slip
// from one that it does, each with that one: set in vain, so that the flag has its default in silence.
func slips(model *kong.Application, environ []string) (out [][2]string) {
	known := []string{"SOTTO_KEY"} // no flag's
	_ = kong.Visit(model, func(v kong.Visitable, next kong.Next) error {
		if f, ok := v.(*kong.Flag); ok {
			known = append(known, f.Envs...)
		}
		return next(nil)
	})
	for _, text := range environ {
		name, _, _ := strings.Cut(text, "=")
		if !strings.HasPrefix(name, "SOTTO") || slices.Contains(known, name) {
			continue
		}
		if i := slices.IndexFunc(known, func(k string) bool { return isSlip(name, k) }); i >= 0 {
			out = append(out, [2]string{name, known[i]})
		}
	}
	return out
}

// isSlip says whether two words differ by one letter that is wrong, too much, wanting or swapped with
// the next one.
func isSlip(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return len(a) <= 1 && len(b) <= 1 || swapped
}
