package decl

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// liveTrusts are the values of trust in a live experiment.
var liveTrusts = []string{string(privacy.TrustCentral), string(privacy.TrustTwoServer),
	string(privacy.TrustLocal), string(privacy.TrustSecAgg)}

// DefaultGrid is the grid of rewards that are split between two servers, if none is given.
const DefaultGrid = 1024

// maxGrid is the grid of release.Real: a finer one would be rounded there.
const maxGrid = 1 << 20

// A Helper is the server of another party that the service shares rewards with. Both are
// public: who reads the declaration knows whom to believe.
type Helper struct {
	URL string // https, or http to this machine
	Key string // its HpkeConfig, base64url without padding: clients have it from here
}

// gatheringKeys are the keys of experiments whose rewards the service does not see.
func gatheringKeys() []keyed.Key[Experiment] {
	gathers := func(l *Experiment) bool { return l.TrustModel() != privacy.TrustCentral }
	after := keyed.Of("report_after", lasting(), func(l *Experiment) *time.Duration { return &l.ReportAfter },
		"when a client reports, counted from its decision, whatever has happened by then; half the window if "+
			"it is not given")
	grid := keyed.Of("grid", keyed.Whole(), func(l *Experiment) *keyed.Count { return &l.Grid },
		"of two servers: rewards are rounded at random to multiples of a share of the range, a power of two; "+
			"1024 if it is not given, 1 is enough for rewards that are 0 or 1")
	own := func(k keyed.Key[Experiment], yes func(*Experiment) bool, value func(*Experiment) any) keyed.Key[Experiment] {
		given := k.Given
		k.Value = func(l *Experiment) (any, error) {
			if !yes(l) && !given(l) {
				return nil, nil
			}
			return value(l), nil
		}
		return k
	}
	trust := keyed.OneOf(liveTrusts)
	read := trust.Read
	trust.Read = func(d *keyed.Decoder, n ast.Node, at string, to *string) error {
		err := read(d, n, at, to)
		if *to == string(privacy.TrustCentral) { // what is not said is the same
			*to = ""
		}
		return err
	}
	return []keyed.Key[Experiment]{
		keyed.Of("trust", trust, func(l *Experiment) *string { return &l.Trust },
			"who has to be believed with rewards: this service (central; a release has one noise), that it and a helper which "+
				"another party runs do not collude (two-server; two noises, each enough for both), nobody (local; one for every "+
				"answer), that enough others of a cohort are honest and answer (secagg; about one for each cohort)").When(gathers),
		own(after, gathers, func(l *Experiment) any { return l.ReportDelay().String() }),
		own(grid, func(l *Experiment) bool { return l.TrustModel() == privacy.TrustTwoServer },
			func(l *Experiment) any { return l.ReportGrid() }),
		keyed.Of("helper", keyed.Mapped(helperKeys), func(l *Experiment) *Helper { return &l.Helper },
			"the other one of two servers, which another party runs"),
		keyed.Of("cohort", keyed.Mapped(cohortKeys), func(l *Experiment) *Cohort { return &l.Cohort },
			"how users who are online together are brought together"),
	}
}

func helperKeys() []keyed.Key[Helper] {
	return []keyed.Key[Helper]{
		keyed.Always("url", keyed.Filled(""), func(h *Helper) *string { return &h.URL }, "where it is; https").Must(),
		keyed.Always("key", keyed.Filled(""), func(h *Helper) *string { return &h.Key },
			"what clients encrypt its shares to: its HpkeConfig, base64url").Must(),
	}
}

// TrustModel says who has to be believed with rewards: TrustCentral, TrustTwoServer, TrustLocal or
// TrustSecAgg.
func (l *Experiment) TrustModel() privacy.Trust {
	if l.Trust == "" {
		return privacy.TrustCentral
	}
	return privacy.Trust(l.Trust)
}

// Gathering is how the sums of rewards are gathered; none under central trust.
func (l *Experiment) Gathering() release.Gathering {
	switch t := l.TrustModel(); t {
	case privacy.TrustCentral:
		return release.Gathering{}
	case privacy.TrustSecAgg:
		return release.Gathering{Trust: t, Users: int(l.Cohort.Users)}
	default:
		return release.Gathering{Trust: t}
	}
}

