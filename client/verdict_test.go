package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
)

// The answer is that of the service's report, for keys that may read.
func TestVerdict(t *testing.T) {
	s := newService(t)
	if _, err := s.client().Verdict(t.Context(), "shop"); !errors.Is(err, client.ErrScope) {
		t.Errorf("a key that may not read: %v", err)
	}
	visitors := s.client()
	s.key = s.Key(serve.ScopeRead)
	c := s.client()
	if v, err := c.Verdict(t.Context(), "shop"); err != nil || v.Word != client.NotYet || v.Text == "" ||
		v.Leader != "" || v.Earned != nil {
		t.Errorf("before the first release: %+v, %v", v, err)
	}
	var got client.Verdict
	for i := range 40 {
		for j := range 20 {
			d := decide(t, visitors, fmt.Sprint("visitor ", i, " ", j))
			if _, err := visitors.Reward(t.Context(), "shop", d.Token, 1); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(2 * time.Hour)
		s.pass(time.Minute)
		var err error
		if got, err = c.Verdict(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		if got.Word == client.Ahead && got.Earned != nil {
			break
		}
	}
	if got.Word != client.Ahead || got.Leader == "" || len(got.Over) != 1 || got.Over[0].Interval == nil ||
		got.Over[0].Better || got.Within == nil || got.Earned == nil || !got.ConstantRates {
		t.Errorf("%+v", got)
	}
	if _, err := c.Verdict(t.Context(), "none"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("of no experiment: %v", err)
	}
	if _, err := c.Verdict(t.Context(), ".."); !errors.Is(err, client.ErrRequest) {
		t.Errorf("of no name: %v", err)
	}
}
