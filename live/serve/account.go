package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
)

// One person may be in all experiments. The account adds up what those can cost one person within any
// window of a length, and a start that would exceed the cap is refused.
//
// An experiment is charged what it declares, whatever it releases: metrics, rules, all assignments. It
// counts from its start, the declared one if that is later, until a window after its last release; for
// ever while it goes on, since an end that is declared can be changed, and an outage may delay the last
// release. All of it is read from declarations, states and the times of releases, which an archive and an
// erasure leave, so that there is nothing beside them that could be lost. The theorem is in
// privacy/filter.go.
//
// The cap is the operator's premise, and public. A refusal depends on declarations, on when experiments
// started and made releases, and on the clock. None of that depends on a reward but by what was released.
//
// Starts are jobs of the one writer: of two the second sees the first, also in one transaction, and on a
// database of several processes a writer that was superseded commits neither.

// ErrPersonCap is matched by the error of a start that Config.PersonCap does not allow.
var ErrPersonCap = errors.New("--person-cap does not allow it")

// A PersonCap is what all experiments together may cost one person within any window of time. The zero
// value is no cap.
type PersonCap struct {
	// Unit is what experiments call a person: those whose unit has another name must count persons
	// (unit.per_person), or are refused.
	Unit   string
	Budget privacy.Budget // Pure or ZCDP
	Days   int            // of the window
}

const maxCapDays = 36_500

