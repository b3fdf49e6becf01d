package look

import (
	"compress/gzip"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A browser asks for a file once; whoever has another version is given the new one, and nothing is
// there but the files of the pages.
func TestAssets(t *testing.T) {
	a, err := NewAssets("/look/", Files())
	if err != nil {
		t.Fatal(err)
	}
	if at, err := a.Path("none.js"); err == nil {
		t.Errorf("a page may ask for %q", at)
	}
	at, err := a.Path("look.css")
	if err != nil || !regexp.MustCompile(`^/look/look\.css\?v=[0-9a-f]{12}$`).MatchString(at) {
		t.Fatalf("%q, %v", at, err)
	}
	ask := func(at string, set ...string) *http.Response {
		t.Helper()
		r := httptest.NewRequest("GET", at, nil)
		for i := 0; i < len(set); i += 2 {
			r.Header.Set(set[i], set[i+1])
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Result()
	}
	read := func(r io.Reader) string {
		t.Helper()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	got := ask(at)
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/css; charset=utf-8" ||
		!strings.Contains(got.Header.Get("Cache-Control"), "immutable") || read(got.Body) != CSS() {
		t.Errorf("%v", got)
	}
	if got := ask("/look/look.css?v=000000000000"); got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("an old address: %v", got.Header)
	}
	if again := ask("/look/look.css", "If-None-Match", got.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("what it has: %v", again.Status)
	}
	small := ask(at, "Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(small.Body)
	if err != nil || small.Header.Get("Content-Encoding") != "gzip" || read(z) != CSS() {
		t.Errorf("compressed: %v, %v", small.Header, err)
	}
	for _, at := range []string{"/look/", "/look/look.go", "/look/uplot/LICENSE", "/look/../look.css"} {
		if got := ask(at); got.StatusCode != 404 {
			t.Errorf("%s: %v", at, got.Status)
		}
	}
}

// Pages with a strict content security policy take these files, and nothing in them asks elsewhere:
// no script made of text, no style that a script writes as text, no address of another place.
func TestStrict(t *testing.T) {
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "uplot/LICENSE" {
			return err
		}
		b, err := fs.ReadFile(Files(), name)
		if err != nil {
			return err
		}
		text := string(b)
		if name == "uplot/uPlot.iife.min.js" { // its first comment says whose it is
			text = text[strings.Index(text, "*/"):]
		}
		for _, bad := range []string{"eval(", "new Function", "innerHTML", "cssText",
			`setAttribute("style"`, "http:",
			"https:", "url(", "@import"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Text on its ground is to be read: the contrast of WCAG 2.2 is 4.5 to 1 at least, and 3 to 1 for
// the lines of charts and the edges of what is operated, in both schemes.
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllStringSubmatch(CSS(), 2)
	token := regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{3,6});`)
	for i, scheme := range []string{"light", "dark"} {
		tokens := map[string]string{}
		for _, m := range token.FindAllStringSubmatch(blocks[i][1], -1) {
			tokens[m[1]] = m[2]
		}
		if len(tokens) < 20 {
			t.Fatalf("%s has %d tokens", scheme, len(tokens))
		}
		for _, c := range []struct {
			least float64
			on    string
			of    []string
		}{
			{4.5, "ground", []string{"ink", "quiet", "accent", "danger", "good"}},
			{4.5, "raised", []string{"ink", "quiet", "accent", "danger", "good"}},
			{4.5, "warn", []string{"ink", "quiet", "accent"}}, {4.5, "danger-wash", []string{"ink", "danger"}},
			{4.5, "wash", []string{"ink", "accent"}}, {4.5, "accent", []string{"on-accent"}},
			{3, "ground", []string{"strong", "warn-line", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"}},
		} {
			for _, name := range c.of {
				if r := contrast(t, tokens[name], tokens[c.on]); r < c.least {
					t.Errorf("%s: %s on %s is %.2f to 1, must be %v", scheme, name, c.on, r, c.least)
				}
			}
		}
	}
}

// contrast is WCAG's ratio of the relative luminances of two colours, #rgb or #rrggbb.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(c string) float64 {
		if len(c) == 4 {
			c = string([]byte{'#', c[1], c[1], c[2], c[2], c[3], c[3]})
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(c, "#"), 16, 32)
		if err != nil {
			t.Fatalf("%q is no colour: %v", c, err)
		}
		sum := 0.
		for i, weight := range []float64{.0722, .7152, .2126} {
			v := float64(n>>(8*i)&255) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum + .05
	}
	x, y := light(a), light(b)
	return max(x, y) / min(x, y)
}

// Who sees no red, no green or no blue tells the first four colours of series apart, in both
// schemes: ΔE (CIEDE2000) is 15 at least between each two, as everybody sees them too. Vision is Machado,
// Oliveira and Fernandes's model (2009) at full severity.
func TestPalette(t *testing.T) {
	visions := map[string][3][3]float64{
		"all":          {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":   {{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998}},
		"deuteranopia": {{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}},
		"tritanopia":   {{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900}},
	}
	worst := func(colours []string) (least float64, which string) {
		least = math.Inf(1)
		for name, m := range visions {
			for i, a := range colours {
				for _, b := range colours[:i] {
					if d := ciede2000(lab(t, m, a), lab(t, m, b)); d < least {
						least, which = d, name+": "+a+" and "+b
					}
				}
			}
		}
		return least, which
	}
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllStringSubmatch(CSS(), 2)
	token := regexp.MustCompile(`--s[1-4]: (#[0-9a-f]{6});`)
	for i, scheme := range []string{"light", "dark"} {
		var colours []string
		for _, m := range token.FindAllStringSubmatch(blocks[i][1], -1) {
			colours = append(colours, m[1])
		}
		if len(colours) != 4 {
			t.Fatalf("%s: %v", scheme, colours)
		}
		least, which := worst(colours)
		if least < 15 {
			t.Errorf("%s: ΔE is %.1f for %s", scheme, least, which)
		}
		t.Logf("%s: ΔE %.1f at least, for %s", scheme, least, which)
	}
	if least, _ := worst([]string{"#0072b2", "#d55e00", "#009e73", "#b8558f"}); least > 8 {
		t.Errorf("colours that were confused are ΔE %.1f apart", least)
	}
}

// lab is a colour of a screen as somebody sees it, in CIE L*a*b* under D65.
func lab(t *testing.T, vision [3][3]float64, colour string) [3]float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil {
		t.Fatalf("%q is no colour: %v", colour, err)
	}
	var linear, seen [3]float64
	for i := range linear {
		v := float64(n>>(8*(2-i))&255) / 255
		if linear[i] = v / 12.92; v > .04045 {
			linear[i] = math.Pow((v+.055)/1.055, 2.4)
		}
	}
	times := func(m [3][3]float64, v [3]float64) (out [3]float64) {
		for i, row := range m {
			out[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
		}
		return out
	}
	for i, v := range times(vision, linear) {
		seen[i] = min(1, max(0, v))
	}
	xyz := times([3][3]float64{{.4124564, .3575761, .1804375}, {.2126729, .7151522, .0721750},
		{.0193339, .1191920, .9503041}}, seen)
	f := func(v float64) float64 {
		if v > 216./24389 {
			return math.Cbrt(v)
		}
		return (24389./27*v + 16) / 116
	}
	x, y, z := f(xyz[0]/.95047), f(xyz[1]), f(xyz[2]/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// ciede2000 is the difference of two colours after Sharma, Wu and Dalal (2005), in their symbols.
func ciede2000(p, q [3]float64) float64 {
	const degrees = math.Pi / 180
	seven := func(c float64) float64 { return math.Sqrt(math.Pow(c, 7) / (math.Pow(c, 7) + math.Pow(25, 7))) }
	g := 1 + .5*(1-seven((math.Hypot(p[1], p[2])+math.Hypot(q[1], q[2]))/2))
	polar := func(v [3]float64) (c, h float64) {
		return math.Hypot(g*v[1], v[2]), math.Mod(math.Atan2(v[2], g*v[1])/degrees+360, 360)
	}
	c1, h1 := polar(p)
	c2, h2 := polar(q)
	turn := math.Mod(h2-h1+540, 360) - 180
	dl, dc, dh := q[0]-p[0], c2-c1, 2*math.Sqrt(c1*c2)*math.Sin(turn/2*degrees)
	l, c, h := (p[0]+q[0])/2, (c1+c2)/2, math.Mod(h1+turn/2+360, 360)
	cos := func(k, by float64) float64 { return math.Cos((k*h + by) * degrees) }
	tone := 1 - .17*cos(1, -30) + .24*cos(2, 0) + .32*cos(3, 6) - .2*cos(4, -63)
	sl := 1 + .015*(l-50)*(l-50)/math.Sqrt(20+(l-50)*(l-50))
	sc, sh := 1+.045*c, 1+.015*c*tone
	rt := -math.Sin(60*degrees*math.Exp(-(h-275)*(h-275)/625)) * 2 * seven(c)
	return math.Sqrt(dl*dl/(sl*sl) + dc*dc/(sc*sc) + dh*dh/(sh*sh) + rt*dc/sc*dh/sh)
}

// The formula is that of its authors' test data.
func TestCIEDE2000(t *testing.T) {
	for _, c := range []struct {
		p, q [3]float64
		want float64
	}{
		{[3]float64{50, 2.6772, -79.7751}, [3]float64{50, 0, -82.7485}, 2.0425},
		{[3]float64{50, -1.3802, -84.2814}, [3]float64{50, 0, -82.7485}, 1},
		{[3]float64{50, 2.5, 0}, [3]float64{73, 25, -18}, 27.1492},
		{[3]float64{60.2574, -34.0099, 36.2677}, [3]float64{60.4626, -34.1751, 39.4387}, 1.2644},
		{[3]float64{22.7233, 20.0904, -46.6940}, [3]float64{23.0331, 14.9730, -42.5619}, 2.0373},
	} {
		if got := ciede2000(c.p, c.q); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%v and %v: %.4f, want %v", c.p, c.q, got, c.want)
		}
	}
}
