package client

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A signed unit is what Python's hmac and openssl make of the same.
func TestSignUnit(t *testing.T) {
	const want = "dmlzaXRvciA3.1000003600.H26AqZmYo01AAFvtcNhu2XVpRsYnkEsQTcu-rakQu5E"
	if got := SignUnit("sotto_0123456789abcdefghijklmnopqrstuv", "shop", "visitor 7",
		time.UnixMilli(1_000_003_600_999)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The scripts of examples/live sign as SignUnit does.
func TestSignScripts(t *testing.T) {
	const key = "sotto_0123456789abcdefghijklmnopqrstuv"
	for name, needed := range map[string][]string{"sign.py": {"python3"}, "sign.sh": {"sh", "basenc", "openssl", "sha256sum"}} {
		t.Run(name, func(t *testing.T) {
			for _, needs := range needed {
				if _, err := exec.LookPath(needs); err != nil && os.Getenv("CI") != "" {
					t.Fatal(err)
				} else if err != nil {
					t.Skip(needs + " is not there")
				}
			}
			c := exec.CommandContext(t.Context(), needed[0], "../examples/live/"+name, "shop", "visitor 7")
			c.Env = append(os.Environ(), "SIGN="+key)
			out, err := c.CombinedOutput()
			got := strings.TrimSpace(string(out))
			parts := strings.Split(got, ".")
			if err != nil || len(parts) != 3 {
				t.Fatalf("%s, %v", out, err)
			}
			until, err := strconv.ParseInt(parts[1], 10, 64)
			if want := SignUnit(key, "shop", "visitor 7", time.Unix(until, 0)); err != nil || got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if ahead := time.Until(time.Unix(until, 0)); ahead < 50*time.Minute || ahead > time.Hour {
				t.Errorf("it is good for %v", ahead)
			}
		})
	}
}
