package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/base/atomicfile"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/noise"
)

type auditCommand struct {
	Mechanism auditMechanism `cmd:"" help:"Attack a mechanism alone: noisy sums and counts, running sums, a mean."`
	Policy    auditPolicy    `cmd:"" help:"Attack a private policy by the rewards it is fed, and look for those that hurt it most."`
	Training  auditTraining  `cmd:"" help:"Attack gradient descent by its iterates, DP-SGD and others."`
	Self      auditSelf      `cmd:"" help:"Attack every mechanism and private policy of this program, and broken twins of them, which must be refuted."`
}

// errRefuted is the answer of an audit, and the only one that ends the command with an exit code of
// 1.
var errRefuted = errors.New("refuted")

// auditFlags are those of all audits.
type auditFlags struct {
	Confidence string           `default:"0.95" help:"The audited ε is below the true one with this probability, for all attacks together." placeholder:"1−γ"`
	Games      experiment.Count `help:"Games of the test; without it 100 000, of training 4000, of self a million, or 30 000 if --quick. Self plays at least 2000." placeholder:"N"`
	Seed       string           `default:"1" help:"Seed of all simulated randomness." placeholder:"S"`
	Workers    int              `help:"Games played at a time; answers do not depend on it. 0 is one a processor." placeholder:"W"`
	JSON       bool             `help:"As JSON, for programs."`
	Out        string           `help:"Write the report to this directory: report.html, audit.json and a drawing of each figure." placeholder:"DIR" type:"path"`
}

// mostGames keeps the scores in memory.
const mostGames = 100_000_000

// read checks the flags. A number of games that is not given is usual.
func (c *auditFlags) read(usual int) (gamma float64, games int, seed uint64, err error) {
	confidence, err := strconv.ParseFloat(c.Confidence, 64)
	if err != nil || !(confidence > 0 && confidence <= 0.999999999) {
		return 0, 0, 0, fmt.Errorf("--confidence is %q, must be above 0 and at most 0.999999999", c.Confidence)
	}
	games = int(c.Games)
	if games == 0 {
		games = usual
	}
	if games < 100 || games > mostGames {
		return 0, 0, 0, fmt.Errorf("--games is %d, must be from 100 to 1e8", games)
	}
	if seed, err = strconv.ParseUint(c.Seed, 10, 64); err != nil {
		return 0, 0, 0, fmt.Errorf("--seed is %q, must be a whole number from 0 to 2^64−1", c.Seed)
	}
	if c.Workers < 0 {
		return 0, 0, 0, fmt.Errorf("--workers is %d, must be at least 1, or 0 for one a processor", c.Workers)
	}
	if c.Out != "" { // before the games: they may take an hour
		if err := canHold("--out", c.Out); err != nil {
			return 0, 0, 0, err
		}
	}
	return rounded(1 - confidence), games, seed, nil
}

// rounded is x to twelve decimals: 1 − 0.95 is not 0.05 in binary.
func rounded(x float64) float64 { return math.Round(x*1e12) / 1e12 }

// levelText is the confidence 1−γ.
func levelText(gamma float64) string { return strconv.FormatFloat(rounded(1-gamma), 'g', -1, 64) }

// zeroDelta reads a δ, which may be 0.
func zeroDelta(flag, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x < 1) {
		return 0, fmt.Errorf("--%s is %q, must be at least 0 and below 1", flag, text)
	}
	return x, nil
}

// claimed is the finding with what --claim says, if it is given.
func claimed(f audit.Finding, text string) (audit.Finding, error) {
	if text == "" {
		return f, nil
	}
	x, err := claim(text)
	if err != nil {
		return f, err
	}
	f.Claimed, f.Refuted = x, f.Low > x
	return f, nil
}

func claim(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 1) {
		return 0, fmt.Errorf("--claim is %q, must be a finite number of at least 0", text)
	}
	return x, nil
}

// oneOf picks a choice by its name.
func oneOf[T any](flag, name string, names []string, values []T) (T, error) {
	if i := slices.Index(names, name); i >= 0 {
		return values[i], nil
	}
	var none T
	return none, fmt.Errorf("--%s is %q%s, must be one of %s", flag, name,
		catalog.Hint(name, names), strings.Join(names, ", "))
}

