// Package cli is the commands of sotto: flags to calls, nothing else. A program whose main calls
// Main has every one of them, with policies of its own if it gives Main some.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/choose"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/lab/process"
	"github.com/sotto-dp/sotto/secagg/transport"
	"github.com/sotto-dp/sotto/trial"
	"github.com/sotto-dp/sotto/trial/stopping"
)

// An Option changes the program.
type Option func(*streams) error

// Policies adds policies to those of Sotto: every command that takes the name of a policy knows
// them (catalog.Catalog.With says what an entry needs). Commands for one trial, identify and plan
// trial, are for Sotto's own rules, by which anybody can replay a transcript.
func Policies(entries ...catalog.Entry) Option {
	return func(s *streams) (err error) {
		s.known, err = s.known.With(entries...)
		return err
	}
}

// Name is what the program calls itself, sotto if nothing is said.
func Name(program string) Option {
	return func(s *streams) error {
		s.program = program
		return nil
	}
}

// Main runs the command that the program's arguments name, and ends the program with its exit code.
// An interrupt or SIGTERM stops the command in good order, and a second one at once.
func Main(options ...Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	s := streams{in: os.Stdin, out: onScreen(os.Stdout), err: os.Stderr}
	for _, o := range options {
		if err := o(&s); err != nil {
			fmt.Fprintf(s.err, "%s: %v\n", cmp.Or(s.program, "sotto"), err)
			os.Exit(exitFailed)
		}
	}
	os.Exit(run(ctx, os.Args[1:], s))
}

// streams: data goes to out, progress and errors to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
	args     []string // of the command, for pages that say how they were made
	program  string   // its name
	known    catalog.Catalog
	programs *process.Host // of somebody else
}

type commands struct {
	Serve      serveCommand      `cmd:"" group:"live" help:"Run live experiments over HTTP, with a page for each."`
	Validate   validateCommand   `cmd:"" group:"live" help:"Check a file and say what it would do."`
	Plan       planCommand       `cmd:"" group:"before" help:"Say what to expect before it is done."`
	Notice     noticeCommand     `cmd:"" group:"live" help:"Write what an experiment's visitors are told."`
	Decide     decideCommand     `cmd:"" group:"live" help:"Ask a service which arm a unit gets."`
	Reward     rewardCommand     `cmd:"" group:"live" help:"Report what came of decisions."`
	Track      trackCommand      `cmd:"" group:"live" help:"Report what a table knows of units, by their names."`
	Flagd      flagdCommand      `cmd:"" group:"live" help:"Keep flagd's flag file up to date with a service."`
	Backup     backupCommand     `cmd:"" group:"live" help:"Back a running service up into one file."`
	Restore    restoreCommand    `cmd:"" group:"live" help:"Read a backup, and end what ran in it."`
	Bench      serveBench        `cmd:"" name:"serve bench" group:"live" help:"Measure what a service takes on this machine."`
	Choose     chooseCommand     `cmd:"" group:"before" help:"Rank the private policies that meet a budget."`
	Explore    exploreCommand    `cmd:"" group:"before" help:"Turn privacy like a knob, in your browser."`
	List       listCommand       `cmd:"" group:"before" help:"List what there is: policies, mechanisms, and what is proved."`
	Bounds     boundsCommand     `cmd:"" group:"before" help:"Bound the regret, and name the proofs."`
	Run        runCommand        `cmd:"" group:"play" help:"Play an experiment, given by a file or by flags."`
	Report     reportCommand     `cmd:"" group:"play" help:"Draw the page and figures of results again."`
	Merge      mergeCommand      `cmd:"" group:"play" help:"Join shards of one experiment into its results."`
	Letor      letorCommand      `cmd:"" group:"play" help:"Make a bandit of learning-to-rank data."`
	Identify   identifyCommand   `cmd:"" group:"real" help:"Find the best arm, with a bound on the risk."`
	Stop       stopCommand       `cmd:"" group:"real" help:"Estimate a mean from as few samples as it takes."`
	Aggregate  aggregateCommand  `cmd:"" group:"real" help:"Sum what clients have so that nobody sees it."`
	Audit      auditCommand      `cmd:"" group:"check" help:"Attack what claims to be private, and bound its ε from below."`
	Replay     replayCommand     `cmd:"" group:"check" help:"Check a live experiment from its transcript."`
	Prove      proveCommand      `cmd:"" group:"check" help:"Certify what a transcript costs, for a checker that is not ours."`
	Reproduce  reproduceCommand  `cmd:"" group:"check" help:"Make the sources' figures again, and judge their claims."`
	Schema     schemaCommand     `cmd:"" group:"program" help:"Print the JSON schema of files, for editors."`
	Completion completionCommand `cmd:"" group:"program" help:"Print a script that completes commands in a shell."`
	Man        manCommand        `cmd:"" group:"program" help:"Print the manual page, for man."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Say what comes next, for the scripts of completion."`
	Version    versionCommand    `cmd:"" group:"program" help:"Print the version and what it was built with."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version and end."`
}

