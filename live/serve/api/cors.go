package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// AnyOrigin stands for all pages.
const AnyOrigin = "*"

// ParseOrigin reads an origin as browsers write it, such as https://shop.example or
// http://localhost:3000, or AnyOrigin.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case text == AnyOrigin:
		return text, nil
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "",
		text != u.Scheme+"://"+u.Host, text != strings.ToLower(text):
		return "", fmt.Errorf("is %q, must be an origin such as https://shop.example, or *", text)
	case u.Scheme == "http" && u.Port() == "80", u.Scheme == "https" && u.Port() == "443":
		return "", fmt.Errorf("is %q, must be without the port that browsers leave out", text)
	}
	return text, nil
}

// How a page asks before it asks, and how long the answer is good, in seconds.
const (
	corsMethods = "GET, POST"
	corsHeaders = "Authorization, Content-Type, If-None-Match, X-API-Key"
	corsAge     = "600"
)

// errOrigin is what a page of another origin is told.
var errOrigin = errors.New("pages of this origin may not ask: sotto serve --allow-origin names those that may")

// allowed says whether pages of an origin may ask.
func (f *front) allowed(origin string) bool {
	return slices.Contains(f.Origins, AnyOrigin) || slices.Contains(f.Origins, origin)
}

// own says whether a request is from no page, a page of the service itself, or one that may ask.
func (f *front) own(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin == "" || host == r.Host || f.allowed(origin)
}

// cross answers what a browser asks before a page of another origin may ask, and adds to other
// answers that the page may read them. Cookies are let in from origins that are named, and never
// by AnyOrigin.
func (f *front) cross(w http.ResponseWriter, r *http.Request) (answered bool) {
	h, origin := w.Header(), r.Header.Get("Origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if len(f.Origins) > 0 {
		h.Add("Vary", "Origin")
	}
	if origin == "" {
		return false
	}
	if !f.allowed(origin) {
		if preflight {
			f.answerTo(w, r, refused(http.StatusForbidden, "", errOrigin.Error()))
		}
		return preflight
	}
	if slices.Contains(f.Origins, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	} else {
		h.Set("Access-Control-Allow-Origin", AnyOrigin)
	}
	if !preflight {
		h.Set("Access-Control-Expose-Headers", "Date, ETag, Retry-After")
		return false
	}
	h.Add("Vary", "Access-Control-Request-Method")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
