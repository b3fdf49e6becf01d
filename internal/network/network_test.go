package network

import "testing"

func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "192.0.2.7:443": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32",
		"[::ffff:192.0.2.7]:443": "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64", "[2001:db8:1:2::9]:443": "2001:db8:1:2::/64",
		"[2001:db8:1:2::9]": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "[fe80::1%eth0]:1": "fe80::/64",
		"": "", "localhost": "", "192.0.2.7, 10.0.0.1": "", "unknown": "", "_hidden": "", "192.0.2": "",
		"192.0.2.7:": "", "/run/socket": "",
	} {
		p, ok := Of(text)
		if ok != (want != "") || ok && p.String() != want {
			t.Errorf("%q: %v, %v, want %q", text, p, ok, want)
		}
	}
}