// ParsePersonCap reads what String writes, such as unit=person,epsilon=3/365d.
func ParsePersonCap(text string) (PersonCap, error) {
	if text == "none" {
		return PersonCap{}, nil
	}
	of, window, _ := strings.Cut(text, "/")
	unit, budget, _ := strings.Cut(of, ",")
	unit, named := strings.CutPrefix(unit, "unit=")
	days, whole := strings.CutSuffix(window, "d")
	if !named || !whole || budget == "" {
		return PersonCap{}, fmt.Errorf("is %q, must be such as unit=person,epsilon=3/365d, or none", clip(text))
	}
	if unit == "" || keyed.CheckLabel(unit) != nil {
		return PersonCap{}, fmt.Errorf("unit is %q, must be what experiments call a person", clip(unit))
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 1 || n > maxCapDays {
		return PersonCap{}, fmt.Errorf("window is %q, must be from 1d to %dd", clip(window), maxCapDays)
	}
	b, err := privacy.ParseBudget(budget)
	if err == nil {
		_, err = privacy.NewWindows(b, 1)
	}
	return PersonCap{unit, b, n}, err
}

// String is the cap as --person-cap has it.
func (c PersonCap) String() string {
	if c == (PersonCap{}) {
		return "none"
	}
	return fmt.Sprintf("unit=%s,%v/%dd", c.Unit, c.Budget, c.Days)
}

func (c PersonCap) window() time.Duration { return time.Duration(c.Days) * 24 * time.Hour }

// In is an amount in the cap's currency.
func (c PersonCap) In(x float64) privacy.Budget {
	if _, rho := c.Budget.(privacy.ZCDP); rho {
		return privacy.ZCDP{Rho: x}
	}
	return privacy.Pure{Epsilon: x}
}

// limit is the amount that the cap is.
func (c PersonCap) limit() float64 {
	switch b := c.Budget.(type) {
	case privacy.Pure:
		return b.Epsilon
	case privacy.ZCDP:
		return b.Rho
	}
	return math.Inf(1)
}

// An Account is what experiments can cost one person.
type Account struct {
	Cap PersonCap
	At  time.Time
	// Most is what one person is charged within the worst window that ends at At or later, in the
	// currency of Cap; +Inf if an experiment counts that has no price.
	Most float64
	// Entries are of experiments that count, by when they do no more; Drafts of those that could start.
	Entries, Drafts []AccountEntry
}

// Left is what is left of the cap, and Over by how much it is exceeded: one of them is 0.
func (a Account) Left() float64 { return max(0, a.Cap.limit()-a.Most) }

// Over is by how much the cap is exceeded, as it is after it was lowered.
func (a Account) Over() float64 {
	if a.Most <= a.Cap.limit()*(1+1e-9) { // the slack of sums
		return 0
	}
	return a.Most - a.Cap.limit()
}

// An AccountEntry is one experiment in an account.
type AccountEntry struct {
	Experiment string
	State      State
	Budget     privacy.Budget // that it declares in all
	Costs      float64        // one person, in the currency of the cap; +Inf if it has no price
	From       time.Time
	// Until is when it counts no more, as far as that is known; zero while it goes on.
	Until time.Time
	Layer decl.Layer // where a person has one position in it
	Cap   string     // under which it was started; empty: under none
	// Why says why it has no price, or of a draft why it is refused now. A draft could start at From; zero: nobody
	// knows.
	Why string
}

// A standing is what there is of an experiment that the account goes by.
type standing struct {
	decl        Experiment
	state       State
	began, last int64 // from when on it counts, and its last release: privacy.Never while it goes on
	cap         string
}

// standing is that of x in a state, the record's or the durable one; its lock is held. ok is false if it costs
// nobody anything: it did not start, or ended before it released anything.
func (x *served) standing(state State) (s standing, ok bool) {
	s = standing{x.decl, state, x.began, privacy.Never, x.rec.Cap}
	if start := x.decl.Start; !start.IsZero() {
		s.began = max(s.began, start.UnixMilli())
	}
	switch state {
	case Draft:
		return s, false
	case Stopped, Archived:
		s.last = cmp.Or(x.rec.Last, x.rec.Ended)
		// Of rewards that the service does not see, others may have seen what it has not.
		return s, x.lines+len(x.out) > 0 && (x.seen > 0 || x.gatherer != nil || x.rec.Reason != "")
	}
	return s, true
}

// lastSeen is when anybody may have learned something of a reward last, of an experiment that ends now; 0 if
// nobody knows.
func (x *served) lastSeen(now int64) int64 {
	switch {
	case x.gatherer != nil && x.play != nil: // reports are seen until their deadlines
		_, settled, _ := x.play.Left()
		return max(now, settled)
	case x.gatherer != nil:
		return now + (x.decl.Activation() + x.decl.Window).Milliseconds()
	case x.rec.State == Failed:
		return 0
	}
	return max(x.rec.Last, x.seen)
}

// shownAt is when the last release was shown of an experiment that goes on at now, after a last commit: a
// tick after it was closed, unless the program ended before.
func (x *served) shownAt(last, now int64) int64 {
	at := x.seen + 2*x.tick
	switch {
	case x.seen == 0:
		return 0
	case at <= last:
		return at
	}
	return now
}

// A tally adds up.
type tally struct {
	cap     PersonCap // in force
	before  string    // the cap that the last experiment was started under; empty: none was under any
	windows privacy.Windows
	charges []privacy.Charge
	of      []standing
	why     []error // why one has no price
}

// tally adds up all experiments but one, which may be nil and whose lock may be held.
func (e *Engine) tally(but *served) (*tally, error) {
	var all []standing
	before, at := "", int64(0)
	for _, x := range e.all() {
		if x == but {
			continue
		}
		x.mu.Lock() // only the writer, which has but's, has two
		state := x.rec.State
		if but == nil { // nobody is told of what is not durable
			state = x.durable.state
		}
		s, ok := x.standing(state)
		if state != Draft && s.cap != "" && x.began >= at {
			before, at = s.cap, x.began
		}
		x.mu.Unlock()
		if ok {
			all = append(all, s)
		}
	}
	if e.cfg.account != nil {
		all = e.cfg.account(all)
	}
	return newTally(e.cfg.PersonCap, before, all)
}

// newTally is a tally under the given cap, or without one under that of the last start: a process that forgets
// the flag goes by it.
func newTally(given *PersonCap, before string, all []standing) (t *tally, err error) {
	t = &tally{before: before, of: all}
	switch {
	case given != nil:
		t.cap = *given
	case before != "":
		t.cap, err = ParsePersonCap(before)
	}
	if err != nil || t.cap == (PersonCap{}) {
		return t, err
	}
	if t.windows, err = privacy.NewWindows(t.cap.Budget, t.cap.window().Milliseconds()); err != nil {
		return nil, err
	}
	for i := range all {
		c, err := t.charge(&all[i])
		t.charges, t.why = append(t.charges, c), append(t.why, err)
	}
	return t, nil
}

// charge is what an experiment is charged: an infinite loss with the reason if it has no price.
func (t *tally) charge(s *standing) (c privacy.Charge, why error) {
	c = privacy.Charge{Loss: privacy.InfiniteLoss(), From: s.began, Last: s.last}
	b, err := s.decl.PersonBudget(t.cap.Unit)
	if err != nil {
		return c, placeless(err)
	}
	loss := privacy.LossOf(b)
	if math.IsInf(t.windows.Price(loss), 1) {
		return c, fieldError("budget", "is %v, which has no price in the currency of the cap, %v", b, t.cap.Budget)
	}
	if c.Loss = loss; s.decl.ByPerson() {
		c.Layer, c.Lo, c.Hi = s.decl.Layer.Name, s.decl.Layer.From, s.decl.Layer.To
	}
	return c, nil
}

// allow is nil if an experiment may start that begins at next.began, and otherwise an error with what is
// spent, what it costs, until when, and what would do.
func (t *tally) allow(next *standing) error {
	if t.cap == (PersonCap{}) {
		return nil
	}
	c, why := t.charge(next)
	if why != nil {
		return overCap(why)
	}
	if t.windows.Allow(t.charges, c) == nil {
		return nil
	}
	most := t.windows.Most(append(slices.Clip(t.charges), c), c.From, t.windows.End(c))
	with := t.amount(most) + " with what counts then"
	if math.IsInf(most, 1) {
		with = "not everything that counts then has a price"
	}
	return fieldError("budget", "costs one %s %s, and %s, where the cap is %v within %d days: "+
		"%s. %s: %w", t.cap.Unit, t.amount(t.windows.Price(c.Loss)), with, t.cap.Budget, t.cap.Days,
		t.counting(c.From), t.instead(c), ErrPersonCap)
}

// amount is a number in the cap's currency, without what rounding has added to it.
func (t *tally) amount(x float64) string { return fmt.Sprint(t.cap.In(short(x))) }

// overCap is an error about a field as one that matches ErrPersonCap.
func overCap(err error) error {
	var at *decl.Error
	if errors.As(err, &at) {
		return fieldError(at.Field, "%w: %w", at.Err, ErrPersonCap)
	}
	return fmt.Errorf("%w: %w", err, ErrPersonCap)
}

// mostNamed is how many experiments an error names.
const mostNamed = 12

// counting says what counts at an instant or later, and until when.
func (t *tally) counting(from int64) string {
	var names []string
	for _, i := range t.byEnd(from) {
		what := "with " + t.amount(t.windows.Price(t.charges[i].Loss))
		if t.why[i] != nil {
			what = fmt.Sprintf("whose %v", t.why[i])
		}
		until := "while it goes on"
		if end := t.windows.End(t.charges[i]); end != privacy.Never {
			until = "until " + dateOf(end+1)
		}
		names = append(names, fmt.Sprintf("%s %s %s", t.of[i].decl.Name, what, until))
	}
	if n := len(names) - mostNamed; n > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("%d more (GET /v1/account)", n))
	}
	if names == nil {
		return "no other"
	}
	return strings.Join(names, "; ")
}