// An outcome is what an audit has to say.
type outcome struct {
	title, description string
	tested             []report.Fact // what was attacked, against whom, with what knowledge
	findings           []auditRow
	// on purpose, all of it: it should be refuted, but the exit code is that of any claim
	broken           bool
	warnings, cannot []string
	figures          []report.Figure
	readings         []readingRow
	level            string // of each reading
	gamma            float64
	seed             uint64
}

// An auditRow is a finding, and whether it is of something that was broken on purpose.
type auditRow struct {
	audit.Finding
	twin bool
}

func rowsOf(f ...audit.Finding) []auditRow {
	var out []auditRow
	for i := range f {
		out = append(out, auditRow{Finding: f[i]})
	}
	return out
}

// wrong says that the finding is not what it must be.
func (r auditRow) wrong() bool { return r.Refuted != r.twin }

// never are the limits of every audit.
func never(gamma float64) []string {
	return []string{
		"It refutes claims and proves none. A low audited ε may mean a private subject, or a " +
			"weak attack, or too few games.",
		fmt.Sprintf("Everything refuted is refuted at confidence %s: if a claim is true, it is "+
			"refuted with probability at most %v.", levelText(gamma), gamma),
		"The upper end of an interval is that of the same test's errors. It is no upper bound on " +
			"the true ε: no audit gives one.",
		"Only the attacks and adversaries named here were tried.",
	}
}

// simulatedOnly is the limit of an audit with simulated noise.
const simulatedOnly = "The noise was simulated: the audit is of the algorithm and its " +
	"calibration. Timing, floating point and randomness of a deployment are not in it."

func auditNumber(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "∞"
	case math.IsNaN(x):
		return "–"
	case x < 0.0005 && x > -0.0005:
		return "0"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// table is the findings as people read them.
func (o *outcome) table() report.Grid {
	g := report.Grid{Title: "Audited privacy loss",
		Head: []string{"subject", "verdict", "best attack", "adversary", "claimed ε", "δ",
			"audited ε", "interval", "ratio", "games"}, Text: 4}
	groups := []report.GridGroup{{Head: "claims"}, {Head: "broken on purpose: must be refuted"}}
	for _, r := range o.findings {
		claim := auditNumber(r.Claimed)
		if math.IsInf(r.Claimed, 1) {
			claim = "none"
		}
		verdict := r.Verdict()
		if math.IsInf(r.Claimed, 1) {
			verdict = "no claim"
		}
		group := &groups[0]
		if r.twin {
			group = &groups[1]
		}
		against := r.Against
		if r.Model != "" {
			against = r.Model + ": " + against
		}
		group.Rows = append(group.Rows, []string{r.Name, verdict, dash(r.Attack), dash(against),
			claim, strconv.FormatFloat(r.Delta, 'g', 4, 64), auditNumber(r.Estimate),
			"[" + auditNumber(r.Low) + ", " + auditNumber(r.High) + "]", auditNumber(r.Tightness()),
			strconv.Itoa(r.Games)})
	}
	for _, group := range groups {
		if group.Rows != nil {
			g.Groups = append(g.Groups, group)
		}
	}
	level := levelText(o.gamma)
	if len(o.findings) > 1 {
		level += " for all together"
	}
	g.Notes = []string{"A claim is refuted if it is below the lower end, the audited ε at " +
		"confidence " + level + ".", "The audited ε before the interval is the one that the " +
		"test's error rates show without a correction.",
		"The ratio is that of the lower end to the claimed ε."}
	return g
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// report is the page for a privacy officer.
func (o *outcome) report() report.Report {
	r := report.Report{Name: o.title, Version: "Sotto " + experiment.ThisBuild().Version,
		Description: o.description, Warnings: o.warnings, Figures: o.figures,
		Facts: []report.Fact{{Name: "confidence", Value: levelText(o.gamma)},
			{Name: "seed", Value: strconv.FormatUint(o.seed, 10)}}}
	for _, f := range o.findings {
		switch {
		case f.wrong() && f.twin:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is broken on purpose and was not "+
				"refuted: this audit is too weak to tell.", f.Name))
		case o.broken && !f.Refuted:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: this fault was not noticed, so the "+
				"audit is too weak to tell. More --games, or other settings, may.", f.Name))
		case f.wrong():
			r.Warnings = append(r.Warnings, fmt.Sprintf("The claim of %s is refuted: ε = %s at δ "+
				"= %v is claimed, and ε is at least %s.", f.Name, auditNumber(f.Claimed), f.Delta,
				auditNumber(f.Low)))
		case math.IsInf(f.Claimed, 1):
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s claims no privacy.", f.Name))
		}
	}
	tested := report.Grid{Title: "What was tested, and against whom", Head: []string{"what", ""}, Text: 2}
	group := report.GridGroup{Head: "setting"}
	for _, f := range o.tested {
		group.Rows = append(group.Rows, []string{f.Name, f.Value})
	}
	tested.Groups = []report.GridGroup{group}
	cannot := report.Grid{Title: "What this audit cannot show", Head: []string{"", ""}, Text: 2}
	group = report.GridGroup{Head: "limits"}
	for i, s := range slices.Concat(never(o.gamma), o.cannot) {
		group.Rows = append(group.Rows, []string{strconv.Itoa(i + 1), s})
	}
	cannot.Groups = []report.GridGroup{group}
	for _, x := range o.readings {
		if x.refuted() {
			r.Warnings = append(r.Warnings, fmt.Sprintf("The claim is refuted by a further "+
				"reading, %s: %s is claimed, and it is at least %s.", x.name(),
				auditNumber(x.Claimed), auditNumber(x.Low)))
		}
	}
	r.Grids = []report.Grid{o.table()}
	if o.readings != nil {
		r.Grids = append(r.Grids, readings(o.readings, o.level))
	}
	r.Grids = append(r.Grids, tested, cannot)
	return r
}

