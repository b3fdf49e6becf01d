package decl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/privacy"
)

// A Notice is what an experiment's visitors are told of it, in their words: what is recorded, what others
// can learn, how long it is kept, and what they can do. All of it follows from the declaration, but for
// what is in square brackets, which its operator has to say.
type Notice struct {
	Title    string
	Sections []NoticeSection
	// Todo is what the operator has to do before it is shown.
	Todo []string
}

// A NoticeSection is paragraphs, and then a list.
type NoticeSection struct {
	Title string
	Text  []string
	Items []string
}

// A Sender is who shows a notice. What is empty stays to be filled in.
type Sender struct{ Name, Contact string }

// noticeDelta is the probability that notices leave to chance where a budget has no ε without one.
const noticeDelta = 1e-6

// Notice is the notice of an experiment that Check lets pass.
func (l *Experiment) Notice(by Sender) (Notice, error) {
	n := Notice{Title: "About the test “" + l.Name + "”"}
	if by.Name == "" {
		by.Name = "[your name and address]"
		n.Todo = append(n.Todo, "Say who you are (--by), and who is responsible for the data.")
	}
	if by.Contact == "" {
		by.Contact = "[your contact]"
		n.Todo = append(n.Todo, "Say how people reach you (--contact).")
	}
	allows, err := l.allows()
	if err != nil {
		return n, err
	}
	n.Sections = []NoticeSection{l.noticeOf(by), l.noticeRecorded(), allows, l.noticeKept(&n), l.noticeChoices(by),
		l.noticeLimits()}
	n.Todo = append(n.Todo, "If your pages use the service's cookie (400 days) or the browser's storage, say so: the "+
		"declaration does not know.", "If your pages ask for consent, say where people give it and take it back.",
		"Say what else you keep, such as the access log of your web server, and on which "+
			"legal basis.")
	if l.Contextual == nil && slices.ContainsFunc(l.Arms, func(a Arm) bool { return strings.TrimSpace(a.Name) == "" }) {
		n.Todo = append(n.Todo, "Name the versions.")
	}
	return n, nil
}

// noticeOf says what is tested, and how what is shown is chosen.
func (l *Experiment) noticeOf(by Sender) NoticeSection {
	s := NoticeSection{Title: "What this is"}
	if l.Description != "" {
		s.Text = append(s.Text, strings.TrimSpace(l.Description))
	}
	if l.Contextual != nil {
		s.Text = append(s.Text, by.Name+l.noticeLearns())
		return s
	}
	names := make([]string, len(l.Arms))
	for i, a := range l.Arms {
		names[i] = a.Name
	}
	unit, more := l.Unit.Of, ""
	switch {
	case l.Free:
		unit = "visit"
	case l.AtOnce() > 1:
		more = fmt.Sprintf(", and may be given another one later, %d in all at most", l.AtOnce())
	}
	s.Text = append(s.Text, fmt.Sprintf("%s compares %d versions: %s. Each %s in the test is given one%s.", by.Name, len(names),
		strings.Join(names, ", "), unit, more), l.noticeChosen())
	if len(l.Guard) > 0 {
		s.Text = append(s.Text, "A version that seems to do harm is removed, or the test is paused. Totals of what happened earlier, with "+
			"random noise added, say so.")
	}
	return l.noticeLeftOut(s)
}

// noticeLearns is what is done where each visit has choices of its own, by the name of who does it.
func (l *Experiment) noticeLearns() string {
	out, chance, follow := " chooses what to show at each visit, and learns which choices work.", " A part of the choices is random.",
		" The others follow from"
	if l.Contextual.Mode == ModeApprentice {
		out = " learns which choices would work at each visit. Until the test ends the first one is shown."
		if l.Floor > 0 {
			out += " For a part of the visits one is drawn at random."
		}
		return out
	}
	if l.Floor == 0 {
		chance, follow = "", " The choices follow from"
	}
	of := "what is offered"
	if len(l.Contextual.Features.Context) > 0 {
		of = "the visit"
	}
	return out + chance + follow + " totals of what happened at earlier visits, with random noise added, and from facts about " + of + "."
}