// instead says what would do instead of a charge.
func (t *tally) instead(c privacy.Charge) string {
	var do []string
	if left := t.left(c); left > 0 {
		do = append(do, fmt.Sprintf("take a budget that costs at most %v", t.cap.In(left)))
	}
	if at, ok := t.windows.Begin(t.charges, c); ok {
		do = append(do, "start it on "+dateOf(at)+" or later")
	} else if at, ok := t.windows.Begin(t.declared(), c); ok {
		do = append(do, "start it on "+dateOf(at)+" or later, if the others end as they declare")
	} else if t.windows.Price(c.Loss) > t.cap.limit() {
		do = append(do, fmt.Sprintf("more than %v is never allowed", t.cap.Budget))
	} else {
		do = append(do, fmt.Sprintf("wait until what goes on has ended, and %d days more", t.cap.Days))
	}
	text := strings.Join(do, ", or ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// left is what an experiment with the times and the layer of c may cost, rounded down: what one that costs more
// than all others leaves of the cap but for its own cost.
func (t *tally) left(c privacy.Charge) float64 {
	limit, end := t.cap.limit(), t.windows.End(c)
	probe := limit + t.windows.Most(t.charges, c.From, end)
	c.Loss = privacy.LossOf(t.cap.In(probe))
	left := limit - (t.windows.Most(append(slices.Clip(t.charges), c), c.From, end) - probe)
	if !(left > 1e-9*limit) { // nor is it a number if something has no price
		return 0
	}
	digits := math.Pow(10, 3-math.Floor(math.Log10(left))) // four
	return math.Floor(left*digits*(1+1e-9)) / digits
}

// declared are the charges, where those that go on end as they declare: with the window of the last
// decision.
func (t *tally) declared() []privacy.Charge {
	out := slices.Clone(t.charges)
	for i, s := range t.of {
		if out[i].Last == privacy.Never && !s.decl.End.IsZero() {
			out[i].Last = s.decl.End.Add(s.decl.Activation() + s.decl.Window + 2*maxTick*time.Millisecond).UnixMilli()
		}
	}
	return out
}

// byEnd are the charges that count at an instant or later, the first to go first.
func (t *tally) byEnd(from int64) (out []int) {
	for i, c := range t.charges {
		if t.windows.End(c) >= from {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(t.windows.End(t.charges[a]), t.windows.End(t.charges[b]))
	})
	return out
}

// short is a sum without what rounding has added to it.
func short(x float64) float64 {
	if math.IsInf(x, 0) {
		return x
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// dateOf is the first second that is not before an instant.
func dateOf(ms int64) string { return secondOf(ms).Format(time.RFC3339) }

func secondOf(ms int64) time.Time {
	at := time.UnixMilli(ms).UTC()
	if whole := at.Truncate(time.Second); whole.Before(at) {
		return whole.Add(time.Second)
	}
	return at
}

// withinCap refuses the start of an experiment that would exceed the cap, and says under which cap it
// starts.
func (e *Engine) withinCap(x *served, now int64) (under string, err error) {
	t, err := e.tally(x)
	if err != nil {
		return "", err
	}
	next, _ := x.standing(Draft)
	next.began = max(next.began, e.date(now)) // the earlier of two clocks has more that counts
	if err := t.allow(&next); err != nil {
		return "", err
	}
	if e.cfg.PersonCap == nil && t.cap == (PersonCap{}) {
		return "", nil
	}
	return t.cap.String(), nil
}

// warnOfCap logs that the program goes by another cap than the last start.
func (e *Engine) warnOfCap() {
	if e.cfg.PersonCap == nil {
		return
	}
	if t, err := e.tally(nil); err == nil && t.before != "" && t.before != t.cap.String() {
		e.cfg.Log.Warn("serve: --person-cap is another one than the last experiment was started under: starts go "+
			"by it from now on, and what runs goes on", "was", t.before, "is", t.cap.String())
	}
}

// Account says what experiments can cost one person, by what everybody may see of them.
func (e *Engine) Account(context.Context) (Account, error) {
	if !e.here() {
		return Account{}, errElsewhere
	}
	t, err := e.tally(nil)
	if err != nil {
		return Account{}, err
	}
	now := e.date(e.now())
	out := Account{Cap: t.cap, At: time.UnixMilli(now).UTC()}
	if t.cap == (PersonCap{}) {
		return out, nil
	}
	out.Most = t.windows.Most(t.charges, now, privacy.Never)
	if !math.IsInf(out.Most, 1) {
		out.Most = short(out.Most)
	}
	for _, i := range t.byEnd(now) {
		entry := t.entry(&t.of[i], t.charges[i], t.why[i])
		if end := t.windows.End(t.charges[i]); end != privacy.Never {
			entry.Until = secondOf(end + 1)
		}
		out.Entries = append(out.Entries, entry)
	}
	for _, x := range e.all() {
		x.mu.Lock()
		s, _ := x.standing(x.durable.state)
		x.mu.Unlock()
		if s.state != Draft {
			continue
		}
		s.began = max(s.began, now)
		c, why := t.charge(&s)
		if why == nil {
			why = t.allow(&s)
		}
		entry := t.entry(&s, c, why)
		at, ok := t.windows.Begin(t.charges, c)
		if entry.From = secondOf(at); !ok {
			entry.From = time.Time{}
		}
		out.Drafts = append(out.Drafts, entry)
	}
	return out, nil
}

func (t *tally) entry(s *standing, c privacy.Charge, why error) AccountEntry {
	out := AccountEntry{Experiment: s.decl.Name, State: s.state, Budget: s.decl.Total(),
		Costs: short(t.windows.Price(c.Loss)), From: secondOf(c.From), Cap: s.cap}
	if c.Layer != "" {
		out.Layer = s.decl.Layer
	}
	if why != nil {
		out.Why = why.Error()
	}
	return out
}