// ReportDelay is how long after a decision its client reports, whatever has happened; 0 under
// central trust.
func (l *Experiment) ReportDelay() time.Duration {
	switch {
	case l.ReportAfter != 0:
		return l.ReportAfter
	case l.TrustModel() == privacy.TrustCentral:
		return 0
	}
	return l.Window / 2
}

// ReportGrid is the largest number that a client splits between two servers, which stands for the
// upper end of the range; 0 under other trust.
func (l *Experiment) ReportGrid() int {
	switch {
	case l.TrustModel() != privacy.TrustTwoServer:
		return 0
	case l.Grid != 0:
		return int(l.Grid)
	}
	return DefaultGrid
}

// Noise is the whole noise that each of two servers adds, or each user, or a cohort together. There
// is none that others than the service add under central trust: an error.
func (l *Experiment) Noise() (release.Noise, error) {
	if l.TrustModel() == privacy.TrustCentral {
		return release.Noise{}, l.fail("trust", "is %s: the service alone adds noise", privacy.TrustCentral)
	}
	m, err := l.Mechanism()
	if err != nil {
		return release.Noise{}, err
	}
	n, err := release.NoiseOf(m)
	if err != nil {
		return release.Noise{}, l.src.Wrap("budget", fmt.Errorf("not under trust %s: %w", l.Trust, err))
	}
	return n, nil
}

// Mechanism is what the policy states that its releases need.
func (l *Experiment) Mechanism() (privacy.Mechanism, error) {
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return nil, err
	}
	return p.Mechanism(), nil
}

// whom says who is believed with the rewards.
func (l *Experiment) whom() string {
	switch l.TrustModel() {
	case privacy.TrustTwoServer:
		return fmt.Sprintf("; a reward is split between the service and the helper at %s: neither sees it "+
			"unless both do together, and each adds noise that is enough alone", l.Helper.URL)
	case privacy.TrustLocal:
		return "; a reward leaves its device with noise that is enough alone: nobody is trusted with it"
	case privacy.TrustSecAgg:
		return fmt.Sprintf("; the service sees the noisy sum of a cohort's rewards and nothing else, if %d of "+
			"the cohort are honest and answer", int(l.Cohort.Users))
	}
	return ""
}

// checkTrust says what is wrong with an experiment for arms whose rewards the service does not see.
func (l *Experiment) checkTrust() error {
	if !slices.Contains(liveTrusts, string(l.TrustModel())) {
		return l.fail("trust", "is %q, must be %s", keyed.Clip(l.Trust), strings.Join(liveTrusts, ", "))
	}
	t := l.TrustModel()
	for _, key := range []struct {
		name  string
		given bool
		of    []privacy.Trust
	}{
		{"report_after", l.ReportAfter != 0,
			[]privacy.Trust{privacy.TrustTwoServer, privacy.TrustLocal, privacy.TrustSecAgg}},
		{"grid", l.Grid != 0, []privacy.Trust{privacy.TrustTwoServer}},
		{"helper", l.Helper != Helper{}, []privacy.Trust{privacy.TrustTwoServer}},
		{"cohort", l.Cohort != Cohort{}, []privacy.Trust{privacy.TrustSecAgg}},
	} {
		if key.given && !slices.Contains(key.of, t) {
			words := make([]string, len(key.of))
			for i, x := range key.of {
				words[i] = string(x)
			}
			return l.fail(key.name, "is given, and trust is %s: it is for trust %s", t,
				strings.Join(words, ", "))
		}
	}
	if t == privacy.TrustCentral {
		return nil
	}
	switch {
	case len(l.Metrics) > 0:
		return l.fail("metrics", "are for trust central: under trust %s a report is of one number", t)
	case l.Exposure != "" && l.Exposure != ExposeDecide:
		return l.fail("exposure", "is %s, must be %s under trust %s: every decision reports at its time, and "+
			"one that does not count would be seen", l.Exposure, ExposeDecide, t)
	case l.Missing == MissingDrop:
		return l.fail("missing", "is %s, must be %s under trust %s: who did not report would be "+
			"seen", l.Missing,
			MissingDefault, t)
	case l.ReportAfter != 0 && !(l.ReportAfter >= min(MinWindow, l.Window/2) && l.ReportAfter < l.Window):
		return l.fail("report_after", "is %v, must be from %v to below the window, %v",
			l.ReportAfter, MinWindow,
			l.Window)
	}
	switch t {
	case privacy.TrustTwoServer:
		if err := l.checkHelper(); err != nil {
			return err
		}
	case privacy.TrustSecAgg:
		return l.checkCohort()
	}
	return nil
}