// noticeChosen says how it is chosen which version somebody is given.
func (l *Experiment) noticeChosen() string {
	totals := "Totals of what happened earlier, with random noise added, decide which"
	switch {
	case l.Split() && len(l.Guard) > 0:
		return "Chance decides which."
	case l.Split():
		return "Chance alone decides which."
	case l.Floor > 0:
		totals = "For some, chance alone decides which. For all others: t" + totals[1:]
	}
	if l.Risk != 0 {
		return totals + ", and when the test ends."
	}
	return totals + ": a version that seems to work better is shown more often."
}

// noticeLeftOut adds who is not in the test.
func (l *Experiment) noticeLeftOut(s NoticeSection) NoticeSection {
	facts := l.attributes()
	chance := l.Share != 0 && l.Share < 1 || len(l.Ramp) > 0 || l.Layer != Layer{}
	if chance {
		s.Text = append(s.Text, "Chance decides who is in the test.")
	}
	if len(l.Ramp) > 0 {
		s.Text = append(s.Text, "Few are at first, and more later.")
	}
	if len(facts) > 0 {
		s.Text = append(s.Text, fmt.Sprintf("Who is in the test depends on these facts about a visit: %s.", strings.Join(facts, ", ")))
	}
	if l.Holdout != "" {
		s.Text = append(s.Text, fmt.Sprintf("Some are left out for comparison; the test “%s” decides who.", l.Holdout))
	}
	if chance || len(facts) > 0 || l.Holdout != "" {
		s.Text = append(s.Text, "All others get the usual version.")
	}
	return s
}

// noticeRecorded says what is recorded of one unit.
func (l *Experiment) noticeRecorded() NoticeSection {
	s := NoticeSection{Title: "What is recorded"}
	add := func(format string, args ...any) { s.Items = append(s.Items, fmt.Sprintf(format, args...)) }
	switch {
	case l.Free || l.Contextual != nil:
		add("That there was a visit, when, and what it was given. If the page gives the visit a name, that is kept as a code.")
	default:
		add("That %s took part, when, and with which version. The name that we use is kept as a code, and nobody can turn it "+
			"back into the name without the service's key.", l.you())
	}
	if l.Leases.On() {
		add("Your device finds its version by itself, from a public plan, and tells the service when it has shown it. Whoever "+
			"knows the name that we use for %s can work out the version.", l.you())
	}
	switch l.Exposure {
	case ExposeActivate:
		add("Whether the version was on your screen. You count from then on only.")
	case ExposeRetract:
		add("Whether the version was not shown in the end. Then you do not count.")
	}
	if c := l.Contextual; c != nil {
		var facts []string
		for _, f := range c.Features.Context {
			facts = append(facts, f.Name)
		}
		facts = append(facts, "facts about what is offered")
		protects := "These facts are not protected by noise."
		if c.Joint() {
			protects = "What others are shown tells of these facts within the limit below, too."
		}
		add("For a choice: %s. %s", strings.Join(facts, ", "), protects)
	}
	if l.By.Key != "" {
		add("Your %s, one of %s. It is kept beside your version until the total with it is released, and no noise "+
			"hides how many there are of each.",
			l.By.Key, strings.Join(l.Cells(), ", "))
	}
	if l.Unit.PerPerson > 0 {
		add("How many of your visits counted, under a code of your name, so that no more than %d do.", int(l.Unit.PerPerson))
	}
	add("Your outcome: %s.", outcomeOf("whether, or how much, what we hope for happens", l.Source, l.Aggregate))
	for _, m := range l.Metrics {
		add("Also %s.", outcomeOf(m.Name, m.Source, m.Aggregate))
	}
	s.Items = append(s.Items, l.noticeTrust())
	return s
}

// outcomeOf names a number of a decision, and what is made of several.
func outcomeOf(name string, from Source, aggregate string) string {
	if from.Event != "" {
		name += fmt.Sprintf(", from the event “%s”", from.Event)
	}
	switch aggregate {
	case "":
		return name + "; the first report counts"
	case "max":
		return name + "; the largest report counts"
	case "count":
		return name + "; how many reports there are counts"
	}
	return name + "; reports are added up"
}

