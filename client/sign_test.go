package client

import (
	"testing"
	"time"
)

// A signed unit is what three lines of Python, and of a shell with openssl, make of the same.
func TestSignUnit(t *testing.T) {
	const want = "dmlzaXRvciA3.1000003600.H26AqZmYo01AAFvtcNhu2XVpRsYnkEsQTcu-rakQu5E"
	if got := SignUnit("sotto_0123456789abcdefghijklmnopqrstuv", "shop", "visitor 7",
		time.UnixMilli(1_000_003_600_999)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
