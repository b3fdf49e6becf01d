package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
)

type completionCommand struct {
	Shell flags.Choice `arg:"" of:"bash,zsh,fish" name:"SHELL" help:"bash, zsh or fish."`
}

// completionScripts hand the words so far, the one being written last, to complete.
var completionScripts = map[flags.Choice]string{
	"bash": `_NAME() {
	local IFS=$'\n'
	COMPREPLY=($(NAME complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _NAME NAME
`,
	"zsh": `#compdef NAME
_NAME() {
	local -a next
	next=("${(@f)$(NAME complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$next" ]]; then compadd -a next; else _files; fi
}
compdef _NAME NAME
`,
	"fish": `complete -c NAME -a '(NAME complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func (c *completionCommand) Run(s streams) error {
	_, err := fmt.Fprint(s.out, strings.ReplaceAll(completionScripts[c.Shell], "NAME", s.program))
	return err
}

// completeCommand is what the scripts of completion ask.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

func (c *completeCommand) Run(k *kong.Kong, s streams) error {
	for _, next := range nextWords(k.Model.Node, s.known, c.Words) {
		if _, err := fmt.Fprintln(s.out, next); err != nil {
			return err
		}
	}
	return nil
}

// nextWords are what the last of some words may become: nothing where it may be anything.
func nextWords(node *kong.Node, known catalog.Catalog, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	if words = slices.Clone(words); words[len(words)-1] == "=" {
		words = append(words, "")
	}
	// bash hands --trust=se over as three words
	words = benchCommand(slices.DeleteFunc(words, func(w string) bool { return w == "=" }))
	last, before := words[len(words)-1], words[:len(words)-1]
	var value *kong.Value // that comes next
	for _, w := range before {
		switch f := flagNamed(node, w); {
		case value != nil:
			value = nil
		case f != nil && !f.IsBool():
			value = f.Value
		case f == nil && !strings.HasPrefix(w, "-"):
			if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w }); i >= 0 {
				node = node.Children[i]
			}
		}
	}
	var all []string
	name, rest, cut := strings.Cut(last, "=")
	switch f := flagNamed(node, name); {
	case value != nil:
		all = values(value, known, last)
	case cut && f != nil:
		for _, v := range values(f.Value, known, rest) {
			all = append(all, name+"="+v)
		}
	case strings.HasPrefix(last, "-"):
		for n := node; n != nil; n = n.Parent {
			for _, f := range n.Flags {
				if !f.Hidden {
					all = append(all, "--"+f.Name)
				}
			}
		}
	case len(node.Children) > 0:
		for _, n := range node.Children {
			if !n.Hidden {
				all = append(all, n.Name)
			}
		}
	case len(node.Positional) > 0:
		all = values(node.Positional[0], known, last)
	}
	return slices.DeleteFunc(all, func(w string) bool { return !strings.HasPrefix(w, last) })
}

// flagNamed is the flag of this name, as --name, of a command or one above it.
func flagNamed(node *kong.Node, name string) *kong.Flag {
	for n := node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if "--"+f.Name == name {
				return f
			}
		}
	}
	return nil
}

// values are what a flag or an argument may be, after what is written before its last comma.
func values(v *kong.Value, known catalog.Catalog, written string) []string {
	begin, several := "", false
	var names []string
	switch v.Target.Type() {
	case reflect.TypeFor[flags.Choices]():
		several = true
		names = strings.Split(v.Tag.Get("of"), ",")
	case reflect.TypeFor[flags.Choice]():
		names = strings.Split(v.Tag.Get("of"), ",")
	case reflect.TypeFor[flags.Policies]():
		several = true
		names = policyNames(known.For(catalog.BanditArms))
	case reflect.TypeFor[flags.Policy]():
		switch v.Name {
		case "rule":
			names = policyNames(catalog.IdentifyPolicies()) // trials are of these alone
		case "POLICY":
			names = policyNames(slices.DeleteFunc(known.All(), func(e catalog.Entry) bool {
				return !e.Private
			}))
		default:
			names = policyNames(known.For(catalog.BanditArms))
		}
	default:
		names = v.EnumSlice()
	}
	if i := strings.LastIndex(written, ","); several && i >= 0 {
		begin = written[:i+1]
	}
	var out []string
	for _, n := range names {
		if n != "" {
			out = append(out, begin+n)
		}
	}
	return out
}

func policyNames(entries []catalog.Entry) []string {
	var out []string
	for _, e := range entries {
		if !slices.Contains(out, e.Name) {
			out = append(out, e.Name)
		}
	}
	return out
}
