package decl

import (
	"math"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Cohort is how users who are online together are brought together, under trust secagg: the
// sum of a slot's rewards comes from one session of package secagg, which the service holds at a
// time that its clients are told.
type Cohort struct {
	// Users is how many of a cohort are promised to answer and to be honest: a sum of fewer is not
	// opened. At least 2.
	Users keyed.Count
	// Corrupt is the share of those who registered for a session who may be corrupt: they send
	// what they like and add no noise. Above 0; DefaultCorrupt if 0.
	Corrupt float64
	// Vanish is the share of those who come to a session who may vanish before its end. Above 0;
	// DefaultVanish if 0.
	Vanish float64
	Every  time.Duration // sessions begin at multiples of it; an hour if 0
	Wait   time.Duration // how long a session waits for those who registered; a minute if 0
	// Tries is how often a session is held, each at its time, to which too few come: then Otherwise
	// is done. 3 if 0.
	Tries keyed.Count
	// Otherwise is CohortDefault or CohortStop; the first if empty.
	Otherwise string
}

// What becomes of a slot for which no sum could be had.
const (
	CohortDefault = "default" // its rewards count as missing, and the transcript says so
	CohortStop    = "stop"    // the experiment ends
)

// The defaults of a cohort.
const (
	DefaultCorrupt = 0.1
	DefaultVanish  = 0.1
)

// MaxCohort is how many can register for one session.
const MaxCohort = 10_000

// filled has the defaults.
func (c Cohort) filled() Cohort {
	if c.Corrupt == 0 {
		c.Corrupt = DefaultCorrupt
	}
	if c.Vanish == 0 {
		c.Vanish = DefaultVanish
	}
	if c.Every == 0 {
		c.Every = time.Hour
	}
	if c.Wait == 0 {
		c.Wait = time.Minute
	}
	if c.Tries == 0 {
		c.Tries = 3
	}
	if c.Otherwise == "" {
		c.Otherwise = CohortDefault
	}
	return c
}

// Terms is the cohort of an experiment, with defaults.
func (l *Experiment) Terms() Cohort { return l.Cohort.filled() }

func cohortKeys() []keyed.Key[Cohort] {
	d, rate := Cohort{}.filled(), keyed.Share()
	read := rate.Read
	rate.Read = func(k *keyed.Decoder, n ast.Node, at string, to *float64) error {
		err := read(k, n, at, to)
		if err == nil && !(*to > 0 && *to < 1) { // also what would stand for the default
			err = k.Fail(n, at, "is %v, must be above 0 and below 1", *to)
		}
		return err
	}
	return []keyed.Key[Cohort]{
		keyed.Always("users", keyed.Whole(), func(c *Cohort) *keyed.Count { return &c.Users },
			"how many of a cohort are promised to answer and to be honest, at least 2: a sum of fewer is not "+
				"opened").Must(),
		keyed.Of("corrupt", rate, func(c *Cohort) *float64 { return &c.Corrupt },
			"the share of those who register for a session who may be corrupt; 0.1 if it is not "+
				"given").Or(d.Corrupt),
		keyed.Of("vanish", rate, func(c *Cohort) *float64 { return &c.Vanish },
			"the share of those who come to a session who may vanish before its end; 0.1 if it is not "+
				"given").Or(d.Vanish),
		keyed.Of("every", lasting(), func(c *Cohort) *time.Duration { return &c.Every },
			"sessions begin at multiples of it, from 1m to 168h; 1h if it is not given").Or(d.Every.String()),
		keyed.Of("wait", lasting(), func(c *Cohort) *time.Duration { return &c.Wait },
			"how long a session waits for those who registered, from 1s to half of every; 1m if it is not given").Or(d.Wait.String()),
		keyed.Of("tries", keyed.Whole(), func(c *Cohort) *keyed.Count { return &c.Tries },
			"how many sessions are held for the same decisions, if too few come, up to 1000; 3 if it is not "+
				"given").Or(int(d.Tries)),
		keyed.Of("otherwise", keyed.OneOf([]string{CohortDefault, CohortStop}),
			func(c *Cohort) *string { return &c.Otherwise },
			"what becomes of decisions for which no sum could be had: their rewards count as missing "+
				"(default), or the experiment ends (stop)").Or(d.Otherwise),
	}
}

// MinEvery is the shortest time between sessions.
const MinEvery = time.Minute

func (l *Experiment) checkCohort() error {
	if l.Cohort == (Cohort{}) {
		return l.fail("cohort", "is missing: trust %s needs cohorts of users", l.Trust)
	}
	if err := l.Gathering().Validate(); err != nil {
		return l.src.Wrap("cohort.users", err)
	}
	c := l.Terms()
	for _, rate := range []struct {
		name string
		is   float64
	}{{"corrupt", c.Corrupt}, {"vanish", c.Vanish}} {
		if !(rate.is > 0 && rate.is < 1) {
			return l.fail("cohort."+rate.name, "is %v, must be above 0 and below 1", rate.is)
		}
	}
	switch {
	case c.Every < MinEvery || c.Every > 7*24*time.Hour:
		return l.fail("cohort.every", "is %v, must be from %v to 168h", c.Every, MinEvery)
	case c.Wait < time.Second || c.Wait > c.Every/2:
		return l.fail("cohort.wait", "is %v, must be from 1s to half of every, %v", c.Wait, c.Every/2)
	case c.Tries < 1 || c.Tries > 1000:
		return l.fail("cohort.tries", "is %d, must be from 1 to 1000", c.Tries)
	case c.Otherwise != CohortDefault && c.Otherwise != CohortStop:
		return l.fail("cohort.otherwise", "is %q, must be %s or %s", keyed.Clip(c.Otherwise),
			CohortDefault, CohortStop)
	}
	if l.Split() && c.Otherwise != CohortStop {
		return l.fail("cohort.otherwise", "is %s, must be %s with policy %s: a row of which one arm has no "+
			"sum compares nothing", c.Otherwise, CohortStop, SplitPolicy)
	}
	if c.Corrupt+c.Vanish >= 1 {
		return l.fail("cohort", "corrupt and vanish are %v and %v, must be below 1 together",
			c.Corrupt, c.Vanish)
	}
	// those of whom users are left if as many as may be are corrupt or vanish
	n := int(math.Ceil(float64(c.Users)/(1-c.Corrupt-c.Vanish))) + 2
	if n > MaxCohort {
		return l.fail("cohort.users", "is %d, which takes %d who register: at most %d can",
			int(c.Users), n, MaxCohort)
	}
	of := c.of(l.Name, release.Noise{Name: privacy.NoiseLaplace, Num: 1, Den: 1})
	if _, _, err := of.Session([32]byte{1}, 0, 0, n); err != nil {
		return l.src.Wrap("cohort", err)
	}
	return nil
}

func (c Cohort) of(experiment string, n release.Noise) aggregate.Cohort {
	c = c.filled()
	return aggregate.Cohort{Experiment: experiment, Noise: n, Users: int(c.Users),
		Corrupt: c.Corrupt, Vanish: c.Vanish}
}

// Sessions is what the sessions of an experiment under trust secagg follow from.
func (l *Experiment) Sessions() (aggregate.Cohort, error) {
	n, err := l.Noise()
	return l.Cohort.of(l.Name, n), err
}
