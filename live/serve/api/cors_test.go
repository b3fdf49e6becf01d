package api

import (
	"strings"
	"testing"
)

// A page of an origin that was named may ask, with cookies; of others the browser is told nothing
// that would let them; * lets all in, and no cookie.
func TestOrigins(t *testing.T) {
	w := shopOpen(t)
	const named, any, other = "https://shop.example", "*", "https://shop.example.evil"
	for _, x := range []struct {
		allowed, origin     string
		origins, credential string
		preflight           int
	}{
		{"", named, "", "", 403},
		{"", "", "", "", 405},
		{named, named, named, "true", 204},
		{named, other, "", "", 403},
		{named, "null", "", "", 403},
		{named, "", "", "", 405},
		{any, other, "*", "", 204},
		{any + " " + named, other, "*", "", 204},
		{any + " " + named, named, named, "true", 204},
	} {
		w.front.Origins = strings.Fields(x.allowed)
		for _, ask := range []string{"preflight", "post", "unknown"} {
			method, path, body, want := "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`, 200
			header := []string{}
			if x.origin != "" {
				header = append(header, "Origin", x.origin)
			}
			key := w.key
			switch ask {
			case "preflight":
				method, body, want, w.key = "OPTIONS", "", x.preflight, ""
				header = append(header, "Access-Control-Request-Method", "POST",
					"Access-Control-Request-Headers", "x-api-key")
			case "unknown": // an error can be read as well
				path, want = "/v1/nothing", 404
			}
			out := w.ask(method, path, body, header...)
			w.key = key
			h := out.Header()
			if out.Code != want || h.Get("Access-Control-Allow-Origin") != x.origins ||
				h.Get("Access-Control-Allow-Credentials") != x.credential {
				t.Errorf("%+v: %s: %d %v", x, ask, out.Code, h)
			}
			if (x.allowed != "") != strings.Contains(strings.Join(h.Values("Vary"), " "), "Origin") {
				t.Errorf("%+v: %s: Vary is %q", x, ask, h.Values("Vary"))
			}
			if ok := out.Code == 204; ok != strings.Contains(h.Get("Access-Control-Allow-Headers"),
				"X-API-Key") ||
				ok != (h.Get("Access-Control-Max-Age") != "") {
				t.Errorf("%+v: %s: %v", x, ask, h)
			}
		}
	}
	for _, text := range []string{"https://shop.example", "http://localhost:3000", "http://[::1]:8080",
		"*"} {
		if got, err := ParseOrigin(text); got != text || err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "shop.example", "https://", "https://shop.example/",
		"https://Shop.example",
		"https://a@shop.example", "https://shop.example:443", "http://shop.example:80", "https://*.example ",
		"null", "ftp://shop.example", "https://shop.example?x", "https://shop.example#x"} {
		if got, err := ParseOrigin(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}
