package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/play"
)

// A State is what an experiment does, as a page says it.
type State string

// The states of a page.
const (
	Draft      State = "draft"
	Starting   State = "starting"   // waits for its declared start
	Collecting State = "collecting" // decides, and counts the decisions of a batch
	Awaiting   State = "waiting"    // decides, and waits for the rewards of a batch
	Paused     State = "paused"
	Stopping   State = "stopping" // decides no more, and waits for the last rewards
	Stopped    State = "stopped"
	Archived   State = "archived"
	Failed     State = "failed"
)

// Mark is the class of a state's badge.
func (s State) Mark() string {
	switch s {
	case Collecting:
		return "on"
	case Awaiting, Starting, Stopping:
		return "wait"
	case Draft:
		return ""
	}
	return "off"
}

// A View is what everybody who may read an experiment may know of it.
type View struct {
	Name, Description string
	Public            bool
	State             State
	Says              string // of the state, such as "waiting for rewards until 14:20 UTC"
	Until             *time.Time
	Reason            string // why it has failed, else empty
	Policy            string
	Trial             bool    // it looks for the best arm, and stops by itself
	Risk              float64 // of a wrong answer of a trial
	Floor             float64
	Window            time.Duration
	Changes           int    // that come with the next ticks
	Grows             bool   // an arm can be added
	KeepsArms         string // why none can be taken off, or empty
	Arms              []Arm
	Contexts          *Contexts          // in the place of arms, nil where there are some
	Decisions         int                // that were issued
	Released          int                // of which the rewards were released
	Batches           int                // in which that was; where there are contexts, releases
	Last              *time.Time         // of the releases
	First, NotBefore  time.Time          // of the first release, see serve.Info
	Leader            string             // by its private mean; empty before the first release
	Answer            *Answer            // nil where there are contexts
	Verdict           *interval.Verdict  // nil where there are contexts
	Kept              string             // the arm that everybody gets since it has stopped
	Lo, Hi            float64            // the range of rewards
	Goal              string             // what means are of, such as "order per person"
	Reward            string             // what a reward is, in a sentence
	Confidence        float64            // of all intervals together, at all times
	Condition         string             // on which intervals hold; empty if on none
	Metrics           *serve.Measures    // nil where none were declared
	Guards            *serve.Guards      // nil where none were declared
	Cells             *serve.ByCell      // nil where there are none
	Ramp              *serve.Ramp        // nil where none was declared
	Ratio             *serve.SampleRatio // nil where there are contexts
	Privacy           Privacy
	History           []Act  // the newest first; who did what is not in it
	Lines             int    // of the transcript
	Tip               string // the SHA-256 of the last of them
}

// An Arm of an experiment. Mean and Interval are noisy, in the units of rewards, and nil before the
// first release.
type Arm struct {
	Name      string
	Hue       int // of its colour, from 1
	Dash      bool
	Off, Kept bool
	Why       string // when, by whom and why it was removed or added, or is the winner
	Leads     bool
	Decisions int
	Share     float64 // of all decisions
	Released  int
	Releases  int
	Mean      *float64
	Interval  *[2]float64
	// Difference is of its mean less the control's.
	Difference *[2]float64
}

// Privacy is what is promised to whom, and what of it is spent.
type Privacy struct {
	Unit        string // whose rewards are protected: person, device, …
	Assignments int    // of a unit, at most
	Budget      string // of a unit, for all its assignments
	Each        string // of a decision
	Spent       string // of that, at most
	// Share of the budget that is spent, at most; nil if it is no number.
	Share     *float64
	Odds      string // what the budget allows, for people; empty where it is no ε
	Guarantee string
	Protected string // who is protected from whom, in two sentences
	Exposed   string // what is not protected
	// Entries are the last of the ledger, the newest first.
	Entries []LedgerEntry
}

// exposed says what docs/serve.md does not promise.
const exposed = "Not promised: that a %s took part, when, and %s; finer timing under load; and " +
	"who reads the database, its backups or the process's memory reads sums of rewards that were not released."

