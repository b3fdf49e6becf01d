package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
)

// Visitors come to all three experiments, each once, and the table has what they and the best fixed action earn.
func TestVisitors(t *testing.T) {
	s := servetest.New(t, serve.Config{})
	var out strings.Builder
	of := study{url: s.URL, key: s.Key(serve.ScopeAdmin), visitors: 60, rate: 1e4, clients: 8, window: time.Minute, seed: 1}
	if err := of.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`\| 0\.0\d+ · -?\d+ % \|\n`).FindAllString(out.String(), -1)); n != 4 ||
		!strings.Contains(out.String(), "60 visitors") || strings.Contains(out.String(), "when its window was over") {
		t.Errorf("%s", out.String())
	}
	for _, w := range ways() {
		info, err := s.Engine.Get(t.Context(), w.name+"-1")
		if err != nil || info.Contextual.Decisions != 60 {
			t.Errorf("%s: %+v, %v", w.name, info.Contextual, err)
		}
	}
	of.clients = 0
	if err := of.run(t.Context(), &out); err == nil || err.Error() != "-clients is 0, must be at least 1" {
		t.Error(err)
	}
}
