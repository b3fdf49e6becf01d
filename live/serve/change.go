package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
)

// A Change is what may change of an experiment that was created: nothing that its guarantee is made
// of. What is nil stays.
type Change struct {
	End    *time.Time     // no decision from then on; the zero time for never
	Window *time.Duration // of the decisions from then on: the others keep their deadlines
	Floor  *float64       // γ
	// Off are arms to take off, by their names: for good, no decision gives them, not to their
	// units either, nor as the fallback. Windows pass, and what was not released is when the experiment stops.
	Off []string
	// Add are arms to add. Each is a line of its own; from then on the policy plays it, and who is assigned stays so.
	Add []Added
	// Guard is what a guard has paused the experiment for, and Resume that an operator resumes it nevertheless
	// (Engine.Resume). They stand in transcripts, and nobody else may say them.
	Guard  *Harm
	Resume bool
	// Share is the share of units that are in it, 1 for all; a hash of a unit decides, so who is in a share is in
	// each larger one, and who was assigned stays so in a smaller one. Of a ramp it is a step, which nobody else makes.
	Share       *float64
	Description *string
	Public      *bool // who may read what was released; it is protected as it stands
}

// An Added is an arm that is added. Without a Value decisions give its name.
type Added struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	// Share is, of an A/B test, its share of decisions, 0 for an even one; the others keep theirs of the rest.
	Share float64 `json:"share,omitempty"`
}

// arm is as it is declared.
func (a Added) arm() decl.Arm {
	if len(a.Value) == 0 {
		return decl.Arm{Name: a.Name, Value: json.RawMessage("null")}
	}
	return decl.Arm{Name: a.Name, Value: a.Value}
}

// changeJSON is a change in a record and in the transcript.
type changeJSON struct {
	End    json.RawMessage `json:"end,omitempty"`
	Window string          `json:"window,omitempty"`
	Floor  *float64        `json:"floor,omitempty"`
	Off    []string        `json:"off,omitempty"`
	Add    []Added         `json:"add,omitempty"`
	Guard  *Harm           `json:"guard,omitempty"`
	Resume bool            `json:"resume,omitempty"`
	Share  *float64        `json:"share,omitempty"`

	Description *string `json:"description,omitempty"`
	Public      *bool   `json:"public,omitempty"`
}