// noticeTrust says who sees an outcome.
func (l *Experiment) noticeTrust() string {
	switch l.TrustModel() {
	case privacy.TrustLocal:
		return "Your device adds random noise to your outcome before it leaves. Nobody else ever sees it, we included."
	case privacy.TrustTwoServer:
		return fmt.Sprintf("Your device splits your outcome in two and sends one half to us and one to %s. Neither half says "+
			"anything. Only the two of us together could put them together.", l.Helper.URL)
	case privacy.TrustSecAgg:
		return fmt.Sprintf("Your device encrypts your outcome. We learn the total of a group, with noise, and nothing else, as "+
			"long as at least %d of its members are honest.", int(l.Terms().Users))
	}
	if l.Aggregates() {
		return "The service keeps what your reports come to until the total with it is released, and then overwrites it. No page, " +
			"log or export shows it."
	}
	return "The service adds your outcome to a total at once. Until that total is released it notes that a report came, so that " +
		"none counts twice, but not what it said. Then the note is destroyed."
}

// allows says what others can learn, as odds.
func (l *Experiment) allows() (NoticeSection, error) {
	s := NoticeSection{Title: "What others can learn about you"}
	reader := "We see"
	if l.Public {
		reader = "Everybody can see"
	}
	s.Text = append(s.Text, reader+" totals of outcomes, with random noise added. The noise limits what they tell about "+
		"any one person.")
	total, whole := l.Total(), "all your outcomes in this test together"
	person, err := l.PersonBudget(l.Unit.Of)
	switch {
	case l.Unit.PerPerson > 0 && err == nil:
		total = person
	case l.Free || l.Contextual != nil: // nothing bounds how many visits somebody has
		whole = "the outcome of one visit; several visits add up"
		if total, err = l.EachTotal(); err != nil {
			return s, err
		}
	case l.you() != "you":
		whole = fmt.Sprintf("all outcomes of %s in this test together; another %s counts for itself", l.you(), l.Unit.Of)
	}
	epsilon, except := math.Inf(1), ""
	switch b := total.(type) {
	case privacy.Pure:
		epsilon = b.Epsilon
	case privacy.Approx: // whose δ is no probability of an exception
		epsilon, except = b.Epsilon, " It can be more, by a chance that delta limits."
	case privacy.ZCDP:
		// what the loss exceeds with this probability at most: the ε of a conversion to (ε,δ) can be smaller
		epsilon = b.Rho + 2*math.Sqrt(-b.Rho*math.Log(noticeDelta))
		except = " There is an exception that happens with a probability of at most " + shortChance(noticeDelta) + "."
	}
	if math.IsInf(epsilon, 1) {
		s.Text = append(s.Text, fmt.Sprintf("The limit is %v, which cannot be said as odds.", total))
		return s, nil
	}
	guessed := "about your outcome"
	if l.Missing == MissingDrop {
		guessed = "about what your outcome was, if there was one,"
	}
	odds, guess := oddsOf(epsilon)
	s.Text = append(s.Text, fmt.Sprintf("In numbers: somebody who sees everything that this test publishes can change the odds of "+
		"a guess %s by at most a factor of %s. %s This is for %s.%s (For experts: differential privacy with "+
		"%v%s.)", guessed, odds, guess, whole, except, total, asEpsilon(total, epsilon)))
	if epsilon > mostEpsilon {
		s.Text = append(s.Text, "That is weak protection.")
	}
	return s, nil
}

// asEpsilon is what a budget that is no ε comes to.
func asEpsilon(total privacy.Budget, epsilon float64) string {
	if _, ok := total.(privacy.ZCDP); !ok {
		return ""
	}
	return fmt.Sprintf(", or epsilon=%.3g at delta=%v", epsilon, noticeDelta)
}

const nearlyCertain = "A guess that was right with 50 % can then be nearly certain."

// oddsOf says ε as the factor on odds, and as what becomes of a guess of one half.
func oddsOf(epsilon float64) (factor, guess string) {
	if epsilon > 14 {
		return "a million, or more", nearlyCertain
	}
	factor, most := words.Odds(epsilon)
	if epsilon > 4.5 {
		return factor, nearlyCertain
	}
	return factor, "A guess that was right with 50 % is then right with at most " + most + " %."
}

// shortChance is a probability as one in so many.
func shortChance(p float64) string {
	return "1 in " + strconv.FormatFloat(math.Floor(1/p+1e-9), 'f', -1, 64)
}

