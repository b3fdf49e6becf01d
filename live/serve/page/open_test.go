package page

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Whoever may see a public experiment cannot open so many pages that none is left for who has a key.
func TestPagesAreLeftForKeys(t *testing.T) {
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := decl.Reader{}.Parse("declaration", []byte("name: shop\narms: [{name: red}, {name: blue}]\n"+
		"policy: {policy: dp-klucb}\nbudget: {epsilon: 1}\nunit: {of: person, assignments: 1}\n"+
		"reward: {range: [0, 1], default: 0}\nwindow: 1m\npublic: true\n"))
	if err == nil {
		err = e.Create(t.Context(), *x)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Engine: e, May: func(*http.Request) bool { return true }})
	defer p.Close()
	for _, c := range []struct {
		open int64
		key  serve.Key
		full bool
	}{
		{mostOpen - keptOpen - 1, serve.Key{}, false}, {mostOpen - keptOpen, serve.Key{}, true},
		{mostOpen - 1, serve.Key{Scopes: serve.ScopeRead}, false}, {mostOpen, serve.Key{Scopes: serve.ScopeRead}, true},
	} {
		p.open.Store(c.open)
		gone, cancel := context.WithCancel(serve.As(t.Context(), c.key))
		cancel() // who is let in leaves
		r := httptest.NewRequestWithContext(gone, http.MethodGet, "/experiments/shop/events", nil)
		r.SetPathValue("name", "shop")
		var full *FieldError
		if err := p.Events(httptest.NewRecorder(), r); errors.As(err, &full) != c.full || !c.full && err != nil {
			t.Errorf("%d are open: %v, must be refused: %v", c.open, err, c.full)
		}
		if got := p.open.Load(); got != c.open {
			t.Errorf("%d are open, must be %d", got, c.open)
		}
	}
}