// cliTexts are help texts that are too long for their flags.
var cliTexts = kong.Vars{
	"serveData":   "Directory of the database, made if it is not there; ./sotto-data if not given.",
	"serveCohort": "Holds the sessions of experiments with trust secagg here, over TLS with the service's own key.",
	"serveCohortAt": "Where clients reach --cohort-listen, if it is not where it listens; with several processes, " +
		"each its own.",
	"serveAdvertise": "Where other processes on the same --database reach this one, to pass requests on " +
		"while it writes. If not given, the address that it listens on, with the host's name for 0.0.0.0.",
	"serveDatabase": "PostgreSQL database to use instead of a directory, as " +
		"postgres://USER@HOST/DATABASE. Others see flags: its password is for PGPASSWORD or ~/.pgpass.",
	"serveWriters": "Into how many shares the experiments of --database are divided, each of which one process writes: as " +
		"many processes can write at a time. All processes on a database say the same. It can be raised, and never lowered; " +
		"experiments stay in their share.",
	"serveListen": "Address to listen on; with port 0 the system chooses one. It is printed.",
	"serveKey": "File with a key that may do everything; it is made, for the owner alone to " +
		"read, if it is not there. If not given, a key is made and printed at the first start.",
	"serveExperiments": "Directory of live experiments, *.yaml and *.json: those that are new are made and " +
		"started, and others get the end, window, floor, share, description and public of their file, and the " +
		"arms that it has beyond theirs. Another difference is an error.",
	"serveReadOnly": "Show what is in the database as it is now, and change nothing: no decision, no " +
		"reward, no key. For one that was restored from a backup.",
	"serveOutage": "How long the service may have been down before this start. If the clock says longer, and the " +
		"database server's does not, time goes on from the last commit.",
	"servePersonCap": "What all experiments together may cost one person within any time of so many days, as " +
		"unit=person,epsilon=3/365d or in rho: a start that would exceed it is refused. If not given, it is as at the " +
		"last start of an experiment; none takes it away.",
	"serveCert": "Certificate in PEM, with those of its issuers: speak HTTPS. It is read again when the " +
		"file changes.",
	"serveTLSKey": "The certificate's private key, in PEM.",
	"serveRole": "leader decides and learns; helper is the second server of experiments with trust two-server, " +
		"which another party runs (docs/two-servers.md).",
	"serveTask": "Of a helper: the declaration of an experiment that it takes part in, the same file that the " +
		"leader has; may be given again.",
	"serveHelperSecret": "Of a leader: the secret that it shares with the helper of an experiment, once for each " +
		"experiment of two servers.",
	"serveSecret": "Of a helper: the secret that its operator and the leader's share, one for all tasks; it is " +
		"made, for the owner alone to read, if it is not there.",
	"serveOrigin": "Origin whose pages may ask from a browser, such as https://shop.example; may be given " +
		"again. * is all of them, without cookies.",
	"serveNewUnits": "How many browsers a second may become new units from one address (of IPv6, one /64), with a key " +
		"of the scope browser; a minute's worth may come at once. 0 is no limit.",
	"serveAccess": "Which requests leave a line in the log: off, errors (answered with a status from 400 on) or all. Rewards, " +
		"events, reports and activations leave none.",
	"serveClientHeader": "Header in which the proxy in front says which address a request is from, such as " +
		"X-Real-IP; of a list the last counts. If not given, it is the address of the connection, and what " +
		"headers say is not believed.",
	"serveOIDC": "YAML file that names an issuer of identities (OpenID Connect), by which people log in at the pages, " +
		"and who may look, operate or admin (docs/serve.md#people). If not given, people log in with keys.",
	"serveDemo": "An experiment with made-up visitors, kept in memory; no others can be created.",
	"completion": `The script asks this program what can come next: commands, flags, and the names that a flag
takes, policies among them.

Examples:
  sotto completion bash > ~/.local/share/bash-completion/completions/sotto
  sotto completion zsh > ~/.zfunc/_sotto
  sotto completion fish > ~/.config/fish/completions/sotto.fish`,
	"man": `Examples:
  sotto man > /usr/local/share/man/man1/sotto.1`,
	"serve": `Decisions and rewards over HTTP: docs/serve.md has the first experiment, /openapi.yaml all
requests. On a network, give it --tls-cert and --tls-key, or put it behind a proxy that has TLS.
Each flag may be an environment variable, such as SOTTO_DATA for --data or SOTTO_TLS_CERT.

Examples:
  sotto serve --demo
  sotto serve
  sotto serve --data /var/lib/sotto --listen 127.0.0.1:9000 --admin-key-file admin.key
  sotto serve --experiments experiments --allow-origin https://shop.example
  sotto serve --data restored --read-only
  sotto serve --experiments experiments --helper-secret shop=secret
  sotto serve --role helper --data helper --task shop.yaml --secret-file secret
  sotto serve --database postgres://sotto@db.example/sotto --advertise http://10.0.0.7:8080`,
}

