package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// An Operation is what who operates it can do to an experiment now.
type Operation struct {
	Name  string // the last part of its address
	Title string // of the button
	// Asks: its address has a page that says what it costs, and asks for the experiment's name.
	// Otherwise it is done by a POST.
	Asks bool
}

var operations = map[string]Operation{
	"start": {"start", "Start", false}, "pause": {"pause", "Pause", false},
	"resume": {"resume", "Resume", false}, "stop": {"stop", "Stop and declare a winner", true},
	"off": {"off", "Remove an arm", true}, "add": {"add", "Add an arm", true}, "archive": {"archive", "Archive", true},
}

// can is what can be done in a state.
var can = map[State][]string{Draft: {"start", "archive"}, Starting: {"pause", "add", "off", "stop"},
	Collecting: {"pause", "add", "off", "stop"}, Awaiting: {"pause", "add", "off", "stop"},
	Paused: {"resume", "add", "off", "stop"}, Stopping: {"stop"}, Failed: {"stop"}, Stopped: {"archive"}}

// stopNow is the button that destroys what waits.
const stopNow = "Stop now"

func operationsOf(who Who, v *View) (out []Operation) {
	if !who.Operates {
		return nil
	}
	for _, name := range can[v.State] {
		do := operations[name]
		switch {
		case name == "add" && !(v.Grows && who.Admin), name == "off" && v.KeepsArms != "":
			continue
		case v.State == Stopping:
			do.Title = stopNow
		case v.Contexts != nil && name == "stop":
			do.Title = "Stop"
		}
		out = append(out, do)
	}
	return out
}

// Keeps says why no arm can be taken off, where one could be in its state, and nothing of one that has none.
func (v *View) Keeps() string {
	if v.Contexts != nil || !slices.Contains(can[v.State], "off") {
		return ""
	}
	return v.KeepsArms
}

// Start runs a draft.
func (p *Pages) Start(w http.ResponseWriter, r *http.Request) error {
	return p.plain(w, r, p.cfg.Engine.Start)
}

// Pause stops the issuing of decisions.
func (p *Pages) Pause(w http.ResponseWriter, r *http.Request) error {
	return p.plain(w, r, p.cfg.Engine.Pause)
}

// Resume goes on after a Pause.
func (p *Pages) Resume(w http.ResponseWriter, r *http.Request) error {
	return p.plain(w, r, p.cfg.Engine.Resume)
}

// plain does what can be undone, and shows the experiment.
func (p *Pages) plain(w http.ResponseWriter, r *http.Request, do func(context.Context, string) error) error {
	in, err := readForm(w, r, maxForm, "reason")
	if err != nil {
		return err
	}
	ctx, err := serve.Because(r.Context(), in.Get("reason"))
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := do(ctx, name); err != nil {
		return err
	}
	seeOther(w, "/experiments/"+name)
	return nil
}

// A Confirm is a page that says what something costs that cannot be undone, and has the name typed
// of what it is done to.
type Confirm struct {
	Frame
	Name   string   // to be typed
	What   string   // experiment or key
	Action string   // the address that the form is sent to
	Do     string   // the title of the button; empty if there is only Now
	Now    string   // the title of one that destroys what waits, if there is one
	Leads  string   // the arm that leads, where the leader can be kept
	Costs  []string // in sentences
	Arms   []string // one of which is to be chosen, if there are any
	Arm    string   // that is chosen, or the name of a new one
	New    bool     // an arm is to be named, with its value
	Value  string   // that it has
	Reason string   // as it was typed
	Why    bool     // a reason may be given
	Learnt bool     // it is to be chosen whether what was learnt of contexts is kept
	Last   bool     // who goes on knows that it is the last key
	Wrong  *Wrong
}

// At is what is wrong with a field, nil if it is another.
func (c Confirm) At(field string) *Wrong {
	at := "confirm"
	switch {
	case c.Wrong == nil:
		return nil
	case c.Wrong.Field == "reason":
		at = "reason"
	case c.Wrong.Field == "arm", c.Wrong.Field == "keep", c.New && c.Wrong.Field != "confirm":
		at = "arm"
	}
	if field != at {
		return nil
	}
	return c.Wrong
}

