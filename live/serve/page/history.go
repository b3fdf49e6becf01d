package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// An Act is what was done to an experiment, in words.
type Act struct {
	At     time.Time
	What   string // such as "Arm red removed"
	By     string // such as "the team", or whoever it was for who may read the journal
	Reason string // as who did it said; empty if they did not
	arms   []string
}

// The acts that say why an arm is as it is.
const (
	removed = "removed"
	added   = "added"
	won     = "winner since"
)

// historyOf are acts in words, the newest first. With names they say who did what: not in what everybody sees.
func historyOf(all []serve.Entry, info *serve.Info, names bool) (out []Act) {
	x := &info.Experiment
	ends := map[string]string{"answer": "it has its answer", "date": "its end has come",
		"policy": "its policy wants nothing more"}[info.Why]
	if ends != "" && !info.Ended.IsZero() {
		out = append(out, Act{At: info.Ended, What: "Stopped: " + ends, By: "its own rule", arms: wins(info)})
	}
	for _, did := range slices.Backward(all) {
		a := Act{At: did.Time, By: "the team", Reason: did.Reason}
		switch {
		case did.Key == 0 && did.Issuer == "":
			a.By = "the program"
		case names:
			a.By = did.By
		}
		switch did.Did {
		case "create":
			a.What = "Created"
		case "start":
			a.What = "Started"
		case "pause":
			a.What = "Paused"
		case "resume":
			a.What = "Resumed"
		case "archive":
			a.What = "Archived"
		case "stop":
			a.What = "Stopped: " + winnerOf(did.With, x)
			a.arms = wins(info)
		case "stop now":
			a.What = "Stopped at once, without the rewards that waited: " + winnerOf(did.With, x)
			a.arms = wins(info)
		case "take off":
			a.What = a.arm(did.With, removed)
		case "ramp":
			a.What, a.By = "Traffic stepped up: "+did.With, "the ramp"
		case "guard":
			a.What, a.By, a.Reason = a.guarded(did.With, x), "a guard", did.With
		default:
			a.What = a.changed(did.With)
		}
		out = append(out, a)
	}
	return out
}

// arm says that something was done to an arm.
func (a *Act) arm(name, done string) string {
	a.arms = append(a.arms, done+" "+name)
	return "Arm " + name + " " + done
}

// guarded says what a guard did: With begins with the arm. Whether it was removed or the experiment paused is in its row.
func (a *Act) guarded(with string, x *serve.Experiment) string {
	for _, arm := range x.Arms {
		if strings.HasPrefix(with, arm.Name+" is past its guard of ") {
			a.arms = append(a.arms, removed+" "+arm.Name)
			return "Arm " + arm.Name + " found past its guard"
		}
	}
	return "An arm found past its guard"
}

// wins says which arm is the winner, once it has stopped.
func wins(info *serve.Info) []string {
	if info.Keep < 0 {
		return nil
	}
	return []string{won + " " + info.Experiment.Arms[info.Keep].Name}
}

// winnerOf says what a stop keeps.
func winnerOf(keep string, x *serve.Experiment) string {
	if keep == "" {
		keep = x.Stop.Keep
	}
	switch {
	case keep == decl.KeepLeader && !slices.ContainsFunc(x.Arms, func(a decl.Arm) bool { return a.Name == keep }):
		return "the arm that leads is the winner"
	case keep == decl.KeepPolicy && x.Contextual != nil:
		return "everybody gets the best action by what was learnt"
	case x.Contextual != nil:
		return "everybody gets the first action"
	case keep == "":
		return "everybody gets the fallback"
	}
	return keep + " is the winner"
}

// changed says what a change of terms was, as the journal has it.
func (a *Act) changed(with string) string {
	var c serve.Change
	if json.Unmarshal([]byte(with), &c) != nil {
		return "Changed"
	}
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, name := range c.Off {
		say("%s", a.arm(name, removed))
	}
	for _, one := range c.Add {
		say("%s", a.arm(one.Name, added))
	}
	if c.Share != nil {
		say("Share of units in it %s\u202f%%", words.Number(100**c.Share))
	}
	if c.End != nil && c.End.IsZero() {
		say("No end")
	} else if c.End != nil {
		say("End %s", clockOf(*c.End))
	}
	if c.Window != nil {
		say("Window %s", lasts(*c.Window))
	}
	if c.Floor != nil {
		say("Floor %s", words.Number(*c.Floor))
	}
	if c.Description != nil {
		say("Description changed")
	}
	if c.Public != nil && *c.Public {
		say("Made public")
	} else if c.Public != nil {
		say("No longer public")
	}
	return strings.Join(all, "; ")
}

// whyOf says why an arm is as it is: when and by whom it was removed or added, and the reason; empty if nothing was done to it.
func whyOf(history []Act, arm Arm) string {
	done := added
	if arm.Off {
		done = removed
	} else if arm.Kept {
		done = won
	}
	for _, a := range history {
		if slices.Contains(a.arms, done+" "+arm.Name) {
			return a.why(done)
		}
	}
	return ""
}

func (a *Act) why(done string) string {
	text := fmt.Sprintf("%s %s by %s", done, clockOf(a.At), a.By)
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}
