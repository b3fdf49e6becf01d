package audit

import (
	"context"
	"os"
	"strings"
	"testing"
)

func TestZZSelf(t *testing.T) {
	s := SelfAudit{Quick: true, Seed: 1, Report: func(done, all int, r SelfResult) { t.Logf("%d/%d %v", done, all, r) }}
	if only := os.Getenv("ONLY"); only != "" {
		s.Only = func(n string) bool { return strings.Contains(n, only) }
	}
	_, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
}
