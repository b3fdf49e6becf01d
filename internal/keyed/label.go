package keyed

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var NameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// MaxLabel bounds the labels of instances and policies: they are columns, legends and file names.
const MaxLabel = 100

func CheckLabel(name string) error {
	switch {
	case name == "":
		return errors.New("is missing, must be a name")
	case len(name) > MaxLabel:
		return fmt.Errorf("is %d bytes long, must be at most %d", len(name), MaxLabel)
	case strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029'
	}):
		return fmt.Errorf("is %q, must be one line of text without control characters", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("is %q, must have no spaces around it", name)
	}
	return nil
}