// auditJSON is an outcome as programs read it.
type auditJSON struct {
	Title      string            `json:"title"`
	Confidence float64           `json:"confidence"`
	Seed       uint64            `json:"seed"`
	Version    string            `json:"version"`
	Refuted    bool              `json:"refuted"` // a claim that should hold
	Tested     map[string]string `json:"tested"`
	Findings   []findingJSON     `json:"findings"`
	Readings   []readingJSON     `json:"readings,omitempty"`
	Warnings   []string          `json:"warnings"`
	Cannot     []string          `json:"cannot_show"`
}

type readingJSON struct {
	What    string   `json:"what"`
	Delta   *float64 `json:"delta"`   // null: none
	Claimed *float64 `json:"claimed"` // null: no claim
	Low     *float64 `json:"low"`     // null: infinite
	Verdict string   `json:"verdict"`
	Games   int      `json:"games"`
}

type findingJSON struct {
	Subject  string   `json:"subject"`
	Claimed  *float64 `json:"claimed_epsilon"` // null: no claim
	Delta    float64  `json:"delta"`
	Low      float64  `json:"audited_epsilon_low"`
	Estimate *float64 `json:"audited_epsilon"`
	High     *float64 `json:"audited_epsilon_high"` // null: infinite
	Ratio    *float64 `json:"audited_over_claimed"`
	Verdict  string   `json:"verdict"`
	Refuted  bool     `json:"refuted"`
	Twin     bool     `json:"broken_on_purpose"`
	Attack   string   `json:"attack"`
	Against  string   `json:"adversary"`
	Model    string   `json:"model"`
	Games    int      `json:"games"`
	Gamma    float64  `json:"gamma"`
}

func (o *outcome) json() auditJSON {
	finite := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	r := o.report()
	out := auditJSON{Title: o.title, Confidence: rounded(1 - o.gamma), Seed: o.seed,
		Version: experiment.ThisBuild().Version, Tested: map[string]string{}, Findings: []findingJSON{},
		Warnings: append([]string{}, r.Warnings...), Cannot: slices.Concat(never(o.gamma), o.cannot)}
	for _, f := range o.tested {
		out.Tested[f.Name] = f.Value
	}
	for _, f := range o.findings {
		out.Refuted = out.Refuted || f.Refuted && !f.twin
		out.Findings = append(out.Findings, findingJSON{f.Name, finite(f.Claimed), f.Delta, f.Low,
			finite(f.Estimate), finite(f.High), finite(f.Tightness()), f.Verdict(), f.Refuted, f.twin,
			f.Attack, f.Against, f.Model, f.Games, f.Gamma})
	}
	for _, r := range o.readings {
		out.Refuted = out.Refuted || r.refuted()
		out.Readings = append(out.Readings, readingJSON{r.What, finite(r.Delta), finite(r.Claimed),
			finite(r.Low), r.verdict(), r.Games})
	}
	return out
}

