package explore

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

// The limits of a request: what a page can show, and a machine play while somebody waits.
const (
	MaxArms     = 64
	MaxPolicies = 8
	MaxHorizon  = min(10_000_000_000, math.MaxInt/4)
	MaxRuns     = 65536
	MaxPoints   = 400
	maxLink     = 1 << 14 // bytes
	maxValues   = 1 << 25 // regrets that are kept: 256 MB
	// rounds, where each reward is drawn by itself
	maxOneByOne = 10_000_000
)

// A Request is what to play. Parse reads one from the fragment of a link, and Link writes it.
type Request struct {
	Arms []string // laws, as bandit.ParseLaw reads them; none where CSV is given
	// CSV is what the log is called whose rewards are the arms'. The log itself is not part of a
	// link.
	CSV      string
	Lo, Hi   float64 // the declared range of rewards
	Policies []Choice
	Budget   privacy.Budget // of the private ones: ε, (ε,δ) or ρ
	Trust    string         // continuous, central, local, two-server, shuffle or secagg
	Horizon  int
	Runs     int // the most, of each policy; there are fewer where the ranking is settled before
	Points   int // checkpoints, spaced evenly on a logarithmic axis
	Seed     uint64
	Level    float64 // probability with which anything that is said of the ranking is wrong
}

// A Choice is a policy by name, and those of its parameters that are given, as text.
type Choice struct {
	Policy   string
	Settings []Parameter
}

// A Parameter is a parameter with its value.
type Parameter struct{ Name, Value string }

// String is the choice as sotto run --policies reads it.
func (c Choice) String() string {
	s := c.Policy
	for _, p := range c.Settings {
		s += ":" + p.Name + "=" + p.Value
	}
	return s
}

// An Error is a field of a request with a value that it must not have.
type Error struct {
	Field, Value string
	Must         string // what is allowed, after "must be"
	Err          error  // instead of both: it says all that itself
}

// Error is one sentence.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Field + ": " + strings.TrimPrefix(e.Err.Error(), e.Field+": ")
	}
	value := e.Value
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		value = strconv.Quote(value)
	}
	return e.Field + " is " + value + ", must be " + e.Must
}

// Unwrap is what another package said.
func (e *Error) Unwrap() error { return e.Err }

func bad(field, value, must string, args ...any) error {
	const most = 80
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return &Error{Field: field, Value: value, Must: fmt.Sprintf(must, args...)}
}

// Default is what a page shows that was asked for nothing: what is recommended, beside a policy without
// privacy that it is as good as, and an older one that it is not.
func Default() Request {
	return Request{Arms: []string{"0.25", "0.375", "0.5", "0.625", "0.75"}, Lo: 0, Hi: 1,
		Policies: []Choice{{Policy: "dp-imed"}, {Policy: "kl-ucb"}, {Policy: "adap-klucb"}},
		Budget:   privacy.Pure{Epsilon: 1}, Trust: continuous, Horizon: 1_000_000, Runs: 1024, Points: 60,
		Seed: 1, Level: 0.05}
}

const continuous = "continuous"

func trusts() []string {
	return []string{continuous, string(privacy.TrustCentral), string(privacy.TrustLocal),
		string(privacy.TrustTwoServer), string(privacy.TrustShuffle), string(privacy.TrustSecAgg)}
}

// Parse reads a request as Link writes it. What is not given is as in Default, but that budgets are
// given together or not at all. Its errors are *Error.
func Parse(link string) (Request, error) {
	if len(link) > maxLink {
		return Request{}, bad("link", fmt.Sprint(len(link)), "at most %d bytes", maxLink)
	}
	values, err := url.ParseQuery(strings.TrimPrefix(link, "#"))
	if err != nil {
		return Request{}, &Error{Field: "link", Err: err}
	}
	r := Default()
	budget := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 {
			return Request{}, bad(name, strings.Join(values[name], " and "), "given once")
		}
		if err := r.read(name, values.Get(name), budget); err != nil {
			return Request{}, err
		}
	}
	if len(budget) > 0 {
		if r.Budget, err = privacy.NewBudget(budget); err != nil {
			return Request{}, &Error{Field: "budget", Err: err}
		}
	}
	return r, r.Check()
}

