package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A witnessed store tells what is written to it.
type witnessed struct {
	store.Store
	saw func(c store.Commit)
}

func (s witnessed) Commit(ctx context.Context, c store.Commit) error {
	s.saw(c)
	return s.Store.Commit(ctx, c)
}

// doors are all ways to ask for a decision of a unit, whose consent stands for $ in a body.
func doors(w *world, unit string) (ask []func(consent string) string) {
	signed := client.SignUnit(w.keyWith(serve.ScopeSign), serve.AnyExperiment, unit, w.clock.Now().Add(time.Hour))
	browser, app := w.keyWith(browserScopes), w.keyOf("shop")[3]
	add := func(key, path, body string, header ...string) {
		ask = append(ask, func(consent string) string {
			out := w.ask(http.MethodPost, path, strings.NewReplacer("UNIT", unit, "SIGNED", signed, "$", consent).Replace(body),
				append([]string{"X-API-Key", key}, header...)...)
			if out.Code/100 != 2 {
				w.t.Errorf("%s: %d %s", path, out.Code, out.Body)
			}
			if got := out.Header().Get("Set-Cookie"); got != "" && consent == "false" {
				w.t.Errorf("%s gives a cookie", path)
			}
			return out.Body.String()
		})
	}
	const decisions, rank = "/v1/experiments/shop/decisions", "/v1/experiments/shop/rank"
	const arms = `"actions": [{"id": "red"}, {"id": "blue"}]`
	add(w.key, decisions, `{"unit": "UNIT", "consent": $}`)
	add(w.key, decisions, `{"unit": "UNIT", "context": {"consent": $}}`)
	add(browser, decisions, `{"unit_token": "SIGNED", "consent": $}`)
	add(browser, decisions, `{"consent": $}`, "X-Forwarded-Proto", "https")
	add(w.key, rank, `{"event": "UNIT", "consent": $, `+arms+`}`)
	add(app, theirs+"/rank", `{"eventId": "UNIT", "contextFeatures": [{"day": 1}, {"consent": $}], `+arms+`}`)
	for _, path := range []string{allFlags, allFlags + "/shop"} {
		add(w.key, path, `{"context": {"targetingKey": "UNIT", "consent": $}}`)
		add(browser, path, `{"context": {"targetingKey": "SIGNED", "consent": $}}`)
	}
	add(w.key, "/v1/feature/shop/eval", `{"user": {"key": "UNIT", "custom": {"consent": $}}}`)
	add(w.key, compat.GOFFAllPath, `{"evaluationContext": {"key": "UNIT", "custom": {"consent": $}}}`)
	add(browser, compat.GOFFAllPath, `{"evaluationContext": {"key": "SIGNED", "custom": {"consent": $}}}`)
	return ask
}

// Whoever does not consent is given the fallback at every door, alike whether the unit has a decision, was
// rewarded or is nobody; and nothing of it is written. Who does is, which shows that this test would see it.
func TestConsent(t *testing.T) {
	for _, known := range []bool{false, true} {
		written, meanwhile := 0, func(c store.Commit) {}
		w := newWorldOf(t, serve.Config{Curator: seeded, Store: func(ctx context.Context) (store.Store, error) {
			s, err := store.NewMemory().Open(ctx)
			return witnessed{s, func(c store.Commit) { meanwhile(c) }}, err
		}})
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "arms: [", "fallback: blue\narms: [", 1))
		w.want(200, "POST", "/v1/experiments/shop/start", "")
		if known {
			for range 3 { // red is that of the first decision
				w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*w.decide("ann").Decision, "1"))
			}
		}
		all := doors(w, "ann")
		w.pass(time.Second)
		meanwhile = func(c store.Commit) {
			for _, of := range c.Writes {
				written += len(of.Units) + len(of.Arms) + len(of.Hours) + len(of.Events) + len(of.Segments) + len(of.Lines)
			}
			written += len(c.Keys) + len(c.Audit)
		}
		info := w.want(200, "GET", "/v1/experiments/shop", "")
		for i, ask := range all {
			got := ask("false")
			if strings.Contains(got, `"decision":"`) || !strings.Contains(got, `"blue"`) {
				t.Errorf("door %d, known %v: %s", i, known, got)
			}
			if again := ask("false"); again != got {
				t.Errorf("door %d: %s, then %s", i, got, again)
			}
		}
		w.pass(time.Second)
		if after := w.want(200, "GET", "/v1/experiments/shop", ""); written > 0 || after != info {
			t.Errorf("known %v: %d parts were written:\n%s\nwas\n%s", known, written, after, info)
		}
		for i, ask := range all {
			written = 0
			ask("true")
			if w.pass(time.Second); i == 0 && !known && written == 0 {
				t.Error("who consents is not written")
			}
		}
	}
}

// Of two worlds, one in which a unit was decided for and rewarded, all doors say the same to it without consent.
func TestConsentTwoWorlds(t *testing.T) {
	said := func(known bool) (all []string) {
		signed := func(s string) string { return s[:min(len(s), 40)] } // by another key in each world
		w := shopOpen(t)
		if known {
			w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*w.decide("ann").Decision, "1"))
		}
		for _, ask := range doors(w, "ann") {
			all = append(all, word.ReplaceAllStringFunc(ask("false"), signed))
		}
		w.want(200, "POST", "/v1/experiments/shop/stop", `{"keep": "blue", "now": true, "confirm": "shop"}`)
		for _, ask := range doors(w, "ann") {
			all = append(all, word.ReplaceAllStringFunc(ask("false"), signed))
		}
		return all
	}
	a, b := said(false), said(true)
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("door %d: %s, of a unit that is known %s", i, a[i], b[i])
		}
	}
}

// Consent that is neither true nor false may mean no, and is refused by its name.
func TestConsentRefuses(t *testing.T) {
	w := shopOpen(t)
	for _, c := range [][2]string{
		{"/v1/experiments/shop/decisions", `{"unit": "ann", "consent": "6543"}`},
		{"/v1/experiments/shop/decisions", `{"unit": "ann", "context": {"consent": "6543"}}`},
		{"/v1/experiments/shop/rank", `{"context": {"consent": 6543}, "actions": [{"id": "red"}, {"id": "blue"}]}`},
		{allFlags, `{"context": {"targetingKey": "ann", "consent": "6543"}}`},
	} {
		out := w.ask("POST", c[0], c[1])
		if out.Code != 400 || !strings.Contains(out.Body.String(), "consent must be true or false") ||
			strings.Contains(out.Body.String(), "6543") {
			t.Errorf("%s %s: %d %s", c[0], c[1], out.Code, out.Body)
		}
	}
}
