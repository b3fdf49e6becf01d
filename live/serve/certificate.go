package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

// A Certificate is the tree by which the total of a transcript follows, for a checker that knows nothing of this
// program: each release with its price, each step with the rule that allows it, and what no transcript can show.
// contrib/check.py is such a checker, and docs/certificate.md says what each field means.
type Certificate struct {
	Version    int              `json:"certificate"`
	Kind       string           `json:"kind"` // arms, contexts, joint-contexts or trial
	Trust      privacy.Trust    `json:"trust"`
	Program    string           `json:"program,omitempty"` // the version that wrote the first line
	Transcript CertifiedLines   `json:"transcript"`
	Unit       CertifiedUnit    `json:"unit"`
	Arms       []string         `json:"arms,omitempty"` // with those that were added
	Cells      []string         `json:"cells,omitempty"`
	Sums       []CertifiedSum   `json:"sums"`
	Currency   string           `json:"currency"` // epsilon or rho
	Budget     float64          `json:"budget"`   // of a unit, as declared, with all sums
	Releases   []CertifiedPrice `json:"releases"`
	Total      CertifiedNode    `json:"total"`
	// Conversions are what the total is in other currencies.
	Conversions []CertifiedConversion `json:"conversions"`
	// Rules are those that are used, and CannotShow what has to be believed besides, by their names.
	Rules      map[string]CertifiedRule `json:"rules"`
	CannotShow map[string]CertifiedRule `json:"cannot_show"`
}

// CertifiedLines say which transcript it is.
type CertifiedLines struct {
	Experiment string `json:"experiment"` // of a trial its rule
	Lines      int    `json:"lines"`
	Tip        string `json:"tip"` // the hash of the last line, in hex
}

// A CertifiedUnit is whose rewards are protected, in so many decisions.
type CertifiedUnit struct {
	Of          string `json:"of"`
	Assignments int    `json:"assignments"`
}

// A CertifiedSum is what is summed up: the reward, a metric, a rule, or the vectors of decisions with contexts.
type CertifiedSum struct {
	Name  string     `json:"name"`
	Range [2]float64 `json:"range"` // the declared one, which is 1 wide in a release
}

// A CertifiedPrice is a released sum. Decisions are the first, and that after the last, of the row that it is of,
// counted by arm; N of them are in it.
type CertifiedPrice struct {
	Line      int             `json:"line"`
	Sum       string          `json:"sum"`
	Arm       string          `json:"arm,omitempty"`
	Cell      string          `json:"cell,omitempty"`
	Decisions [2]int          `json:"decisions"`
	N         int             `json:"n"`
	Slot      int             `json:"slot"`
	Mechanism json.RawMessage `json:"mechanism"`
	// Square is the square of the sensitivity, in units of the range.
	Square float64  `json:"sensitivity_squared"`
	Rules  []string `json:"rules"`
	Price  float64  `json:"price"`
}

// A CertifiedNode is a step: its price follows by its rule from those of what is below it.
type CertifiedNode struct {
	Rule     string          `json:"rule"` // group, filter, parallel or adaptive
	Price    float64         `json:"price"`
	Times    int             `json:"times,omitempty"` // group: decisions of a unit
	Cap      float64         `json:"cap,omitempty"`   // filter
	Slot     *int            `json:"slot,omitempty"`  // adaptive
	Of       []CertifiedNode `json:"of,omitempty"`
	Releases []int           `json:"releases,omitempty"` // adaptive: from 0, in the order of the lines
}