func (r *Request) read(name, text string, budget map[string]float64) (err error) {
	switch name {
	case "arms":
		r.Arms, r.CSV = outside(text), ""
	case "csv":
		r.CSV, r.Arms = text, nil
	case "range":
		lo, hi, ok := strings.Cut(text, ",")
		x, err1 := strconv.ParseFloat(strings.TrimSpace(lo), 64)
		y, err2 := strconv.ParseFloat(strings.TrimSpace(hi), 64)
		if !ok || err1 != nil || err2 != nil {
			return bad(name, text, "two numbers LO,HI, the lower one first")
		}
		r.Lo, r.Hi = x, y
	case "policies":
		if strings.TrimSpace(text) == "" {
			return &Error{Field: "policies", Err: errors.New("at least one is needed")}
		}
		r.Policies = nil
		for _, one := range strings.Split(text, ",") {
			parts := strings.Split(strings.TrimSpace(one), ":")
			c := Choice{Policy: parts[0]}
			for _, s := range parts[1:] {
				name, value, ok := strings.Cut(s, "=")
				if !ok {
					return bad("policies", one, "NAME:PARAMETER=VALUE:…")
				}
				c.Settings = append(c.Settings, Parameter{name, value})
			}
			r.Policies = append(r.Policies, c)
		}
	case "epsilon", "delta", "rho":
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !(x > 0) || math.IsInf(x, 1):
			return bad(name, text, "a number above 0 and finite")
		case name == "delta" && x >= 1:
			return bad(name, text, "a number above 0 and below 1")
		}
		budget[name] = x
	case "trust":
		r.Trust = text
	case "horizon":
		r.Horizon, err = count(name, text)
	case "runs":
		r.Runs, err = count(name, text)
	case "points":
		r.Points, err = count(name, text)
	case "seed":
		if r.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return bad(name, text, "a whole number from 0 to 2^64−1")
		}
	case "level":
		if r.Level, err = strconv.ParseFloat(text, 64); err != nil {
			return bad(name, text, "a number above 0 and below 1")
		}
	default:
		known := []string{"arms", "csv", "range", "policies", "epsilon", "delta", "rho", "trust",
			"horizon", "runs", "points", "seed", "level"}
		return bad("link", name, "%s", "made of "+strings.Join(known, ", ")+catalog.Hint(name, known))
	}
	return err
}

// count reads 1000, 10_000_000 and 1e7.
func count(field, text string) (int, error) {
	digits := strings.ReplaceAll(text, "_", "")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 1 && x <= math.MaxInt/4) || x != math.Trunc(x) || x > 1<<53 {
		return 0, bad(field, text, "a whole number from 1 on, such as 1000, 10_000_000 or 1e7")
	}
	return int(x), nil
}

