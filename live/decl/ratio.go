package decl

import (
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// A Ratio is what all decisions of an arm count of one number over what they count of another, such as revenue per
// order. It follows from sums that are released anyway, and costs nothing more. For it to have an
// interval, a decision counts of Of at most what it counts of Per, as shares of their ranges: of revenue from 0 to
// 500 and orders from 0 to 10 at most 50 an order.
type Ratio struct {
	Name string
	// Of and Per are names of metrics, or RewardName.
	Of, Per string
}

// RewardName is what ratios and guards call the reward.
const RewardName = "reward"

const twoRewards = "is %s, which is the reward and the name of a metric: give that another name"

// twoRewards says that a name is the reward's and a metric's.
func (l *Experiment) twoRewards(name string) bool {
	i, _ := l.numberOf(name)
	return i > 0 && name == RewardName
}

func ratioKeys() []keyed.Key[Ratio] {
	return []keyed.Key[Ratio]{
		keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(), "maxLength": keyed.MaxLabel},
			(*keyed.Decoder).Text), func(r *Ratio) *string { return &r.Name }, "of the ratio").Must(),
		keyed.Always("of", keyed.Filled(""), func(r *Ratio) *string { return &r.Of }, "a metric's name, or reward: what is divided").Must(),
		keyed.Always("per", keyed.Filled(""), func(r *Ratio) *string { return &r.Per }, "another's: what it is divided by").Must(),
	}
}

// A number is what a ratio can be of.
type number struct{ lo, hi, missing float64 }

// numberOf is one by its name: 0 is the reward, and metrics come after it; −1 is none.
func (l *Experiment) numberOf(name string) (i int, n number) {
	if i = slices.IndexFunc(l.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		m := l.Metrics[i]
		n.lo, n.hi = m.Range()
		n.missing = m.Default
		return i + 1, n
	}
	if name != RewardName {
		return -1, n
	}
	n.lo, n.hi = l.Range()
	n.missing = l.Default
	return 0, n
}

// RatioRange is from where to where a ratio can be.
func (l *Experiment) RatioRange(r Ratio) (lo, hi float64) {
	_, of := l.numberOf(r.Of)
	_, per := l.numberOf(r.Per)
	return 0, of.hi / per.hi
}

// Most is the end of the range of a number, by its place in PlayRatios.
func (l *Experiment) Most(number int) float64 {
	_, hi := l.Range()
	if number > 0 {
		_, hi = l.Metrics[number-1].Range()
	}
	return hi
}

// PlayRatios are the ratios as they are played.
func (l *Experiment) PlayRatios() (out []play.Ratio) {
	for _, r := range l.Ratios {
		of, _ := l.numberOf(r.Of)
		per, _ := l.numberOf(r.Per)
		out = append(out, play.Ratio{Of: of, Per: per})
	}
	return out
}

func (l *Experiment) checkRatios() error {
	switch n := len(l.Ratios); {
	case n > maxMetrics:
		return l.fail("ratios", "has %d, must have at most %d", n, maxMetrics)
	case n > 0 && l.TrustModel() != privacy.TrustCentral:
		return l.fail("ratios", "are for trust central: under trust %s a report is of one number", l.TrustModel())
	}
	names := map[string]bool{}
	for _, m := range l.Metrics {
		names[m.Name] = true
	}
	for i, r := range l.Ratios {
		at := fmt.Sprintf("ratios[%d]", i)
		switch {
		case !keyed.NameForm.MatchString(r.Name) || len(r.Name) > keyed.MaxLabel:
			return l.fail(at+".name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
				"underscore, the first a letter or digit", keyed.Clip(r.Name), keyed.MaxLabel)
		case r.Name == RewardName:
			return l.fail(at+".name", "is %q, must be another one: that is the reward", r.Name)
		case names[r.Name]:
			return l.fail(at+".name", "%q is the name of a metric or a ratio before: names must differ", r.Name)
		}
		names[r.Name] = true
		var both [2]number
		for j, of := range []struct{ key, name string }{{".of", r.Of}, {".per", r.Per}} {
			var known int
			if known, both[j] = l.numberOf(of.name); known < 0 {
				return l.fail(at+of.key, "is %q, must be the name of a metric, or %s", keyed.Clip(of.name), RewardName)
			}
			if l.twoRewards(of.name) {
				return l.fail(at+of.key, twoRewards, RewardName)
			}
			if both[j].lo != 0 {
				return l.fail(at+of.key, "is %s, whose range is from %v, must be from 0: a ratio has an interval where what "+
					"is divided is between 0 and a multiple of the other", of.name, both[j].lo)
			}
		}
		of, per := both[0], both[1]
		switch {
		case r.Of == r.Per:
			return l.fail(at+".per", "is %s, must be another one than of", r.Per)
		case slices.ContainsFunc(l.Ratios, func(o Ratio) bool { return o.Of == r.Per }):
			return l.fail(at+".per", "is %s, must be one that no ratio divides: that counts less", r.Per)
		case of.missing*per.hi > per.missing*of.hi:
			return l.fail(at+".of", "is %s, whose default %v is more than %v for each one of %s, must be at most %v: a decision "+
				"counts no more of it", r.Of, of.missing, of.hi/per.hi, r.Per, per.missing*of.hi/per.hi)
		}
	}
	return nil
}