// Wrong is what is wrong with a form.
type Wrong struct {
	Field        string // empty for all of it
	Detail       string
	Line, Column int    // of a declaration, 0 if there is none
	Snippet      string // that line with a mark below, or empty
}

// wrongOf is what is wrong with a form; nil if the error is not the form's, or there is none.
func (p *Pages) wrongOf(err error) *Wrong {
	if err == nil {
		return nil
	}
	var in *FieldError
	var of *keyed.Error
	switch {
	case errors.As(err, &of):
		return &Wrong{of.Field, of.Err.Error(), of.Pos.Line, of.Pos.Column, of.Snippet}
	case errors.As(err, &in):
		return &Wrong{Field: in.Field, Detail: in.Detail}
	}
	status, field, detail := p.cfg.Problem(err)
	if status == http.StatusBadRequest || status == http.StatusConflict {
		return &Wrong{Field: field, Detail: detail}
	}
	return nil
}

// statusOf is the status of a page that says what is wrong.
func (p *Pages) statusOf(err error) int {
	var in *FieldError
	if errors.As(err, &in) {
		return in.Status
	}
	status, _, _ := p.cfg.Problem(err)
	return status
}

// Ask shows what an operation costs: that of the address's last part.
func (p *Pages) Ask(do string) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return p.ask(w, r, do, http.StatusOK, nil, nil)
	}
}

func (p *Pages) ask(w http.ResponseWriter, r *http.Request, do string, status int, sent url.Values,
	bad *Wrong) error {
	arm := sent.Get("arm")
	info, err := p.cfg.Engine.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	name := info.Experiment.Name
	c := Confirm{Frame: p.frame(r, operations[do].Title+": "+name), Name: name, What: "experiment",
		Action: "/experiments/" + name + "/" + do, Do: operations[do].Title, Arm: arm, Wrong: bad, Why: true,
		Reason: sent.Get("reason")}
	contexts := info.Experiment.Contextual != nil
	if contexts && do == "off" {
		return &FieldError{http.StatusNotFound, "", "an experiment with contexts has no arms to remove"}
	}
	for i, a := range info.Arms {
		if !a.Off && (do == "stop" || do == "off") { // off is for good
			c.Arms = append(c.Arms, info.Experiment.Arms[i].Name)
		}
	}
	switch do {
	case "stop":
		p.askStop(r, &c, info)
	case "off":
		c.Costs = []string{"No decision gives the arm any more, for good. Visitors who had it are assigned anew.",
			"Its rewards that are still to come are awaited, and released when the experiment stops.",
			"It takes effect within seconds, and is a line of the transcript."}
	case "add":
		if err := info.Experiment.NoArm(); err != nil {
			return &FieldError{http.StatusNotFound, "", "no arm can be added: " + err.Error()}
		}
		c.New, c.Value = true, sent.Get("value")
		c.Costs = []string{"The policy plays it next: as a rule everybody new gets it until its first batch is complete and its " +
			"windows have passed; with dp-ts a share of them. Visitors who have an arm keep it.",
			"It can be removed again, and its name stays taken.",
			"It takes effect within seconds, and is a line of the transcript."}
	case "archive":
		c.Arms = nil
		c.Costs = []string{"The record of who was assigned which arm is destroyed, for good. The transcript and the ledger stay."}
		if info.State == serve.Draft {
			c.Costs = []string{"It was not started, and can never be started. Its name stays taken."}
		}
	}
	p.write(w, status, "confirm.html", c)
	return nil
}