// outside splits at commas that are not inside parentheses.
func outside(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// Check finds what is wrong with a request by itself; New finds the rest.
func (r *Request) Check() error {
	switch {
	case r.CSV == "" && (len(r.Arms) < 2 || len(r.Arms) > MaxArms):
		return bad("arms", strings.Join(r.Arms, ","), "from 2 to %d means or laws, divided by commas", MaxArms)
	case r.CSV != "" && r.Arms != nil:
		return bad("csv", r.CSV, "given instead of arms, not beside them")
	case !(math.Abs(r.Lo) <= bandit.MaxAbs && math.Abs(r.Hi) <= bandit.MaxAbs && r.Lo < r.Hi):
		return bad("range", fmt.Sprintf("%v,%v", r.Lo, r.Hi), "two finite numbers LO,HI, the lower one first, "+
			"at most %v in absolute value", bandit.MaxAbs)
	case len(r.Policies) < 1 || len(r.Policies) > MaxPolicies:
		return bad("policies", strconv.Itoa(len(r.Policies)), "from 1 to %d of them", MaxPolicies)
	case r.Budget == nil:
		return bad("budget", "", "epsilon, epsilon and delta, or rho")
	case !slices.Contains(trusts(), r.Trust):
		return bad("trust", r.Trust, "%s", strings.Join(trusts(), ", "))
	case !(r.Level > 0 && r.Level < 1):
		return bad("level", fmt.Sprint(r.Level), "a number above 0 and below 1")
	}
	if err := r.Budget.Validate(); err != nil {
		return &Error{Field: "budget", Err: err}
	}
	switch r.Budget.(type) {
	case privacy.Pure, privacy.ZCDP, privacy.Approx:
	default:
		return bad("budget", r.Budget.String(), "epsilon, epsilon and delta, or rho")
	}
	for _, text := range r.Arms {
		if _, err := bandit.ParseLaw(text); err != nil {
			return &Error{Field: "arms", Err: err}
		}
	}
	for _, f := range []struct {
		field          string
		n, least, most int
	}{{"horizon", r.Horizon, 1, MaxHorizon}, {"runs", r.Runs, first, MaxRuns},
		{"points", r.Points, 2, MaxPoints}} {
		if f.n < f.least || f.n > f.most {
			return bad(f.field, strconv.Itoa(f.n), "a whole number from %d to %d", f.least, f.most)
		}
	}
	if values := r.Runs * r.Points; values > maxValues/(2*len(r.Policies)) {
		return bad("runs", strconv.Itoa(r.Runs), "at most %d with %d points and %d policies",
			maxValues/(2*len(r.Policies)*r.Points), r.Points, len(r.Policies))
	}
	return nil
}

// Link is the request as Parse reads it: the fragment of a link, without #. What is as in Default
// is left out, but for what makes the request what it is.
func (r *Request) Link() string {
	var b strings.Builder
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name + "=" + escape(value))
	}
	d := Default()
	if r.CSV != "" {
		add("csv", r.CSV)
	} else {
		add("arms", strings.Join(r.Arms, ","))
	}
	if r.Lo != d.Lo || r.Hi != d.Hi {
		add("range", number(r.Lo)+","+number(r.Hi))
	}
	policies := make([]string, len(r.Policies))
	for i, c := range r.Policies {
		policies[i] = c.String()
	}
	add("policies", strings.Join(policies, ","))
	for _, f := range strings.Split(r.Budget.String(), ",") {
		name, value, _ := strings.Cut(f, "=")
		add(name, value)
	}
	if r.Trust != d.Trust {
		add("trust", r.Trust)
	}
	add("horizon", strconv.Itoa(r.Horizon))
	for _, f := range []struct {
		name string
		x, d int
	}{{"runs", r.Runs, d.Runs}, {"points", r.Points, d.Points}} {
		if f.x != f.d {
			add(f.name, strconv.Itoa(f.x))
		}
	}
	if r.Seed != d.Seed {
		add("seed", strconv.FormatUint(r.Seed, 10))
	}
	if r.Level != d.Level {
		add("level", number(r.Level))
	}
	return b.String()
}

// escape is url.QueryEscape, but that signs which a fragment may have stay as they are.
func escape(text string) string {
	return strings.NewReplacer("%2C", ",", "%3A", ":", "%3D", "=", "%28", "(", "%29", ")", "+", "%20").
		Replace(url.QueryEscape(text))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// A Refused is an error as pages are told it.
type Refused struct {
	Error string `json:"error"`
	Field string `json:"field,omitempty"` // of the request, empty if it is not one's fault
}

// Refusal is what a page is told of an error.
func Refusal(err error) Refused {
	var of *Error
	if errors.As(err, &of) {
		return Refused{err.Error(), of.Field}
	}
	return Refused{Error: err.Error()}
}