// MarshalJSON writes what changes, end as null where there is none any more.
func (c Change) MarshalJSON() ([]byte, error) {
	out := changeJSON{Floor: c.Floor, Off: c.Off, Add: c.Add, Guard: c.Guard, Resume: c.Resume, Share: c.Share,
		Description: c.Description, Public: c.Public}
	if c.End != nil {
		end := c.End
		if end.IsZero() {
			end = nil
		}
		out.End, _ = json.Marshal(end)
	}
	if c.Window != nil {
		out.Window = c.Window.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Change) UnmarshalJSON(text []byte) error {
	var in changeJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*c = Change{Floor: in.Floor, Off: in.Off, Add: in.Add, Guard: in.Guard, Resume: in.Resume, Share: in.Share,
		Description: in.Description, Public: in.Public}
	if in.End != nil {
		c.End = &time.Time{}
		if err := json.Unmarshal(in.End, c.End); err != nil { // null leaves it as it is
			return fmt.Errorf("end: %w", err)
		}
	}
	if in.Window != "" {
		w, err := time.ParseDuration(in.Window)
		if err != nil {
			return fmt.Errorf("window: %w", err)
		}
		c.Window = &w
	}
	return nil
}

// in puts the new terms into a declaration. Who is off is no term.
func (c Change) in(x *Experiment) {
	for _, a := range c.Add {
		if q := a.Share; x.Split() {
			if q == 0 {
				q = 1 / float64(len(x.Arms)+1)
			}
			x.Joined = append(slices.Clip(x.Joined), q)
		}
		x.Arms, x.Added = append(slices.Clip(x.Arms), a.arm()), x.Added+1
	}
	if c.End != nil {
		x.End = *c.End
	}
	if c.Window != nil {
		x.Window = *c.Window
	}
	if c.Floor != nil {
		x.Floor = *c.Floor
	}
	if c.Share != nil && len(x.Ramp) == 0 {
		if x.Share = *c.Share; x.Share == 1 { // as it is where none was declared
			x.Share = 0
		}
	}
	if c.Description != nil {
		x.Description = *c.Description
	}
	if c.Public != nil {
		x.Public = *c.Public
	}
}

// done is in, of a change that was made. Programs before had a report_after that was not declared follow
// the window, and so made it shorter than that without a word of it: there it is half of it.
func (c Change) done(x *Experiment) {
	if c.in(x); x.ReportAfter >= x.Window {
		x.ReportAfter = x.Window / 2
	}
}

// Change changes the terms of an experiment that is a draft, runs or is paused: all that c says, or
// nothing and an error, which for a bad value is a decl.Error. Of a draft they change at
// once, and else at the next public ticks, each with a line of the transcript.
func (e *Engine) Change(ctx context.Context, name string, c Change) error {
	with, err := c.MarshalJSON()
	if err != nil {
		return fmt.Errorf("experiment %q: %w", name, fieldError("floor", "must be a number"))
	}
	return e.act(ctx, name, Entry{Did: "change", With: string(with)}, func(x *served, now int64) error {
		return x.change(c, now)
	})
}

// TakeOff is the Change that takes one arm off.
func (e *Engine) TakeOff(ctx context.Context, name, arm string) error {
	return e.act(ctx, name, Entry{Did: "take off", With: arm}, func(x *served, now int64) error {
		return x.change(Change{Off: []string{arm}}, now)
	})
}

func fieldError(field, format string, args ...any) error {
	return &decl.Error{Field: field, Err: fmt.Errorf(format, args...)}
}

// placeless is an error about a declaration that was changed: without the place in the text that
// declared it, where something else is written.
func placeless(err error) error {
	var of *decl.Error
	if !errors.As(err, &of) {
		return err
	}
	return &decl.Error{Field: of.Field, Err: of.Err}
}

// change notes what is to be changed.
func (x *served) change(c Change, now int64) error {
	switch x.rec.State {
	case Draft, Running, Paused:
	default:
		return fmt.Errorf("it is %s, must be draft, running or paused: %w", x.rec.State, ErrState)
	}
	switch {
	case c.Guard != nil || c.Resume || c.Share != nil && len(x.decl.Ramp) > 0:
		return fieldError("guard", "is given, or resume, or share, must not be: they follow from releases, a resume and a ramp: %w", ErrState)
	case c.Share != nil && !(*c.Share > 0 && *c.Share <= 1):
		return fieldError("share", "is %v, must be above 0 and at most 1", *c.Share)
	}
	terms := x.decl
	for _, before := range x.rec.Changes {
		before.done(&terms)
	}
	c.Add = slices.Clone(c.Add)
	for i := range c.Add {
		if err := c.Add[i].plain(); err != nil {
			return fieldError(fmt.Sprintf("add[%d].value", i), "is no JSON: %w", err)
		}
	}
	if err := x.adds(&terms, c.Add); err != nil {
		return err
	}
	c.in(&terms)
	if len(c.Add) > 0 {
		if err := comesBack(&terms); err != nil {
			return err
		}
	}
	if x.rec.State != Draft { // its cells were held against it when it was declared, and cannot change
		terms.Traffic = 0
	}
	if err := terms.Check(); err != nil {
		return placeless(err)
	}
	if x.rec.State != Draft {
		if err := terms.CheckEnd(time.UnixMilli(x.began)); err != nil {
			return fmt.Errorf("%w: %w", placeless(err), ErrState)
		}
	}
	if c.End != nil && !c.End.IsZero() && c.End.UnixMilli() <= x.date(now) {
		return fieldError("end", "is %s, which has passed: stop the experiment instead: %w",
			c.End.UTC().Format(time.RFC3339), ErrState)
	}
	off, err := x.off(c.Off)
	if err != nil {
		return err
	}
	x.todo |= theRecord
	if x.rec.State == Draft {
		c.in(&x.decl)
		x.retime()
		return nil
	}
	x.rec.Off = append(x.rec.Off, off...)
	for _, a := range c.Add {
		x.rec.Changes = append(x.rec.Changes, Change{Add: []Added{a}})
	}
	if c.Off, c.Add = nil, nil; c.changes() {
		x.rec.Changes = append(x.rec.Changes, c)
	}
	return nil
}

// changes says that there is a term that changes.
func (c Change) changes() bool {
	return c.End != nil || c.Window != nil || c.Floor != nil || c.Share != nil || c.Description != nil || c.Public != nil
}

// adds says why these arms cannot be added to what there is.
func (x *served) adds(to *Experiment, more []Added) error {
	if len(more) == 0 {
		return nil
	}
	if x.rec.State == Draft {
		return fieldError("add[0]", "is arm %q for a draft, must be for an experiment that has started: declare one "+
			"with it: %w", clip(more[0].Name), ErrState)
	}
	names, shares := map[string]bool{}, []float64{}
	for _, a := range to.Arms {
		names[a.Name] = true
	}
	for i, a := range more {
		at := fmt.Sprintf("add[%d].name", i)
		if names[a.Name] {
			return fieldError(at, "is %q, must be a name that no arm has, or had: %w", clip(a.Name), ErrState)
		}
		if err := keyed.CheckLabel(a.Name); err != nil {
			return fieldError(at, "%w", err)
		}
		switch at := fmt.Sprintf("add[%d].share", i); {
		case a.Share != 0 && !to.Split():
			return fieldError(at, "is given, and the policy is %s: it is for policy %s", to.Policy.Policy, decl.SplitPolicy)
		case !(a.Share >= 0 && a.Share < 1):
			return fieldError(at, "is %v, must be from %v to below 1", a.Share, policy.MinShare)
		}
		names[a.Name] = true
		shares = append(shares, a.Share)
	}
	if err := to.NoArms(shares...); err != nil {
		return fieldError("add[0]", "is arm %q, and policy %s cannot take it: %w: %w", clip(more[0].Name),
			to.Policy.Policy, err, ErrState)
	}
	return nil
}

// clip is the beginning of a text that somebody sent.
func clip(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// changing does the first thing that is to be changed, at a public tick; c is nil if there is none.
func (x *served) changing(now int64) (c *play.Commit, err error) {
	x.forgetOffers(now)
	if x.rec.State == Stopping && x.play.Stopped() && x.decl.Contextual == nil {
		return nil, nil // nothing goes on that it could change
	}
	if c, err = x.guards(now); c != nil || err != nil {
		return c, err
	}
	if c, err = x.takeOff(now); c != nil || err != nil {
		return c, err
	}
	what, steps := x.rampUp(now / x.tick * x.tick)
	switch {
	case steps:
	case len(x.rec.Changes) == 0:
		return nil, nil
	default:
		what = x.rec.Changes[0]
		x.rec.Changes = x.rec.Changes[1:]
	}
	x.todo |= theRecord
	if len(what.Add) > 0 && x.rec.State == Stopping { // its decisions have ended
		return nil, nil
	}
	line, err := what.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(what.Add) > 0 {
		return x.addArm(what, line)
	}
	if what.done(&x.decl); what.Resume {
		if x.board.watch.held = false; x.rec.State == Paused {
			x.rec.State = Running
		}
	}
	x.retime()
	x.ticked = now / x.tick
	if err := x.play.SetWindow(x.window, 0); err != nil {
		return nil, err
	}
	return x.play.Note(line)
}

// maxTick is the longest time between public ticks, in milliseconds.
const maxTick = 1000

// retime sets what follows from the window.
func (x *served) retime() {
	x.window = x.decl.Window.Milliseconds()
	x.tick = min(max(x.window/16, 1), maxTick)
}

// plain writes the value as it is when the declaration is read again: keys in order, letters as they are.
func (a *Added) plain() error {
	if len(a.Value) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(a.Value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	var err error
	a.Value, err = json.Marshal(v)
	return err
}

// comesBack says whether what is stored is read as what is played.
func comesBack(x *Experiment) error {
	text, err := x.JSON()
	if err != nil {
		return err
	}
	again, err := decl.Reader{Catalog: x.Catalog}.Parse("declaration", text)
	if err != nil {
		return fieldError("add[0].value", "cannot be read: %w", placeless(err))
	}
	again.Added, again.Joined = x.Added, x.Joined
	if same, err := equal(again, x); err != nil || !same {
		return fieldError("add[0].value", "is not read again as it is written, must have numbers without an exponent")
	}
	return nil
}
