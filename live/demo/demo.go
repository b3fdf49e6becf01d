// Package demo is visitors who are not there: an experiment on a running service, and people made
// up for it, so that a newcomer sees decisions, releases and what they cost.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// Name is that of the experiment.
const Name = "demo"

// The declaration is not sticky and its visitors have no names, so that nothing grows.
const declaration = `
name: demo
description: Which headline do made-up visitors click?
arms:
  - {name: plain, value: Our jackets for autumn}
  - {name: question, value: Ready for the rain?}
  - {name: number, value: 7 jackets that keep you dry}
policy: {policy: dp-klucb, first: 30}
budget: {epsilon: 1}
unit: {of: visit, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1s
floor: 0.05
sticky: false
public: true
`

// clicks are the shares of visitors who click, by arm.
var clicks = [...]float64{0.2, 0.35, 0.5}

// Every so often a visitor comes, and a line is told.
const (
	visitEvery = 5 * time.Millisecond
	tellEvery  = time.Second
)

// Start creates and starts the experiment.
func Start(ctx context.Context, e *serve.Engine) error {
	x, err := decl.Reader{}.Parse(Name, []byte(declaration))
	if err != nil {
		return err
	}
	if err := e.Create(ctx, *x); err != nil {
		return err
	}
	return e.Start(ctx, Name)
}

// Visit sends visitors until the context ends, and tells every second how the experiment is, by
// what everybody may see. It returns nil when the context ends, or somebody stops the experiment.
func Visit(ctx context.Context, e *serve.Engine, tell func(string)) error {
	visits, lines := time.NewTicker(visitEvery), time.NewTicker(tellEvery)
	defer visits.Stop()
	defer lines.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-lines.C:
			var x serve.Info
			if x, err = e.Get(ctx, Name); err == nil {
				tell(line(x))
				if x.State == serve.Stopped || x.State == serve.Archived {
					return nil
				}
			}
		case <-visits.C:
			err = visit(ctx, e)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the demonstration: %w", err)
		}
	}
}

// visit is one visitor, who clicks or does nothing.
func visit(ctx context.Context, e *serve.Engine) error {
	d, err := e.Decide(ctx, Name, "")
	if err != nil || d.Token == "" || rand.Float64() >= clicks[d.Arm] {
		return err
	}
	_, err = e.Reward(ctx, Name, serve.Report{Token: d.Token, Reward: 1})
	return err
}

func line(x serve.Info) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d releases, a visit has lost at most ε = %.3g;", x.Batches, x.Spent.Pure())
	for i, a := range x.Arms {
		fmt.Fprintf(&b, " %s: %d decisions", x.Experiment.Arms[i].Name, a.Decisions)
		if a.Released > 0 {
			fmt.Fprintf(&b, ", %.0f%% clicked", 100*a.Sum/float64(a.Released))
		}
		b.WriteString(";")
	}
	return strings.TrimSuffix(b.String(), ";")
}