func (l *Experiment) checkHelper() error {
	if g := l.ReportGrid(); g < 1 || g > maxGrid || g&(g-1) != 0 {
		return l.fail("grid", "is %d, must be a power of two from 1 to %d", g, maxGrid)
	}
	h := l.Helper
	if h == (Helper{}) {
		return l.fail("helper", "is missing: trust %s needs the url and the key of the other server",
			privacy.TrustTwoServer)
	}
	if err := l.checkAddress("helper.url", h.URL, "https://helper.example.org", false); err != nil {
		return err
	}
	if _, err := h.Config(); err != nil {
		return l.fail("helper.key", "must be the helper's HpkeConfig, as it says it itself: %w", err)
	}
	return nil
}

// Config is the helper's key, to which clients encrypt.
func (h Helper) Config() (dap.Config, error) {
	var c dap.Config
	err := c.UnmarshalText([]byte(h.Key))
	return c, err
}

// Task is what the service and the helper of an experiment under trust two-server, and its clients,
// must have been told alike: its name, the number of its arms, the range of rewards and the
// default, the grid, the noise, and the helper with its key. Its id is the SHA-256 of these as
// JSON, so that who was told something else has another task. It does not have what may change on
// the way: windows, ends, shares of traffic.
func (l *Experiment) Task() (dap.Task, error) {
	if t := l.TrustModel(); t != privacy.TrustTwoServer {
		return dap.Task{}, l.fail("trust", "is %s: tasks are for trust %s", t, privacy.TrustTwoServer)
	}
	noise, err := l.Noise()
	if err != nil {
		return dap.Task{}, err
	}
	lo, hi := l.Range()
	text, err := json.Marshal(struct {
		Task, Name  string
		Arms        int
		Lo, Hi      float64
		Default     float64
		Grid        int
		Noise       string
		Helper, Key string
	}{"sotto two-server 1", l.Name, len(l.Arms), lo, hi, l.Default, l.ReportGrid(), noise.String(),
		l.Helper.URL,
		l.Helper.Key})
	if err != nil {
		return dap.Task{}, l.src.Wrap("reward", err)
	}
	return dap.Task{ID: sha256.Sum256(text), Grid: uint64(l.ReportGrid())}, nil
}

// checkGathered says whether the policy's releases can be gathered within the budget of a reward.
func (l *Experiment) checkGathered(p policy.Policy, each privacy.Budget) error {
	if !l.Gathering().On() {
		return nil
	}
	entry, err := l.Catalog.Find(l.Bandit(), l.Policy.Policy)
	if err != nil {
		return l.src.Wrap("policy", err)
	}
	params, err := entry.Complete(l.Policy.Params)
	if err == nil {
		err = entry.Gathers(params)
	}
	if err != nil {
		return l.src.Wrap("policy", err)
	}
	if _, err := l.Noise(); err != nil {
		return err
	}
	m, err := release.GatheredMechanism(p.Mechanism(), l.Gathering(), 1)
	if err != nil {
		return l.src.Wrap("trust", err)
	}
	if !m.Loss().Within(each) {
		return l.fail("budget", "is %v a reward, and a release under trust %s costs %v: say it in rho, as two "+
			"parties' normal noise has no better price", each, l.Trust, m.Loss().In(each))
	}
	return nil
}
