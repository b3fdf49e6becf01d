package cli

import (
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
)

// programFlag lets policies in that are programs of somebody else.
type programFlag struct {
	Exec []string `name:"exec" sep:"none" help:"${programExec}" placeholder:"COMMAND"`
}

var programTexts = kong.Vars{
	"programExec": "A program of your own that is a policy, such as 'python3 mine.py': it is known by the name that it " +
		"says. Words are divided at spaces. Can be given several times; contrib/python/README.md has the format.",
}

// known is the catalog with the programs. Any lets in one that states less noise than a budget needs.
func (f programFlag) known(s streams, bandit string, anyNoise bool) (catalog.Catalog, error) {
	known := s.known
	for _, text := range f.Exec {
		e, err := s.known.Start(bandit, catalog.Program{Args: strings.Fields(text), Any: anyNoise})
		if err == nil {
			known, err = known.With(e)
		}
		if err != nil {
			return known, &flags.Error{Field: "--exec", Err: err}
		}
	}
	return known, nil
}

// text is the flag as it was given, to repeat a command.
func (f programFlag) text() string {
	out := ""
	for _, command := range f.Exec {
		if strings.ContainsAny(command, "'\\") {
			out += " --exec " + strconv.Quote(command)
		} else {
			out += " --exec '" + command + "'"
		}
	}
	return out
}