// Exit codes.
const (
	exitOK         = 0
	exitFailed     = 1 // something outside the command line and the files it names went wrong
	exitUsage      = 2 // bad input
	exitUnfinished = 3 // the data or the cap ended before there was an answer
	// a sum failed so late that it is possibly released: what was sent is spent
	exitReleased    = 4
	exitInterrupted = 130 // as shells have it for Ctrl-C
)

// exitCode sorts errors by what they match, never by their text.
func exitCode(err error) int {
	switch {
	case errors.Is(err, transport.ErrPossiblyReleased):
		return exitReleased
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUsage(err), errors.Is(err, choose.ErrQuestion),
		errors.Is(err, experiment.ErrSpec), errors.Is(err, experiment.ErrOutput),
		errors.Is(err, experiment.ErrShards), errors.Is(err, process.ErrProgram),
		errors.Is(err, experiment.ErrUnit):
		return exitUsage
	case errors.Is(err, stopping.ErrUnfinished), errors.Is(err, trial.ErrUnfinished):
		return exitUnfinished
	}
	return exitFailed
}

// interrupted says what is left of a command that was stopped.
type interrupted string

func (e interrupted) Error() string        { return string(e) }
func (e interrupted) Is(target error) bool { return target == context.Canceled }

// A usageError is one that the caller can mend by calling otherwise: what is wrong with a flag, or
// with a file that the command line names.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks an error as the caller's.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

func isUsage(err error) bool {
	of, bad := usageError{}, (*flags.Error)(nil)
	return errors.As(err, &of) || errors.As(err, &bad)
}

// newParser is the commands and how their help looks.
func newParser(s streams, more ...kong.Option) (*kong.Kong, error) {
	return parserOf(&commands{}, s, more...)
}

// named is the commands without all that are not named first: to build the tree of all takes half of
// the time in which a command starts.
func named(args []string) any {
	if slices.Contains([]string{"completion", "complete", "man"}, args[0]) { // they tell of all
		return &commands{}
	}
	var fields []reflect.StructField
	found := false
	for f := range reflect.TypeFor[commands]().Fields() {
		_, command := f.Tag.Lookup("cmd")
		this := command && args[0] == cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
		if found = found || this; this || !command {
			fields = append(fields, f)
		}
	}
	if !found {
		return &commands{}
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// description is what the program says of itself, and what to do first.
const description = `A/B tests that adapt without revealing anyone's response.

Start here:
  sotto serve --demo      a live experiment, with made-up visitors
  sotto serve             your own: create it on the page that this prints
  sotto explore --open    what privacy costs, while you turn it
  sotto run --arms 0.75,0.6 --policies dp-imed,kl-ucb --epsilon 1 --horizon 1e6`

func parserOf(grammar any, s streams, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append(more,
		kong.Name(s.program),
		kong.Description(description),
		kong.Writers(file(s.out), s.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueFormatter(helpWithDefault),
		kong.UsageOnError(),
		kong.ExplicitGroups(groups()),
		kong.Vars{"version": versionText(s)}, kong.PostBuild(say))...)
}

// say puts the texts in the places that name them, and what is shown by --help beside a command,
// which has the command's name, in its place. They are no variables of kong's, which reads all
// of its variables again for each flag: 0.1 s before any command began.
func say(k *kong.Kong) error {
	all := texts()
	text := func(help *string) {
		if name, ok := strings.CutPrefix(*help, "${"); ok {
			*help = cmp.Or(all[strings.TrimSuffix(name, "}")], *help) // kong refuses what is left
		}
	}
	return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			text(&v.Help)
			v.Detail = all[v.Path()]
		case *kong.Value:
			text(&v.Help)
		}
		return next(nil)
	})
}

// texts are the help texts of all commands that are too long for their flags.
func texts() kong.Vars {
	all := kong.Vars{}
	for _, t := range []kong.Vars{aggregateTexts, aggregateBenchTexts, askTexts, trackTexts, auditTexts,
		auditMechanismTexts, auditPolicyTexts, auditSelfTexts, auditTrainingTexts, backupTexts, boundsTexts,
		chooseTexts, cliTexts, commandsTexts, exploreTexts, figureTexts, flagdTexts,
		identifyTexts, letorTexts, logTexts, noticeTexts, planTexts, planBudgetTexts, planLiveTexts,
		planReleaseTexts, programTexts, proveTexts, replayTexts, reportTexts,
		reproduceTexts, runTexts,
		serveBenchTexts, stopTexts} {
		maps.Copy(all, t)
	}
	return all
}