// exposedOf says what is not promised of an experiment.
func exposedOf(decl *serve.Experiment) string {
	what := "which arm was given"
	switch {
	case decl.Contextual.Joint():
		what = "which action was given, which is chosen by its own context, to whoever sees it"
	case decl.Contextual != nil:
		what = "which action was given; contexts, features and ids of actions, which are used as they come"
	}
	return fmt.Sprintf(exposed, decl.Unit.Of, what)
}

// protected says who is protected from whom, in two sentences.
func protected(guarantee string) string {
	return strings.ToUpper(guarantee[:1]) + guarantee[1:] + ". Budgets of several experiments add up."
}

// goalOf names what an experiment is about, by the event that reports it if there is one.
func goalOf(x *serve.Experiment) string {
	per := "decision"
	if x.Assignments() == 1 && x.Contextual == nil {
		per = x.Unit.Of
	}
	return cmp.Or(x.Field, x.Event, "reward") + " per " + per
}

// rewardOf says what a reward is.
func rewardOf(x *serve.Experiment) string {
	what := "a number that your product reports"
	switch {
	case x.Aggregate == string(play.CountUp) && x.Event != "":
		what = "how many events “" + x.Event + "” come"
	case x.Field != "":
		what = "“" + x.Field + "” of the event “" + x.Event + "”"
	case x.Event != "":
		what = "the event “" + x.Event + "”"
	}
	if x.Aggregate == string(play.AddUp) || x.Aggregate == string(play.TakeMost) {
		what = "the " + x.Aggregate + " of " + what
	}
	lo, hi := x.Range()
	return fmt.Sprintf("A reward is %s, from %s to %s, and may take %s to come.", what, words.Number(lo), words.Number(hi), lasts(x.Window))
}

// viewOf is all of a view but what takes the transcript.
func viewOf(info serve.Info, r *Summary) *View {
	decl := info.Experiment
	v := &View{Name: decl.Name, Description: decl.Description, Public: decl.Public, Reason: info.Reason,
		Policy: decl.Policy.Policy, Trial: decl.Risk > 0, Risk: decl.Risk, Floor: decl.Floor,
		Window: decl.Window, Changes: len(info.Changes), Grows: decl.NoArm() == nil, KeepsArms: info.KeepsArms(), Released: r.Released, Batches: r.batches,
		Last: r.Last, Leader: r.Leader, Verdict: r.Verdict, Kept: r.Kept, Lo: r.lo, Hi: r.hi, Confidence: r.Confidence,
		Condition: decl.IntervalCondition(), Metrics: r.Metrics, Guards: r.Guards, Ramp: r.Ramp, Cells: r.Cells,
		Ratio: info.SampleRatio(), First: info.First,
		NotBefore: info.NotBefore, Lines: info.Lines, Tip: info.Tip}
	v.Goal, v.Reward = goalOf(&decl), rewardOf(&decl)
	for i, a := range info.Arms {
		v.Decisions += a.Decisions
		v.Arms = append(v.Arms, Arm{Name: decl.Arms[i].Name, Hue: i%8 + 1, Dash: i >= many-1, Off: a.Off,
			Kept: i == info.Keep, Leads: decl.Arms[i].Name == r.Leader, Decisions: a.Decisions,
			Released: a.Released, Releases: a.Releases, Mean: r.Arms[i].Mean, Interval: r.Arms[i].Interval})
		if i < len(r.against) { // an arm may come without a release
			v.Arms[i].Difference = r.against[i]
		}
	}
	v.Answer = answerOf(info, r)
	if v.Contexts = contextsOf(info); v.Contexts != nil {
		v.Contexts.Effects = r.Contexts.Effects
		v.Decisions, v.Batches = info.Contextual.Decisions, info.Contextual.Releases
	}
	for i := range v.Arms {
		v.Arms[i].Share = float64(v.Arms[i].Decisions) / float64(max(1, v.Decisions))
	}
	v.Arms = ranked(v.Arms)
	v.State, v.Says = stateOf(info)
	if !info.Until.IsZero() {
		at := info.Until.UTC()
		v.Until = &at
	}
	v.Privacy = Privacy{Unit: r.Unit, Assignments: decl.Assignments(), Budget: r.Budget, Each: r.Each,
		Spent: r.Spent, Share: r.Share, Guarantee: r.Guarantee,
		Protected: protected(r.Guarantee), Exposed: exposedOf(&decl),
		Odds: allows(decl.Total(), r.Unit)}
	return v
}

