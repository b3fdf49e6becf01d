package client

import (
	"os"
	"os/exec"
	"regexp"
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

// The lines of the page sign as SignUnit does.
func TestSignLines(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	const key = "sotto_0123456789abcdefghijklmnopqrstuv"
	for _, x := range []struct {
		name, first, before, after string
		args                       []string
	}{
		{"Python", "b64 = ", "import base64, hashlib, hmac, time\nSIGN = '" + key + "'\n", "print(unit_token)\n",
			[]string{"python3", "-c"}},
		{"shell", "text=", "set -e; SIGN=" + key + "\n", "echo $unit_token\n", []string{"sh", "-c"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, needs := range map[string][]string{"Python": {"python3"},
				"shell": {"sh", "basenc", "openssl", "sha256sum"}}[x.name] {
				if _, err := exec.LookPath(needs); err != nil && os.Getenv("CI") != "" {
					t.Fatal(err)
				} else if err != nil {
					t.Skip(needs + " is not there")
				}
			}
			block := regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(x.first) + `.*\n(    .*\n){2}`).Find(page)
			if block == nil {
				t.Fatal("the page has no such lines")
			}
			lines := regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(block), "")
			out, err := exec.CommandContext(t.Context(), x.args[0], x.args[1],
				x.before+lines+x.after).CombinedOutput()
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