// auditAgain is the command that gives the same answer again: without flags that change no number,
// since pages do not depend on them either.
func auditAgain(program string, args []string) string {
	var words []string
	for i := 0; i < len(args); i++ {
		switch name, _, cut := strings.Cut(args[i], "="); name {
		case "--json", "--progress":
		case "--out", "--workers":
			if !cut {
				i++ // its value
			}
		default:
			words = append(words, shellWord(args[i]))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return program + " " + strings.Join(words, " ")
}

func writeAuditJSON(w io.Writer, o *outcome) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(o.json())
}

// finish writes what an audit has to say, and returns errRefuted if a claim is refuted, or a
// broken twin is not.
func (c *auditFlags) finish(s streams, o *outcome) error {
	if len(o.findings) == 1 {
		o.title += ": " + o.findings[0].Name
	}
	r := o.report()
	if again := auditAgain(s.program, s.args); again != "" {
		r.Facts = append([]report.Fact{{Name: "command", Value: again}}, r.Facts...)
	}
	if c.Out != "" {
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return fmt.Errorf("%w: --out: %w", errUsage, err)
		}
		write := func(name string, produce func(io.Writer) error) error {
			var b bytes.Buffer
			if err := produce(&b); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := atomicfile.WriteFile(filepath.Join(c.Out, name), b.Bytes(), 0o644); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			return nil
		}
		for _, f := range r.Figures {
			if err := write(f.ID+".svg", f.WriteSVG); err != nil {
				return err
			}
		}
		if err := write("audit.json", func(w io.Writer) error { return writeAuditJSON(w, o) }); err != nil {
			return err
		}
		if err := write("report.html", r.WriteHTML); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := writeAuditJSON(s.out, o); err != nil {
			return err
		}
	} else {
		var b bytes.Buffer
		shown := r.Grids[:1]
		if o.readings != nil {
			shown = r.Grids[:2]
		}
		if err := (report.Report{Grids: shown}).WriteText(&b); err != nil {
			return err
		}
		fmt.Fprintln(&b)
		for _, w := range r.Warnings {
			fmt.Fprintln(&b, w)
		}
		if c.Out != "" {
			fmt.Fprintf(&b, "The report is %s.\n", near(filepath.Join(c.Out, "report.html")))
		}
		if _, err := s.out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	var refuted, missed []string
	for _, f := range o.findings {
		switch {
		case f.wrong() && f.twin:
			missed = append(missed, f.Name)
		case f.wrong():
			refuted = append(refuted, f.Name)
		}
	}
	for _, r := range o.readings {
		if r.refuted() {
			refuted = append(refuted, r.name())
		}
	}
	switch {
	case refuted != nil:
		return fmt.Errorf("%w: %s", errRefuted, strings.Join(refuted, "; "))
	case missed != nil:
		return fmt.Errorf("broken on purpose and not refuted: %s", strings.Join(missed, "; "))
	}
	return nil
}

// failed says whose fault an audit's error is. What scores cannot tell apart is no fault, but a
// question that has no answer.
func failed(err error) error {
	for _, e := range []error{audit.ErrNoGames, audit.ErrConfidence, audit.ErrDelta,
		audit.ErrSingular, audit.ErrFewReferences, audit.ErrShape, audit.ErrConstantScore, audit.ErrNaNScore} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	if errors.Is(err, context.Canceled) {
		return interrupted("stopped: there is no finding")
	}
	return err
}

// judge bounds ε by the best of some attacks, with γ split over them.
func judge(scores []audit.Scores, names []string, gamma, delta, claim float64) (audit.Finding, int, error) {
	f, best := audit.Finding{Claimed: claim, Delta: delta, Gamma: gamma, High: math.Inf(1)}, 0
	f.Low = -1
	for i, s := range scores {
		f.Games = len(s.In) + len(s.Out)
		r, err := s.Split(gamma/float64(len(scores)), delta)
		if errors.Is(err, audit.ErrConstantScore) {
			continue // it tells nothing apart
		}
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		b, err := r.Epsilon(delta)
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		if b.Epsilon <= f.Low {
			continue
		}
		m, err := s.At(b.Test.Threshold, 1-gamma)
		if err != nil {
			return f, 0, fmt.Errorf("%s: %w", names[i], err)
		}
		best, f.Low, f.Attack = i, b.Epsilon, names[i]
		f.Estimate = audit.EpsilonOf(m.TypeI.Value, m.TypeII.Value, delta)
		f.High = audit.EpsilonOf(m.TypeI.Lo, m.TypeII.Lo, delta)
	}
	if f.Low < 0 {
		return f, 0, fmt.Errorf("%w, of every attack: nothing tells the worlds apart", audit.ErrConstantScore)
	}
	if f.Low == 0 { // no test stands out, and the rates of any one mean nothing
		f.Estimate, f.High = math.NaN(), math.Inf(1)
	}
	f.Refuted = f.Low > claim
	return f, best, nil
}

// A named law of scores is a line of a figure.
type namedScores struct {
	name   string
	scores audit.Scores
}

// rocFigure is the power of attacks against the significance, on log axes, beside what the claim
// allows. theory may be nil.
func rocFigure(id, title string, all []namedScores, claim, delta, level float64,
	theory func(alpha float64) float64, theoryName string) (report.Figure, error) {
	f := report.Figure{ID: id, Title: title, Subtitle: "Power against significance, and the " +
		"largest that the claim allows", XLabel: "significance (false positive rate)",
		YLabel: "power (true positive rate)", LogX: true, LogY: true,
		Note: fmt.Sprintf("Bands: intervals at level %.10g, each by itself. A line above that of "+
			"the claim is what a refutation looks like.", level)}
	least := 1.0
	for _, n := range all {
		if n.scores.Validate() != nil {
			continue
		}
		least = min(least, 10/float64(len(n.scores.Out)))
	}
	if least >= 1 {
		return f, audit.ErrConstantScore
	}
	grid := audit.LogGrid(max(least, 1e-6), 40)
	for _, n := range all {
		if n.scores.Validate() != nil {
			continue
		}
		points, err := n.scores.Curve(grid, level)
		if err != nil {
			return f, err
		}
		s := report.Series{Label: n.name, X: grid}
		for _, p := range points {
			s.Mean, s.Lo, s.Hi = append(s.Mean, p.Power.Value), append(s.Lo, p.Power.Lo),
				append(s.Hi, p.Power.Hi)
		}
		f.Series = append(f.Series, s)
	}
	if theory != nil {
		s := report.Series{Label: theoryName, X: grid}
		for _, a := range grid {
			s.Mean = append(s.Mean, theory(a))
		}
		f.Series = append(f.Series, s)
	}
	if !math.IsInf(claim, 1) {
		s := report.Series{Label: "limit of the claim", X: grid}
		for _, a := range grid {
			p, err := audit.PowerLimit(claim, delta, a)
			if err != nil {
				return f, err
			}
			s.Mean = append(s.Mean, p)
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, report.Series{Label: "chance", X: grid, Mean: grid})
	return f, nil
}

// curveFigure is the audited ε against δ, beside the claimed one. The scores are those of the
// attack that did best of so many on these very games: the confidence is split over all of them.
func curveFigure(id string, s audit.Scores, attacks int, gamma float64,
	claim func(delta float64) (float64, error)) (report.Figure, error) {
	level := levelText(gamma)
	f := report.Figure{ID: id, Title: "Audited ε against δ", Subtitle: "The lower bound holds at " +
		"all δ together", XLabel: "δ", YLabel: "ε", LogX: true,
		Note: "Lower bound at confidence " + level + " for this curve alone, over all attacks " +
			"and thresholds; the table's, which the verdict rests on, has a confidence of its " +
			"own and is of one threshold, chosen on other games."}
	r, err := s.RegionByRank(gamma / float64(attacks))
	if err != nil {
		return f, err
	}
	grid := audit.LogGrid(1e-6, 25)
	grid = grid[:len(grid)-1] // δ = 1 is no claim
	bounds, err := r.Curve(grid)
	if err != nil {
		return f, err
	}
	low, says := report.Series{Label: "audited, at least", X: grid}, report.Series{Label: "claimed", X: grid}
	any := false
	for i, b := range bounds {
		low.Mean = append(low.Mean, b.Epsilon)
		c, err := claim(grid[i])
		if err != nil {
			return f, err
		}
		any = any || !math.IsInf(c, 1)
		says.Mean = append(says.Mean, c)
	}
	f.Series = []report.Series{low}
	if any {
		f.Series = append(f.Series, says)
	}
	return f, nil
}

// keyOf is where the randomness of an audit comes from.
func keyOf(seed uint64, what, cell string) noise.Key {
	return noise.Key{Seed: seed, Experiment: "audit " + what, Cell: cell}
}