// askStop fills in the page of a stop. Where decisions wait there is a second button, which destroys their rewards.
func (p *Pages) askStop(r *http.Request, c *Confirm, info serve.Info) {
	what, first := "the winner", ""
	if info.Experiment.Contextual != nil {
		declared := info.Experiment.Stop.Keep == decl.KeepPolicy
		c.Do, c.Title, what = "Stop", "Stop: "+c.Name, "the first action"
		if c.Learnt = !declared && info.Contextual.Released > 0 && info.State != serve.Failed; c.Learnt {
			what += ", or what you choose here"
		} else if declared {
			what = keptOf(serve.Info{Policy: true})
		}
	} else if !slices.Contains(c.Arms, decl.KeepLeader) {
		if s, err := p.snapshot(r.Context(), c.Name); err == nil && s.view.Leader != "" {
			c.Leads, first = s.view.Leader, decl.KeepLeader
		}
		c.Leads = cmp.Or(c.Leads, "none yet")
	}
	c.Arm = cmp.Or(c.Arm, info.Experiment.Stop.Keep, first, info.Experiment.Fallback)
	waits := words.Several(info.Left, "decision")
	destroys := "The rewards of " + waits + " that were not released are destroyed"
	forGood := "Nothing starts it again, and its name stays taken."
	if info.Left == 0 || info.State == serve.Failed {
		c.Costs = []string{"From then on everybody gets " + what + ", and nothing is learned any more.", destroys + ".", forGood}
		return
	}
	if c.Now = stopNow + ", and destroy the rewards of " + waits; info.State == serve.Stopping {
		c.Do, c.Title, c.Arms, c.Leads, c.Arm, c.Learnt = "", stopNow+": "+c.Name, nil, "", "", false
	}
	if info.Experiment.Contextual != nil {
		c.Costs = []string{"Nobody new is assigned any more. Of the rewards of " + waits + " that were not released, those in " +
			"segments that the policy has ended are awaited and released; those that came later are destroyed, at once " +
			"if there is no such segment. Then everybody gets " + what + ".",
			"With “" + stopNow + "” all of them are destroyed, and everybody gets it at once.", forGood}
		return
	}
	c.Costs = []string{"Nobody new is assigned any more. The rewards of " + waits + " that were not released are " +
		"awaited until their windows have passed, and released. Then everybody gets " + what + ".",
		"With “" + stopNow + "” they are destroyed, and everybody gets it at once.", forGood}
}

// Confirmed does an operation whose page was Ask's.
func (p *Pages) Confirmed(do string) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("name")
		fields := []string{"confirm", "reason"}
		switch do {
		case "add":
			fields = append(fields, "arm", "value")
		case "stop", "off":
			fields = append(fields, "arm", "now")
		}
		f, err := readForm(w, r, maxForm, fields...)
		if err != nil {
			return err
		}
		arm := f.Get("arm")
		ctx, err := serve.Because(r.Context(), f.Get("reason"))
		switch {
		case err != nil:
		case strings.TrimSpace(f.Get("confirm")) != name:
			err = wrong("confirm", "this is not the name of the experiment: type %s", name)
		case do == "stop" && f.Get("now") != "":
			err = p.cfg.Engine.StopNow(ctx, name, arm, name)
		case do == "stop":
			err = p.cfg.Engine.Stop(ctx, name, arm)
		case do == "add":
			err = p.add(ctx, name, strings.TrimSpace(arm), strings.TrimSpace(f.Get("value")))
		case do == "off" && arm == "":
			err = wrong("arm", "arm is missing: say which")
		case do == "off":
			err = p.cfg.Engine.TakeOff(ctx, name, arm)
		case do == "archive":
			err = p.cfg.Engine.Archive(ctx, name)
		default:
			err = fmt.Errorf("there is no operation %q", do)
		}
		if err != nil {
			if bad := p.wrongOf(err); bad != nil {
				return p.ask(w, r, do, p.statusOf(err), f, bad)
			}
			return err
		}
		seeOther(w, "/experiments/"+name)
		return nil
	}
}

// add adds an arm. What is no JSON is a value as it stands, a string.
func (p *Pages) add(ctx context.Context, name, arm, value string) error {
	one := serve.Added{Name: arm}
	switch {
	case arm == "":
		return wrong("arm", "name is missing: say what the arm is called")
	case value == "":
	case json.Valid([]byte(value)):
		one.Value = json.RawMessage(value)
	default:
		one.Value, _ = json.Marshal(value) // a string always can be
	}
	return p.cfg.Engine.Change(ctx, name, serve.Change{Add: []serve.Added{one}})
}