// A CertifiedConversion is the total in another currency.
type CertifiedConversion struct {
	Rule    string  `json:"rule"`
	Rho     float64 `json:"rho,omitempty"`
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`
	Alpha   float64 `json:"alpha,omitempty"` // the order of the Rényi divergence that gives it
}

// A CertifiedRule is what is used or believed, with where it is proved and tested.
type CertifiedRule struct {
	Statement string           `json:"statement"`
	Proof     []CertifiedPlace `json:"proof,omitempty"`
	Test      []CertifiedPlace `json:"test"`
}

// A CertifiedPlace is a line of a file of this project, and a name that is in it.
type CertifiedPlace struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
}

const certificateVersion = 1

// ErrNoCertificate is matched by the error for a transcript that holds, and of which no certificate can be made.
var ErrNoCertificate = errors.New("there is no certificate")

//go:embed rules.json
var rulesJSON []byte

// rulesOf are all rules, and all that has to be believed.
func rulesOf() (out struct {
	Rules, CannotShow map[string]CertifiedRule
}, err error) {
	return out, json.Unmarshal(rulesJSON, &out)
}

// Prove is the certificate of a transcript that Replay plays again, or trial.Replay if it is of a trial. Errors are
// theirs, or match ErrNoCertificate.
func Prove(in io.Reader, known catalog.Catalog) (*Certificate, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if ofTrial(text) {
		if _, err := trial.Replay(bytes.NewReader(text)); err != nil {
			return nil, err
		}
		return certify(text, known, nil)
	}
	r, err := Replay(bytes.NewReader(text), known)
	if err != nil {
		return nil, err
	}
	return certify(text, known, r)
}

// certify believes what it reads. Of r it takes how many lines there are, and the hash of the last; a trial has none.
func certify(text []byte, known catalog.Catalog, r *Replayed) (*Certificate, error) {
	c := &Certificate{Version: certificateVersion, Kind: "arms", Releases: []CertifiedPrice{},
		Conversions: []CertifiedConversion{}, Rules: map[string]CertifiedRule{}, CannotShow: map[string]CertifiedRule{}}
	p := prover{Certificate: c, continua: map[int]privacy.Mechanism{}}
	if ofTrial(text) {
		return c, p.certifyTrial(text)
	}
	for e, err := range entries((&Replayed{}).read(bytes.NewReader(text))) {
		if err != nil {
			return nil, err
		}
		p.line++
		if e.header != nil {
			err = p.open(e.header, known)
		} else {
			err = p.add(&e)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	c.Transcript.Lines, c.Transcript.Tip = r.Lines, r.Tip
	return c, p.close()
}

// A prover makes a certificate line by line.
type prover struct {
	*Certificate
	board    board
	line     int
	heads    []int // by arm, the decisions that lines have taken
	asked    []CohortNote
	each     privacy.Budget
	continua map[int]privacy.Mechanism // of slots that are paid for
	believed []string
}

func no(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoCertificate}, args...)...)
}

func (p *prover) open(h *header, known catalog.Catalog) (err error) {
	x, err := (decl.Reader{Catalog: known}).Parse("declaration", h.Declaration)
	if err != nil {
		return err
	}
	p.Program, p.Trust, p.Transcript.Experiment = h.Program, x.TrustModel(), x.Name
	p.Unit = CertifiedUnit{x.Unit.Of, x.Assignments()}
	if err := p.pays(x.Total()); err != nil {
		return err
	}
	if p.each, err = x.EachTotal(); err != nil {
		return err
	}
	lo, hi := x.Range()
	p.Sums = []CertifiedSum{{decl.RewardName, [2]float64{lo, hi}}}
	for _, m := range x.Metrics {
		lo, hi := m.Range()
		p.Sums = append(p.Sums, CertifiedSum{m.Name, [2]float64{lo, hi}})
	}
	if x.Contextual != nil {
		if p.Kind = "contexts"; x.Contextual.Joint() {
			p.Kind = "joint-contexts"
		}
		for _, r := range x.Contextual.Rules {
			p.Sums = append(p.Sums, CertifiedSum{r.Name, [2]float64{0, r.Clip}})
		}
	}
	for _, a := range x.Arms {
		p.Arms = append(p.Arms, a.Name)
	}
	p.believed = []string{"assignments", "clipping", "closing", "complete", "disjoint", "noise"}
	for name, yes := range map[string]bool{
		"exposure": x.Exposure != "" && x.Exposure != decl.ExposeDecide, "norms": x.Contextual != nil,
		"own-action": x.Contextual.Joint(), "reports": x.Missing == decl.MissingDrop, "trust": x.Trust != "",
	} {
		if yes {
			p.believed = append(p.believed, name)
		}
	}
	p.Cells = x.Cells()
	p.board, err = newBoard(x)
	p.heads = make([]int, len(p.board.queues))
	return err
}

// pays sets the currency by the whole budget of a unit.
func (p *prover) pays(budget privacy.Budget) error {
	switch b := budget.(type) {
	case privacy.Pure:
		p.Currency, p.Budget = "epsilon", b.Epsilon
	case privacy.ZCDP:
		p.Currency, p.Budget = "rho", b.Rho
	default:
		return no("the budget is %v, must be in epsilon or in rho", b)
	}
	return nil
}

// A certifiedRow is a row of decisions of a line: those of an arm that follow each other.
type certifiedRow struct {
	arm, sums, gone int
}

// rows are those of a line.
func (in *line) rows(celled bool) (out []certifiedRow) {
	add := func(arm, gone int, released bool, cells []int) {
		row := certifiedRow{arm: arm, gone: gone}
		if released {
			row.sums = 1
		}
		if released && celled {
			row.sums = len(cells)
		}
		out = append(out, row)
	}
	if in.N != nil {
		add(0, 0, true, nil)
	}
	for _, r := range in.Plays {
		add(r.Arm, r.Gone, r.Release && !r.Held, r.Cells)
	}
	for _, r := range in.Ahead {
		add(r.Arm, r.Gone, true, r.Cells)
	}
	for _, r := range in.Rest {
		add(r.Arm, r.Gone, r.Rounds > 0, r.Cells)
	}
	return out
}

// spans are the rows of decisions that a line's sums are of, each with its first and that after its last. heads are
// by arm the decisions that lines above have taken, and become those with this line.
func (b *board) spans(in *line, amounts []amount, heads []int) ([][2]int, error) {
	rows, of := in.rows(b.cells != nil), len(amounts)/(1+len(b.names)) // of each sum
	at, spans := 0, make([][2]int, of)
	for _, row := range rows {
		if row.arm < 0 || row.arm >= len(heads) {
			return nil, errReleases
		}
		start, n := heads[row.arm], row.gone
		for i := range row.sums {
			n += amounts[at+i].N
		}
		for range row.sums {
			spans[at], at = [2]int{start, start + n}, at+1
		}
		heads[row.arm] += n
	}
	if in.Off != nil && in.Gone > 0 && *in.Off >= 0 && *in.Off < len(heads) {
		heads[*in.Off] += in.Gone
	}
	return slices.Repeat(spans, 1+len(b.names)), nil
}

func (p *prover) add(e *entry) error {
	in := &e.line
	if e.cohort != nil && e.cohort.Asked > 0 {
		p.asked = append(p.asked, *e.cohort)
	}
	amounts, err := p.board.released(in)
	if err != nil {
		return err
	}
	spans, err := p.board.spans(in, amounts, p.heads)
	if err != nil {
		return err
	}
	for i, a := range amounts {
		if err := p.release(a, spans[i]); err != nil {
			return err
		}
	}
	before := len(p.board.queues)
	if err := p.board.grows(in); err != nil {
		return err
	}
	if len(p.board.queues) > before {
		p.heads = append(p.heads, 0)
		p.Arms = append(p.Arms, e.change.Add[0].Name)
	}
	return nil
}

// squares are the squares of sensitivities, by the kinds of mechanisms that can be certified.
var squares = map[string]float64{"laplace": 1, "gaussian": 1, "aggregated": 1, "vector-gaussian": 4,
	"vector-laplace": 4, "gram-gaussian": 4.5, "gram-tree": 8}

func (p *prover) release(a amount, span [2]int) error {
	out := CertifiedPrice{Line: p.line, Sum: p.Sums[a.further].Name, Decisions: span, N: a.N, Slot: a.Slot}
	if len(p.Arms) > 0 {
		out.Arm = p.Arms[a.Arm]
	}
	if a.cell >= 0 {
		out.Cell = p.Cells[a.cell]
	}
	kind := a.Mechanism.Kind()
	var known bool
	if out.Square, known = squares[kind]; !known {
		return no("a release is through %v, which the rules do not price", a.Mechanism)
	}
	if g, ok := a.Mechanism.(privacy.Aggregated); ok && g.Noise != privacy.NoiseLaplace && g.Noise != privacy.NoisePolya {
		return no("a release is gathered with %s noise, which the rules do not price", g.Noise)
	} else if ok {
		kind = string(g.Noise) + "-" + string(g.Trust)
	}
	out.Rules = []string{kind}
	loss := a.Mechanism.Loss()
	pure := !math.IsInf(loss.Pure(), 1)
	switch {
	case p.Currency == "epsilon" && pure:
		out.Price = loss.Pure()
	case p.Currency == "rho" && pure:
		out.Price, out.Rules = privacy.LossOf(privacy.Pure{Epsilon: loss.Pure()}).ZCDP(), append(out.Rules, "pure-to-zcdp")
	case p.Currency == "rho":
		out.Price = loss.ZCDP()
	default:
		return no("a release is through %v, which has no price in %s", a.Mechanism, p.Currency)
	}
	if a.Mechanism.Continual() {
		if m, paid := p.continua[a.Slot]; paid && m == a.Mechanism {
			out.Price, out.Rules = 0, []string{"prefix"}
		}
		p.continua[a.Slot] = a.Mechanism
	}
	var err error
	if out.Mechanism, err = json.Marshal(a.Mechanism); err == nil {
		p.Releases = append(p.Releases, out)
	}
	return err
}

// budget is a price in the currency.
func (p *prover) budget(x float64) privacy.Budget {
	if p.Currency == "epsilon" {
		return privacy.Pure{Epsilon: x}
	}
	return privacy.ZCDP{Rho: x}
}

func (p *prover) number(b privacy.Budget) float64 {
	switch b := b.(type) {
	case privacy.Pure:
		return b.Epsilon
	case privacy.ZCDP:
		return b.Rho
	}
	return math.Inf(1)
}

// close adds the releases up, and names what was used.
func (p *prover) close() error {
	for _, n := range p.asked {
		released := func(r CertifiedPrice) bool {
			return r.Arm == p.Arms[n.Arm] && r.Decisions == [2]int{n.Start, n.End}
		}
		if !slices.ContainsFunc(p.Releases, released) {
			return no("a session for decisions %d to %d of arm %q was held, and no release is of them: its noise "+
				"is not in the transcript", n.Start, n.End-1, p.Arms[n.Arm])
		}
	}
	at := map[int]int{} // by slot
	parallel := CertifiedNode{Rule: "parallel", Of: []CertifiedNode{}}
	for i, r := range p.Releases {
		k, ok := at[r.Slot]
		if !ok {
			k = len(parallel.Of)
			at[r.Slot] = k
			parallel.Of = append(parallel.Of, CertifiedNode{Rule: "adaptive", Slot: &r.Slot})
		}
		node := &parallel.Of[k]
		if node.Releases = append(node.Releases, i); node.Price == 0 {
			node.Price = r.Price
		} else if r.Price > 0 {
			sum, err := privacy.Sequential(p.budget(node.Price), p.budget(r.Price))
			if err != nil {
				return err
			}
			node.Price = p.number(sum)
		}
		for _, rule := range r.Rules {
			p.Rules[rule] = CertifiedRule{}
		}
		parallel.Price = max(parallel.Price, node.Price)
	}
	filter := CertifiedNode{Rule: "filter", Price: parallel.Price, Cap: p.number(p.each), Of: []CertifiedNode{parallel}}
	p.Total = CertifiedNode{Rule: "group", Times: p.Unit.Assignments, Of: []CertifiedNode{filter}}
	if filter.Price > 0 {
		all, err := privacy.Group(p.budget(filter.Price), p.Unit.Assignments)
		if err != nil {
			return err
		}
		p.Total.Price = p.number(all)
		p.Conversions = append(p.Conversions, p.converted(p.Total.Price))
	}
	for _, rule := range []string{"adaptive", "parallel", "filter", "group"} {
		p.Rules[rule] = CertifiedRule{}
	}
	for _, conversion := range p.Conversions {
		p.Rules[conversion.Rule] = CertifiedRule{}
	}
	return p.cite()
}

// certifiedDelta is that at which a total in ρ is said as (ε,δ).
const certifiedDelta = 1e-6

// converted says a total in the other currency: ε as ρ, and ρ as (ε,δ), by an order near the best one. Each
// order gives a bound that holds.
func (p *prover) converted(total float64) CertifiedConversion {
	if p.Currency == "epsilon" {
		return CertifiedConversion{Rule: "pure-to-zcdp", Rho: privacy.LossOf(privacy.Pure{Epsilon: total}).ZCDP()}
	}
	above := 1.0
	for range 64 { // to where ρ(α−1)² = log(1/(αδ))
		above = math.Sqrt(max(1e-9, -math.Log(certifiedDelta)-math.Log1p(above)) / total)
	}
	alpha := 1 + above
	const raise = 1 + 1e-12 // beyond what rounding takes away
	epsilon := privacy.RenyiToApprox(alpha, float64(total*alpha), certifiedDelta) * raise
	return CertifiedConversion{Rule: "zcdp-to-approx", Epsilon: epsilon, Delta: certifiedDelta, Alpha: alpha}
}

// cite says where what is used is proved, and what is believed.
func (p *prover) cite() error {
	all, err := rulesOf()
	if err != nil {
		return err
	}
	for name := range p.Rules {
		rule, ok := all.Rules[name]
		if !ok {
			return no("the rule %q has no statement", name)
		}
		p.Rules[name] = rule
	}
	for _, name := range p.believed {
		p.CannotShow[name] = all.CannotShow[name]
	}
	return nil
}
