package liveaudit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/privacy"
)

// The faults of clients that decide by plans, whose exposures go by outcomes.
const (
	onSuccess fault = ", exposes who is rewarded"
	recounted fault = ", counts the exposure of who is rewarded again"
	forged    fault = ", forges the epoch by which who is rewarded was decided"
)

// leases is an experiment whose clients decide by a plan. Its units have names that the plan gives one arm and the
// other in turn.
var leases = shop{
	name: "service over HTTP, by leases", claim: privacy.Laplace{Scale: 1}.Loss(),
	declaration: strings.Replace(declaration, "default: 0}", "default: 0, event: checkout}", 1) +
		"leases: {for: 1s, delay: 9s}\n",
	meets: func(g *target, unit string, in bool) (name, arm string) {
		var p lease.Plan
		g.read(g.ask(http.MethodGet, page+"/plan", ""), &p)
		if len(p.Arms) < 2 {
			g.err = fmt.Errorf("the plan has %d arms", len(p.Arms))
			return "", ""
		}
		at, times := slices.Index(units, unit)%2, 1
		switch {
		case unit != "ann":
		case g.fault == forged && in:
			at = 1 - at
		case g.fault == onSuccess && !in:
			times = 0
		case g.fault == recounted && in:
			times = 2
		}
		arm = p.Arms[at].Arm
		for i := 0; times > 0 || name == ""; i++ {
			if name = fmt.Sprint(unit, " ", i); p.Decide(name) != at {
				name = ""
			} else if times--; times >= 0 {
				g.expose = fmt.Sprintf(`{"exposures":[{"experiment":"shop","targetingKey":%q,"epoch":%d,"arm":%q}]}`, name,
					p.Epoch, arm)
				g.ask(http.MethodPost, "/v1/exposures", g.expose)
			}
		}
		return name, arm
	},
	decide: arms.decide, // is not asked
	reward: func(_, name, reward string) (string, string) {
		return "/v1/track", fmt.Sprintf(`{"events":[{"name":"checkout","targetingKey":%q,"value":%s}]}`, name, reward)
	},
	released: func(g *target, arm string) float64 { return g.sumOf(arm, true) }, // of a broken copy there may be none
}
