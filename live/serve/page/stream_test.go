package page

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

const shop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person}
window: 1h
public: true
`

// pagesOf are the pages of an engine with an experiment that runs.
func pagesOf(t *testing.T) (*Pages, *serve.Engine) {
	t.Helper()
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
	if err != nil {
		t.Fatal(err)
	}
	x, err := decl.Reader{}.Parse("shop", []byte(shop))
	if err == nil {
		err = e.Create(t.Context(), *x)
	}
	if err == nil {
		err = e.Start(t.Context(), "shop")
	}
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Engine: e}), e
}

// A reader who does not read is dropped when there is no more room for it, and nobody waits for it;
// what is kept for who comes back is bounded, and who was away for longer is sent everything.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e := pagesOf(t)
		defer e.Close()
		defer p.Close()
		s, err := p.snapshot(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		slow, quick := p.join("shop", s.id), p.join("shop", s.id)
		room, got := cap(slow.in), 0
		for n := range mostEvents + 10 {
			if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			select {
			case text := <-quick.in:
				got += strings.Count(string(text), "event: update")
			default:
				t.Fatalf("second %d: who reads is sent nothing", n)
			}
		}
		all := p.stream("shop")
		all.mu.Lock()
		if len(all.open) != 1 || len(all.events) != mostEvents || got != mostEvents+10 {
			t.Errorf("%d are open, %d events are kept, %d were sent", len(all.open), len(all.events), got)
		}
		all.mu.Unlock()
		for range room {
			if _, ok := <-slow.in; !ok {
				t.Fatal("it was dropped too early")
			}
		}
		if _, ok := <-slow.in; ok {
			t.Error("it was not dropped")
		}
		late := p.join("shop", s.id)
		if text := string(<-late.in); strings.Count(text, "event: update") != 1 ||
			!strings.Contains(text, "live-state") {
			t.Errorf("who was away for long is sent %s", text)
		}
		p.leave("shop", quick)
		p.leave("shop", late)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.runs {
			t.Error("nobody is told")
		}
	})
}