// noticeKept says how long things are kept.
func (l *Experiment) noticeKept(n *Notice) NoticeSection {
	s := NoticeSection{Title: "How long it is kept"}
	add := func(format string, args ...any) { s.Items = append(s.Items, fmt.Sprintf(format, args...)) }
	add("An outcome counts if it comes within %s. Later ones are not used.", lasts(l.Window))
	if l.TrustModel() == privacy.TrustCentral {
		add("Totals are kept without noise until they are released or the test has stopped, and then overwritten.")
	} else {
		add("What your device sends us is kept until the total with it is released or the test has stopped, and then overwritten.")
	}
	add("Released totals are kept, and how many visits there were in each hour.")
	if l.Free {
		n.Todo = append(n.Todo, "Say whether your pages name visits or persons: the declaration does not know.")
	}
	switch {
	case l.Forget > 0:
		back := "The test takes nobody any more by then"
		if l.Assignments() > 1 {
			back = fmt.Sprintf("If you come back, you count as new, %s at most", plural(l.Assignments()-1, "time"))
		}
		add("The record that you took part is destroyed at the first midnight (UTC) after %s, or when the test has stopped. %s.",
			lasts(l.Forget), back)
	case l.Retention > 0:
		add("The record that you took part is destroyed %s after the test has stopped.", lasts(l.Retention))
	default:
		add("The record that you took part is destroyed when we archive the test: [when].")
		n.Todo = append(n.Todo, "Say when you archive the test, or declare retention or forget.")
	}
	if l.End.IsZero() {
		add("The test has no fixed end.")
	} else {
		add("Taking part ends on %s (UTC) at the latest.", l.End.UTC().Format("2 January 2006"))
	}
	return s
}

// noticeChoices says how to object.
func (l *Experiment) noticeChoices(by Sender) NoticeSection {
	s := NoticeSection{Title: "Your choices"}
	out := fmt.Sprintf("Write to %s if you do not want to take part. ", by.Contact)
	switch {
	case l.Free:
		s.Text = append(s.Text, out+"We can find an earlier visit only by a name that the page gave it, or gave you.")
		return s
	case l.Contextual != nil:
		s.Text = append(s.Text, out+"A visit is kept under a code of its own. We can find it by the name that the page gave it, and "+
			"destroy that name and what the visit was given. What is in totals stays there.")
		return s
	}
	s.Text = append(s.Text, fmt.Sprintf("You can object at any time, and you need not say why. Write to %s.", by.Contact))
	given := "While the test runs you then get the usual version"
	if l.Leases.On() {
		given = "Your device may go on showing a version"
	}
	s.Items = []string{
		fmt.Sprintf("We then destroy the record that %s took part. %s, and nothing counts any more. A code stays until the test is "+
			"archived, at the latest, so that we remember your objection.", l.you(), given),
		"An outcome that is already in a total stays there, and nobody takes it out.",
		"You can ask what we know of you. The answer has your version, when you were given it, and how often. It never has an " +
			"outcome.",
	}
	return s
}

// noticeLimits says what is not promised.
func (l *Experiment) noticeLimits() NoticeSection {
	s := NoticeSection{Title: "What is not promised", Items: []string{
		"That you took part, when, and which version you were given is not hidden by noise.",
		"Other tests have limits of their own, and what they publish adds to this."}}
	switch l.TrustModel() {
	case privacy.TrustCentral:
		thief := "Until a total is released, somebody who breaks into the service can read it without noise, and whether a report of " +
			"yours came. If yours is the only one in a total, that is your outcome."
		if l.Aggregates() {
			thief = "Until a total is released, somebody who breaks into the service can read it without noise, and your outcome by itself."
		}
		s.Items = append(s.Items, thief)
	case privacy.TrustTwoServer:
		s.Items = append(s.Items, "The two parties could break the promise together.")
	case privacy.TrustSecAgg:
		s.Items = append(s.Items, "If fewer members of a group are honest, less noise protects you, and we may learn more.")
	}
	if l.Exposure == ExposeActivate || l.Exposure == ExposeRetract {
		s.Items = append(s.Items, "No noise hides whether the version was shown.")
	}
	if l.Missing == MissingDrop {
		s.Items = append(s.Items, "Counts tell whether an outcome came at all.")
	}
	return s
}

// you is the unit, to the person who reads of it.
func (l *Experiment) you() string {
	if slices.Contains([]string{"person", "user", "visitor", "customer", "patient", "participant"}, l.Unit.Of) {
		return "you"
	}
	return "your " + l.Unit.Of
}

// lasts is a duration in words.
func lasts(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{Day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= 2*u.of && d%u.of == 0 || d == u.of && u.of < Day {
			return plural(int(d/u.of), u.name)
		}
	}
	return d.String()
}