// groups are those of the flags, by their keys.
func groups() []kong.Group {
	return []kong.Group{
		{Key: "live", Title: "A live service:"},
		{Key: "before", Title: "Before you start:"},
		{Key: "play", Title: "Simulations:"},
		{Key: "real", Title: "One answer, from data you have:"},
		{Key: "check", Title: "Check what we claim:"},
		{Key: "program", Title: "This program:"},
		{Key: "budget", Title: "The budget:"},
		{Key: "sums", Title: "Sums:"},
		{Key: "mean", Title: "mean:"},
		{Key: "figures", Title: "Figures, for papers and slides:"},
		{Key: "further", Title: "Further readings, over which the confidence is split:"},
		{Key: "images", Title: "The data; small made-up images if none is given:"},
	}
}

// given is how many flags there are.
func given(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// noneEmpty wants every argument to say something. A script's --epsilon "$E" without an E would be
// taken for a flag that was not given.
func noneEmpty(args []string) error {
	for i, a := range args {
		name, value, cut := strings.Cut(a, "=")
		switch {
		case a == "--":
			return nil
		case a == "" && i > 0 && strings.HasPrefix(args[i-1], "--"):
			return fmt.Errorf("%s is empty: leave it out, or give it a value", args[i-1])
		case a == "":
			return errors.New("an argument is empty")
		case cut && value == "" && strings.HasPrefix(a, "--"):
			return fmt.Errorf("%s is empty: leave it out, or give it a value", name)
		}
	}
	return nil
}

// helpWithDefault says the default of a flag where a placeholder hides it.
func helpWithDefault(v *kong.Value) string {
	if v.Flag == nil || !v.HasDefault || v.Flag.PlaceHolder == "" || v.Default == "" || v.IsBool() {
		return v.Help
	}
	return v.Help + " [" + v.Default + "]"
}

// digits are what errors about arguments show none of where one may be a person's.
var digits = regexp.MustCompile(`[-+]?\.?[0-9][-+0-9.,eE]*`)

func run(ctx context.Context, args []string, s streams) int {
	exit := -1
	s.args, s.program = args, cmp.Or(s.program, "sotto")
	if len(args) == 0 {
		args = []string{"--help"}
	}
	args = benchCommand(args)
	if args[0] == "reward" {
		args = decisionFirst(args)
	}
	s.programs = process.NewHost(ctx, s.err)
	defer s.programs.Close()
	s.known = s.known.Starting(s.programs)
	parser, err := parserOf(named(args), s, kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", s.program, err)
		return exitFailed
	}
	if err := noneEmpty(args); err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", s.program, err)
		return exitUsage
	}
	k, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		helpIfBare(parser.Model.Node, args, s)
		of := (*flags.Error)(nil)
		if errors.As(err, &of) {
			err = of
		}
		text := err.Error()
		// an argument that was not understood may be a reward
		if args[0] == "reward" || slices.Contains(args, "join") {
			text = digits.ReplaceAllString(text, "…")
		}
		fmt.Fprintf(s.err, "%s: %s\n", s.program, text)
		if of == nil {
			fmt.Fprintf(s.err, "Run \"%[1]s --help\" or \"%[1]s COMMAND --help\" for what there "+
				"is.\n", s.program)
		}
		return exitUsage
	}
	for _, slip := range slips(parser.Model, os.Environ()) {
		fmt.Fprintf(s.err, "%s: warning: %s is no variable of this command (did you mean %s?): it has no effect\n",
			s.program, slip[0], slip[1])
	}
	if err := k.Run(); err != nil {
		if isUsage(err) {
			helpIfBare(parser.Model.Node, args, s)
		}
		fmt.Fprintf(s.err, "%s: %v\n", s.program, err)
		return exitCode(err)
	}
	return exitOK
}

// helpIfBare prints the help of a command that was given nothing but its name, before the error says
// what it needs. It goes where errors go: the command did nothing.
func helpIfBare(node *kong.Node, args []string, s streams) {
	for _, a := range args {
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == a })
		if i < 0 {
			return
		}
		node = node.Children[i]
	}
	s.out = s.err
	parser, err := parserOf(named(args), s, kong.Exit(func(int) {}))
	if err != nil {
		return // the help is beside the error, which is said in any case
	}
	_, _ = parser.Parse(append(args, "--help")) // it goes on after the help, and wants what is missing
	fmt.Fprintln(s.err)
}
