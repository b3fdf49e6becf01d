package serve

import (
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// agree is how far apart two clocks may be that say the same.
const agree = time.Hour

// believed is the time at a start: that of the store's clock, which all go by who share it, or of this
// process's. One clock alone cannot tell an outage from its own jump, and what follows of a jump cannot
// be taken back: windows close, ends come. So a time that is more than Outage after the last commit is
// believed if the clocks of two machines say it. Otherwise the time goes on from the last commit, as if there had
// been no outage: that shortens no window.
func (e *Engine) believed(o store.Opened) int64 {
	own, last := e.cfg.wall().UnixMilli(), o.Now+e.cfg.Outage.Milliseconds()
	first := own
	if o.Clock > 0 {
		first = o.Clock
	}
	switch apart := time.Duration(first-own) * time.Millisecond; {
	case o.Now == 0, first <= last, o.Elsewhere && apart.Abs() <= agree:
		return first
	case own <= last:
		return own
	}
	return o.Now
}

// Drift is how far the service's time is ahead of the clock, or behind it if that is negative. It is
// behind after an outage that was not believed or a sleep of the machine, and ahead after a clock was.
func (e *Engine) Drift() time.Duration {
	return time.Duration(e.now()-e.cfg.wall().UnixMilli()) * time.Millisecond
}

// Drifted says whether the service's time and the clock differ by more than an hour.
func (e *Engine) Drifted() bool { return e.Drift().Abs() > agree }

// date is the time that has come at now by the clock too. What is declared for a date, or destroyed,
// waits for both.
func (e *Engine) date(now int64) int64 { return min(now, e.cfg.wall().UnixMilli()) }

// latest is the time by which names of units and sessions end: they are good while neither the service
// nor the clock says that they are over.
func (e *Engine) latest() int64 { return max(e.now(), e.cfg.wall().UnixMilli()) }

// watchClock logs when the clock begins to differ, and when it ends.
func (e *Engine) watchClock() {
	if e.Drifted() == e.drifted {
		return
	}
	if e.drifted = !e.drifted; !e.drifted {
		e.cfg.Log.Info("serve: the service's time and the clock agree again")
		return
	}
	what := "serve: the service's time is ahead of the clock, since its store has seen a later one: nothing " +
		"ends by its date before the clock is there too"
	if e.Drift() < 0 {
		what = "serve: the clock is further ahead than an outage is believed to last: time goes on from the " +
			"last commit; if the clock is right, start the service again with --longest-outage"
	}
	e.cfg.Log.Error(what, "clock", e.cfg.wall().UTC().Format(time.RFC3339), "service",
		time.UnixMilli(e.now()).UTC().Format(time.RFC3339))
}

// started says whether the declared start has come.
func (x *served) started(now int64) bool {
	return x.decl.Start.IsZero() || x.date(now) >= x.decl.Start.UnixMilli()
}

// over says whether the declared end has come.
func (x *served) over(now int64) bool {
	return !x.decl.End.IsZero() && x.date(now) >= x.decl.End.UnixMilli()
}
