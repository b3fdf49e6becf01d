package cli

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// sotto flagd writes the file whole, again when the plans have changed, and leaves it alone while the service is away.
func TestFlagdCommand(t *testing.T) {
	var mu sync.Mutex
	answer, asked := `{"flags":{"a":1}}`, 0
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		answer = text
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if r.URL.Path != "/v1/flagd" || r.Header.Get("Authorization") != "Bearer sotto_key" || answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer s.Close()
	t.Setenv("SOTTO_SERVER", s.URL)
	t.Setenv("SOTTO_KEY", "sotto_key")
	file := filepath.Join(t.TempDir(), "flags.json")
	has := func(want string) {
		t.Helper()
		var got []byte
		for range 1000 {
			if got, _ = os.ReadFile(file); strings.Join(strings.Fields(string(got)), "") == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("the file has %s, must have %s", got, want)
	}
	tryCommand(t, exitOK, "", "flagd", file, "--once")
	has(`{"flags":{"a":1}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	var errs strings.Builder
	go func() {
		c := flagdCommand{File: file, Every: leastEvery, asks: asks{Server: s.URL}}
		ended <- c.Run(ctx, streams{err: &errs})
	}()
	say(`{"flags":{"a":2}}`)
	has(`{"flags":{"a":2}}`)
	say("")
	mu.Lock()
	before := asked
	mu.Unlock()
	for n := before; n < before+3; {
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		n = asked
		mu.Unlock()
	}
	has(`{"flags":{"a":2}}`)
	say(`{"flags":{"a":3}}`)
	has(`{"flags":{"a":3}}`)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || strings.Count(errs.String(), "stays as it is") != 1 {
		t.Errorf("%v, said %s", err, &errs)
	}
	say("")
	for want, args := range map[string][]string{
		"--every is 1ms, must be at least 100ms": {file, "--every", "1ms"},
	} {
		if _, errs := tryCommand(t, exitUsage, "", append([]string{"flagd"}, args...)...); !strings.Contains(errs, want) {
			t.Errorf("%s", errs)
		}
	}
	tryCommand(t, exitFailed, "", "flagd", filepath.Join(t.TempDir(), "x"), "--once")
	say(`{}`)
	tryCommand(t, exitUsage, "", "flagd", filepath.Join(t.TempDir(), "none", "x"), "--once")
}
