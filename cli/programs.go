package cli

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// programFlag lets policies in that are programs of somebody else.
type programFlag struct {
	Exec []string `name:"exec" sep:"none" help:"${programExec}" placeholder:"COMMAND"`
}

// startFlag lets a command that plays nothing start the programs that a file names.
type startFlag struct {
	Start bool `help:"${startPrograms}"`
}

// wouldRun are the commands that a file names, as they would be started, each once.
func wouldRun(spec *experiment.Spec) (out []string) {
	add := func(args []string) {
		// Quoted where it must be: a command can have bytes that a terminal obeys.
		text := strings.Join(args, " ")
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			text = strconv.Quote(text)
		}
		if len(args) > 0 && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, p := range spec.Policies {
		add(p.Program.Args)
	}
	for _, in := range spec.Instances {
		add(in.Exec)
	}
	return out
}

var programTexts = kong.Vars{
	"startPrograms": "Start the programs that the file names (exec). Without it none is: read such a file first.",
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
