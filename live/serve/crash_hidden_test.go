//go:build unix

package serve

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// crashReport reports on a decision of shop, in the open or hidden.
func crashReport(t *testing.T, e *Engine, name, token string, steps int64) (Status, error) {
	x, err := e.find(name)
	if err != nil {
		return "", err
	}
	if x.decl.TrustModel() == privacy.TrustCentral {
		token, id, _ := strings.Cut(token, ".")
		if x.decl.Event != "" { // what came of an event says a reward of 0 that comes after it
			if steps != isTracked {
				err = track(t, e, token+"."+id, steps)
			}
			if err != nil {
				return "", err
			}
			return e.Reward(t.Context(), name, Report{token, 0})
		}
		out, err := e.Outcomes(t.Context(), name, []Outcome{{Report: Report{token, float64(steps) * release.ExactStep}, ID: id}})
		if err != nil {
			return "", err
		}
		return out[0].Status, out[0].Err
	}
	k, ok := newSigner(x.tokenKey).read(token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if !ok || err != nil {
		return "", ErrToken
	}
	task, err := x.decl.Task()
	if err != nil {
		return "", err
	}
	helper, err := x.decl.Helper.Config()
	if err != nil {
		return "", err
	}
	leader, err := e.ReportConfig()
	if err != nil {
		return "", err
	}
	ticket := dap.Ticket{Arm: uint32(k.arm), Number: uint64(k.number), Token: raw}
	r, err := dap.NewReport(task, leader, helper, 0, ticket, uint64(steps)>>10, rand.Reader)
	if err != nil {
		return "", err
	}
	out, err := e.Reports(t.Context(), "shop", []Message{{Ticket: ticket.Marshal(), Body: r.Marshal()}})
	if err != nil {
		return "", err
	}
	return out[0].Status, out[0].Err
}

// crashHidden kills leaders of two servers so often; the helper lives on.
func crashHidden(t *testing.T, fault string, kills int) (w *witness, p *party, released int) {
	t.Helper()
	p = newParty(t, func() int64 { return noiseUnit << 20 })
	w = newWitness(strings.NewReplacer("dp-klucb, first: 10, alpha: 1.05", "dp-klucb-j, first: 10").Replace(crashShop) +
		p.terms())
	x := parse(t, w.text)
	var err error
	if p.task, err = x.Task(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	crashStore(t, store.SQLite(dir), w.text)
	if w.lives(t, dir, fault, kills) {
		released = w.judge(t, dir)
	}
	return w, p, released
}

// However often a leader of two servers is killed, also between a helper's answer and its commit, what is
// released is what was accepted, no report is lost, and the helper is never asked another question of the
// same decisions, nor draws twice.
func TestCrashTwoServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	kills := testkit.Size(10, 40)
	w, p, released := crashHidden(t, "", kills)
	for _, f := range w.faults {
		t.Error(f)
	}
	for b, n := range p.drawn {
		if n != 1 {
			t.Errorf("%+v was drawn %d times", b, n)
		}
	}
	t.Logf("%d kills, %d times ready, %d reports sent, %d lines shown, %d decisions released in %d shares", kills,
		w.starts, len(w.sent), len(w.lines), released, len(p.drawn))
	if released == 0 || len(p.drawn) == 0 || w.starts < kills/4 {
		t.Error("nothing was tried")
	}
}

// A store that loses reports is found.
func TestCrashTwoServerTwin(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	for range 20 {
		w, _, _ := crashHidden(t, "forgets reports", 6)
		for _, f := range w.faults {
			if strings.Contains(f, "accepted and defaults are") {
				t.Log(f)
				return
			}
		}
	}
	t.Error("it was not found")
}