// clockOf writes a time for people: with its day only where that is another than now's.
func clockOf(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// stateOf says what an experiment does.
func stateOf(info serve.Info) (State, string) {
	kept := ""
	if info.Keep >= 0 {
		kept = ": everybody gets " + info.Experiment.Arms[info.Keep].Name
	} else if info.Experiment.Contextual != nil {
		kept = ": everybody gets " + keptOf(info)
	}
	switch info.State {
	case serve.Draft:
		return Draft, "draft: it has not been started"
	case serve.Waiting:
		switch info.Wait {
		case "start":
			return Starting, "waiting for its start at " + clockOf(info.Until)
		case "rewards":
			return Awaiting, "waiting for rewards until " + clockOf(info.Until)
		case "sums":
			if info.Trouble == "" {
				return Awaiting, "gathering the sums of a batch"
			}
			return Awaiting, fmt.Sprintf("waiting since %s for the sums of a batch: %s; decisions go on",
				clockOf(info.Since), info.Trouble)
		}
		return Awaiting, "releasing"
	case serve.Running:
		return Collecting, "running"
	case serve.Paused:
		if info.Experiment.Contextual != nil {
			return Paused, "paused: everybody gets the first action"
		}
		if g := info.Guards(); g != nil && g.Paused != "" {
			return Paused, "paused by a guard: " + g.Paused + ". Everybody gets " + info.Given()
		}
		return Paused, "paused: nobody new is assigned"
	case serve.Stopping:
		return Stopping, stoppingOf(info)
	case serve.Stopped:
		switch info.Why {
		case "answer":
			return Stopped, "stopped with its answer, which is wrong with probability " +
				words.Number(info.Experiment.Risk) + " at most" + kept
		case "date":
			return Stopped, "stopped at its end" + kept + ledOf(info)
		case "policy":
			return Stopped, "stopped, since its policy wants nothing more" + kept
		case "operator":
			return Stopped, "stopped by an operator" + kept + ledOf(info)
		}
		return Stopped, "stopped" + kept
	case serve.Archived:
		return Archived, "archived" + kept + ", and nothing of its units is left"
	}
	return Failed, "failed: it can be read and stopped"
}

// stoppingOf says what an experiment waits for whose decisions have ended.
func stoppingOf(info serve.Info) string {
	says := "stopping: nobody new is assigned, and the last rewards are "
	switch info.Wait {
	case "rewards":
		says += "awaited until " + clockOf(info.Until)
	case "sums":
		says += "gathered"
		if info.Trouble != "" {
			says += ", since " + clockOf(info.Since) + ": " + info.Trouble
		}
	default:
		if says += "released"; info.Left > 0 { // nobody is at work
			says = strings.TrimSuffix(says, "released") + "waited for"
		}
	}
	switch {
	case info.Leader:
		return says + "; then everybody gets the arm that leads"
	case info.Next >= 0:
		return says + "; then everybody gets " + info.Experiment.Arms[info.Next].Name
	}
	return says + "; then everybody gets " + keptOf(info)
}

// keptOf says what is given of an experiment with contexts whose decisions have ended.
func keptOf(info serve.Info) string {
	if info.Policy {
		return "the best action by what was learnt"
	}
	return "the first action"
}

// ledOf says that an arm which is kept is no answer of a rule.
func ledOf(info serve.Info) string {
	if !info.Leader || info.Experiment.Risk == 0 {
		return ""
	}
	return ", which leads; its rule has not answered, so how probably that is wrong is not known"
}

// decimalsOf is how many decimals an interval is written with; 0 if there is none.
func decimalsOf(x *[2]float64) int {
	if x == nil {
		return 0
	}
	return words.Decimals(x[0], x[1])
}

// within writes an interval for reading, rounded outward.
func within(x *[2]float64, decimals int) string {
	if x == nil {
		return "–"
	}
	lo, hi := words.OutwardTo(x[0], x[1], decimals)
	return "[" + lo + ", " + hi + "]"
}

// Data is what charts are drawn from. That of an event has the rows that are new: of each list the
// first From rows of the page stay, and these follow.
type Data struct {
	ID    string     `json:"id,omitempty"` // of what is shown, for /events?from=
	Arms  []string   `json:"arms"`         // with contexts one, for all decisions
	Range [2]float64 `json:"range"`        // of rewards
	// Course are the arms' private means, a list for each arm; with contexts what rules would have
	// earned, a list for each of Lines.
	Lines []string `json:"lines,omitempty"`
	// Gain is what the course after those of Lines is of, if there is one.
	Gain   string   `json:"gain,omitempty"`
	Course []Course `json:"course"`
	// Hours and Days are the decisions that were issued, by arm: the last two weeks by hour, and
	// the last 400 days by day.
	Hours Traffic `json:"hours"`
	Days  Traffic `json:"days"`
	// Early are those of the first hours, in bins of Step seconds; nil of what is older.
	Early *Traffic `json:"early,omitempty"`
	Step  int64    `json:"step,omitempty"`
}

// Traffic is decisions by time. A row is the second in which an hour or a day of UTC begins, and
// the decisions of each arm in it; there are no gaps from the first to the last.
type Traffic struct {
	From int       `json:"from"`
	Rows [][]int64 `json:"rows"`
}

// How many hours and days are drawn.
const (
	mostHours = 14 * 24
	mostDays  = 400
)

// trafficOf sums hours by a step, and has the last of these.
func trafficOf(hours []serve.Hour, arms int, step time.Duration, most int) Traffic {
	out := Traffic{Rows: [][]int64{}}
	if len(hours) == 0 {
		return out
	}
	at := func(h serve.Hour) int64 { return h.From.Truncate(step).Unix() }
	size := int64(step / time.Second)
	last := at(hours[len(hours)-1])
	first := max(at(hours[0]), last-int64(most-1)*size)
	for t := first; t <= last; t += size {
		row := make([]int64, 1+arms)
		row[0] = t
		out.Rows = append(out.Rows, row)
	}
	for _, h := range hours {
		if at(h) < first {
			continue
		}
		row := out.Rows[(at(h)-first)/size]
		for a, n := range h.Decisions {
			row[1+a] += int64(n)
		}
	}
	return out
}

// since is what is new after an earlier traffic.
func (t Traffic) since(before Traffic) Traffic {
	for t.From < min(len(before.Rows), len(t.Rows)) && slices.Equal(before.Rows[t.From], t.Rows[t.From]) {
		t.From++
	}
	t.Rows = t.Rows[t.From:]
	return t
}

// A Course is how the private mean of an arm has gone. A point is [time of the release in
// seconds, decisions released of all arms, of this arm, mean, low, high]. Arms that are off or
// far behind may have none.
type Course struct {
	Arm    int          `json:"arm"`
	From   int          `json:"from"`
	Points [][6]float64 `json:"points"`
}

// courses are those of all arms, and how many decisions were released in all; after an error, up to
// it.
func (r *Summary) courses(points func(func(serve.Point, error) bool)) (out []Course, total int, err error) {
	type point struct {
		serve.Point
		total int
	}
	last, kept := make([]interval.Sums, len(r.Arms)), make([][]point, len(r.Arms))
	var batch serve.Point // the last of them: a batch has an arm once, and its arms in order
	for p, failed := range points {
		if err = failed; err != nil {
			break
		}
		if r.batches == 0 || p.At != batch.At || p.Arm <= batch.Arm {
			r.batches++
		}
		batch = p
		total += p.Sums.N - last[p.Arm].N
		last[p.Arm], r.Last = p.Sums, &p.At
		// A line needs no more points than can be seen: one for each tenth more rewards.
		of := kept[p.Arm]
		if n := len(of); n > 1 && float64(p.Sums.N) < 1.1*float64(of[n-2].Sums.N) {
			of = of[:n-1]
		}
		kept[p.Arm] = append(of, point{p, total})
	}
	for arm, of := range kept {
		c := Course{Arm: arm, Points: [][6]float64{}}
		for _, p := range of {
			band := r.decl.Table().Mean(p.Sums)
			if band == nil {
				continue
			}
			c.Points = append(c.Points, [6]float64{float64(p.At.UnixMilli()) / 1000, float64(p.total),
				float64(p.Sums.N), min(max(r.inUnits(p.Sums.Sum/float64(p.Sums.N)), band[0]), band[1]),
				band[0], band[1]})
		}
		out = append(out, c)
	}
	return out, total, err
}

// A drawn is the arms' courses as of a line of the transcript, which take a while.
type drawn struct {
	tip     string
	courses []Course
	batches int
	last    *time.Time
	against []*[2]float64
	effects *Effects
	// acts are those of the journal as of what a page depends on: for an operator's act they are read again
	acts   []serve.Entry
	actsOf string
}

// dataOf is how an experiment is, and its charts' data; what was drawn before serves until there is
// another line.
func dataOf(ctx context.Context, e *serve.Engine, name string, before *drawn) (serve.Info, *Summary,
	*Data, error) {
	info, course, err := e.Course(ctx, name)
	if err != nil {
		return info, nil, nil, err
	}
	r, err := reportOf(info)
	if err != nil {
		return info, nil, nil, err
	}
	if info.Contextual != nil {
		if before.tip != info.Tip {
			if before.last, err = lastRelease(ctx, e, info); err != nil {
				return info, nil, nil, err
			}
			if before.courses, err = earnings(ctx, e, info); err != nil {
				return info, nil, nil, err
			}
			if before.effects, err = effectsOf(ctx, e, info); err != nil {
				return info, nil, nil, err
			}
			before.tip = info.Tip
		}
	} else if before.courses == nil || before.tip != info.Tip {
		courses, _, err := r.courses(course)
		if err != nil && !errors.Is(err, serve.ErrTranscript) { // of which the page says so
			return info, nil, nil, err
		}
		*before = drawn{tip: info.Tip, courses: courses, batches: r.batches, last: r.Last,
			against: serve.AgainstControl(r.decl, info.Arms, *r.Verdict), acts: before.acts, actsOf: before.actsOf}
	}
	r.batches, r.Last, r.against = before.batches, before.last, before.against
	d := &Data{Range: [2]float64{r.lo, r.hi}, Course: before.courses}
	for _, q := range queuesOf(info) {
		d.Arms = append(d.Arms, q.name)
	}
	if r.Contexts != nil {
		r.Contexts.Effects = before.effects
		for _, rule := range r.Contexts.Rules {
			d.Lines = append(d.Lines, rule.Name)
		}
		if g := r.Contexts.Best; g != nil {
			d.Gain = g.Of + ", over the best"
		}
	}
	hours, err := e.Hours(ctx, name)
	d.Hours = trafficOf(hours, len(d.Arms), time.Hour, mostHours)
	d.Days = trafficOf(hours, len(d.Arms), 24*time.Hour, mostDays)
	if step, bins, failed := e.Early(ctx, name); failed == nil && len(bins) > 0 {
		early := trafficOf(bins, len(d.Arms), step, len(bins))
		d.Early, d.Step = &early, int64(step/time.Second)
	}
	return info, r, d, err
}

// A snapshot is a page's content at a moment.
type snapshot struct {
	id        string
	info      serve.Info
	acts      []serve.Entry
	view      *View
	data      *Data
	fragments map[string]string
}

// dependsOn is what a page shows at once when it changes, by a release or by an operator; the rest
// is traffic, which it shows once a tick.
func dependsOn(info serve.Info) string {
	if info.State == serve.Waiting && info.Wait != "start" { // which decisions tell, between ticks
		info.State = serve.Running
	}
	return fmt.Sprint(info.State, info.Reason, info.Keep, info.Tip, len(info.Changes), info.Acts)
}
