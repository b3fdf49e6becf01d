package audit

import (
	"cmp"
	"math"
	"slices"
)

// A searched rule looks for what to answer by the scores of all games and by bits of games that are
// then not answered. Nothing here can make a bound wrong, only lower than it could be.
type searched struct {
	games    []searchedGame // by score
	shapes   []shape
	stairs   shape  // beside them: the one of rising
	cells    []cell // of games that are near each other
	in, out  int    // the rule: "in" from cell in on, "out" before cell out
	test     int    // games that are not of the pilot
	two, one int    // right answers that δ explains
	z        float64
}

type searchedGame struct {
	score  float64
	in     bool
	looked bool // at its bit: it is not answered
}

// A cell is games with scores next to each other, and how many of them were looked at.
type cell struct {
	from, to              int
	x                     [2]float64 // the score, and that of normal scores with the same rank
	closed, with, without float64
}

const (
	cells = 64  // at most, of as many games each and 8 at least, beside those far out
	wider = 1.3 // by which cells far out grow
	// doubt is by how many standard deviations a rule is judged worse than it looks, else the
	// luckiest of some thousand is chosen and not the best.
	doubt = 0.5
	// notable is the least log-odds of a standard deviation of scores, in standard deviations of
	// a bound by all games. With about 2 no rule shows anything, so a rule is for where one does.
	notable = 6
	// ridge is the weight of a log-odds of 0, in games.
	ridge = 0.02
	// A shape is left out if its log-likelihood is so far below the best, and for good.
	unlikely, hopeless = 4, 12
)

func newSearched(pilot, test Scores, gamma, delta float64) *searched {
	s := &searched{test: len(test.In) + len(test.Out)}
	s.two, s.one = leaked(s.test, delta, gamma)
	if delta > 0 {
		gamma -= leakShare * gamma
	}
	s.z = -quantile(gamma)
	for i, p := range []Scores{pilot, test} {
		for _, v := range p.In {
			s.games = append(s.games, searchedGame{score: v, in: true, looked: i == 0})
		}
		for _, v := range p.Out {
			s.games = append(s.games, searchedGame{score: v, looked: i == 0})
		}
	}
	slices.SortFunc(s.games, func(a, b searchedGame) int { return cmp.Compare(a.score, b.score) })
	s.divide()
	s.shapes = s.lines()
	return s
}

// divide makes the cells. Equal scores are in one.
func (s *searched) divide() {
	n := len(s.games)
	var ends []int
	most := min(cells, 1+n/8)
	for i := range most {
		ends = append(ends, (i+1)*n/most)
	}
	for _, k := range ranks(n, wider) {
		ends = append(ends, k, n-k)
	}
	slices.Sort(ends)
	lo, hi := math.Inf(1), math.Inf(-1) // finite scores
	for _, g := range s.games {
		if !math.IsInf(g.score, 0) {
			lo, hi = min(lo, g.score), max(hi, g.score)
		}
	}
	from := 0
	for _, to := range ends {
		for to > 0 && to < n && s.games[to].score == s.games[to-1].score {
			to++
		}
		if to <= from {
			continue
		}
		mid := min(max(s.games[(from+to)/2].score, lo), hi)
		s.cells = append(s.cells, cell{from: from, to: to,
			x: [2]float64{mid, quantile(float64(from+to) / 2 / float64(n))}})
		from = to
	}
	s.count()
}

// count counts what was looked at.
func (s *searched) count() {
	for i := range s.cells {
		c := &s.cells[i]
		c.closed, c.with, c.without = 0, 0, 0
		for _, g := range s.games[c.from:c.to] {
			switch {
			case !g.looked:
				c.closed++
			case g.in:
				c.with++
			default:
				c.without++
			}
		}
	}
}

// A shape is a way in which the log-odds of "in" may depend on the score: a straight line of the
// score or of its rank's normal score, cut off at both ends. Log-likelihood ratios of Laplace and
// Gaussian noise, of randomised responses and of what is between them are such lines.
type shape struct {
	x                  []float64 // of each cell
	a, b, sd           float64   // log-odds are a + b·x; sd is that of b
	like, weight       float64   // the logarithm of the likelihood, and what it is in a mean
	inRight, inWrong   []float64 // answers to be expected of "in" from a cell on
	outRight, outWrong []float64 // and of "out" before it
}

// at is the cell of a quantile of all scores.
func (s *searched) at(q float64) int {
	i, _ := slices.BinarySearchFunc(s.cells, int(q*float64(len(s.games))),
		func(c cell, k int) int { return cmp.Compare(c.to, k+1) })
	return min(i, len(s.cells)-1)
}

// lines are all shapes that are tried.
func (s *searched) lines() (all []shape) {
	var lows, highs []int
	for _, q := range []float64{0, 0.02, 0.06, 0.13, 0.22, 0.32, 0.43} {
		lows, highs = append(lows, s.at(q)), append(highs, s.at(1-q))
	}
	lows, highs = slices.Compact(lows), slices.Compact(highs)
	for kind := range s.cells[0].x {
		for _, lo := range lows {
			for _, hi := range highs {
				if x, ok := s.line(kind, lo, hi); ok {
					all = append(all, shape{x: x, b: 1})
				}
			}
		}
	}
	return all
}

// fit fits the shapes to all games that were looked at, and leaves the likely ones.
func (s *searched) fit() {
	best := math.Inf(-1)
	for i := range s.shapes {
		s.climb(&s.shapes[i])
		best = max(best, s.shapes[i].like)
	}
	s.shapes = slices.DeleteFunc(s.shapes, func(f shape) bool { return f.like < best-hopeless })
	s.stairs = s.rising()
	best = max(best, s.stairs.like)
	for i := range s.shapes {
		f := &s.shapes[i]
		f.weight = 0
		if f.like > best-unlikely {
			f.weight = math.Exp(f.like - best)
			b := max(f.b/10, f.b-float64(doubt*f.sd), notable*s.z/math.Sqrt(float64(s.test)))
			s.expect(f, func(i int) float64 { return 1 / (1 + math.Exp(-f.a-float64(b*f.x[i]))) })
		}
	}
	if f := &s.stairs; f.like > best-unlikely {
		f.weight = math.Exp(f.like - best)
		s.expect(f, func(i int) float64 { return f.x[i] })
	}
}

// rising is the shape that only rises, of as many steps as games support: where scores are few, or
// a few tell all, no line fits. Each step costs the logarithm of the games that were looked at, else
// it follows luck. Its x are probabilities, nearer to a half by doubt.
func (s *searched) rising() shape {
	type step struct{ from, with, all float64 }
	var steps []step
	p := func(b step) float64 { return (b.with + 0.5) / (b.all + 1) }
	for i, c := range s.cells {
		b := step{float64(i), c.with, c.with + c.without}
		for len(steps) > 0 {
			last := steps[len(steps)-1]
			if last.all > 0 && b.all > 0 && p(last) < p(b) {
				break
			}
			b = step{last.from, last.with + b.with, last.all + b.all}
			steps = steps[:len(steps)-1]
		}
		steps = append(steps, b)
	}
	games := 1.0
	for _, b := range steps {
		games += b.all
	}
	f := shape{x: make([]float64, len(s.cells)), like: float64(-float64(len(steps)) * math.Log(games))}
	for k, b := range steps {
		q := p(b)
		f.like += float64(b.with*math.Log(q)) + float64((b.all-b.with)*math.Log(1-q))
		off := doubt * math.Sqrt(q*(1-q)/(b.all+1))
		if q > 0.5 {
			q = max(0.5, q-off)
		} else {
			q = min(0.5, q+off)
		}
		end := len(s.cells)
		if k+1 < len(steps) {
			end = int(steps[k+1].from)
		}
		for i := int(b.from); i < end; i++ {
			f.x[i] = q
		}
	}
	return f
}

// line is the score of each cell, cut off at two of them, with mean 0 and variance 1.
func (s *searched) line(kind, lo, hi int) ([]float64, bool) {
	if lo >= hi {
		return nil, false
	}
	x := make([]float64, len(s.cells))
	var mean, square float64
	for i, c := range s.cells {
		x[i] = min(max(c.x[kind], s.cells[lo].x[kind]), s.cells[hi].x[kind])
		share := float64(c.to-c.from) / float64(len(s.games))
		mean += float64(share * x[i])
		square += float64(share * x[i] * x[i])
	}
	sd := math.Sqrt(max(0, square-float64(mean*mean)))
	if !(sd > 1e-9*math.Abs(mean)) || math.IsInf(sd, 1) {
		return nil, false
	}
	for i := range x {
		x[i] = (x[i] - mean) / sd
	}
	return x, true
}

// climb goes to the penalised maximum of the likelihood.
func (s *searched) climb(f *shape) {
	for range 12 {
		ga, gb, haa, hab, hbb := -f.a, float64(-ridge*f.b), 1.0, 0.0, ridge
		for i, c := range s.cells {
			k := c.with + c.without
			if k == 0 {
				continue
			}
			p := 1 / (1 + math.Exp(-f.a-float64(f.b*f.x[i])))
			d, v := c.with-float64(k*p), float64(k*p*(1-p))
			ga += d
			gb += float64(d * f.x[i])
			haa += v
			hab += float64(v * f.x[i])
			hbb += float64(v * f.x[i] * f.x[i])
		}
		det := float64(haa*hbb) - float64(hab*hab)
		da := (float64(hbb*ga) - float64(hab*gb)) / det
		db := (float64(haa*gb) - float64(hab*ga)) / det
		if step := math.Hypot(da, db); step > 2 {
			da, db = da*2/step, db*2/step
		}
		f.a, f.b, f.sd = f.a+da, f.b+db, math.Sqrt(haa/det)
		if math.Abs(da)+math.Abs(db) < 1e-3 {
			break
		}
	}
	f.like = float64(-f.a*f.a/2) - float64(ridge*f.b*f.b/2)
	for i, c := range s.cells {
		if k := c.with + c.without; k > 0 {
			y := f.a + float64(f.b*f.x[i])
			f.like += float64(c.with*y) - float64(k*(max(y, 0)+math.Log1p(math.Exp(-math.Abs(y)))))
		}
	}
}

// expect sets the answers to be expected where "in" has these probabilities.
func (s *searched) expect(f *shape, of func(i int) float64) {
	n := len(s.cells)
	for _, x := range []*[]float64{&f.inRight, &f.inWrong, &f.outRight, &f.outWrong} {
		*x = slices.Grow((*x)[:0], n+1)[:n+1]
	}
	f.inRight[n], f.inWrong[n], f.outRight[0], f.outWrong[0] = 0, 0, 0, 0
	p := make([]float64, n)
	for i, c := range s.cells {
		p[i] = of(i)
		f.outRight[i+1] = f.outRight[i] + float64(c.closed*(1-p[i]))
		f.outWrong[i+1] = f.outWrong[i] + float64(c.closed*p[i])
	}
	for i := n - 1; i >= 0; i-- {
		f.inRight[i] = f.inRight[i+1] + float64(s.cells[i].closed*p[i])
		f.inWrong[i] = f.inWrong[i+1] + float64(s.cells[i].closed*(1-p[i]))
	}
}

// best chooses the rule that promises most: the mean over all shapes, less doubt.
func (s *searched) best() float64 {
	n := len(s.cells)
	s.fit()
	shapes := slices.DeleteFunc(append(slices.Clone(s.shapes), s.stairs),
		func(f shape) bool { return f.weight == 0 })
	if len(shapes) == 0 { // one score, or none that is finite: there is no choice
		s.in, s.out = (n+1)/2, n/2
		return math.Inf(-1)
	}
	value := func(in, out int) float64 {
		leak := float64(s.two)
		if in == n || out == 0 {
			leak = float64(s.one)
		}
		var weight, sum, squares float64
		for _, f := range shapes {
			e := s.promise(f.inRight[in]+f.outRight[out]-leak, f.inWrong[in]+f.outWrong[out])
			weight += f.weight
			sum += float64(f.weight * e)
			squares += float64(f.weight * e * e)
		}
		mean := sum / weight
		return mean - float64(doubt*math.Sqrt(max(0, squares/weight-float64(mean*mean))))
	}
	most, low, mid, high := math.Inf(-1), s.at(0.25), s.at(0.5), s.at(0.75)
	for _, start := range [][2]int{{high, low}, {mid, mid}, {n, low}, {high, 0}} {
		in, out := start[0], start[1]
		v := value(in, out)
		for moved := true; moved; {
			moved = false
			for k := out; k <= n; k++ {
				if e := value(k, out); e > v {
					in, v, moved = k, e, true
				}
			}
			for k := range in + 1 {
				if e := value(in, k); e > v {
					out, v, moved = k, e, true
				}
			}
		}
		if v > most {
			s.in, s.out, most = in, out, v
		}
	}
	return most
}

// promise is the bound of so many answers, by Wilson's.
func (s *searched) promise(right, wrong float64) float64 {
	if !(right > 0) { // it shows nothing, and less the further it is from that
		return -30 + right/float64(s.test)
	}
	n := right + wrong
	p, c := wrong/n, s.z*s.z/n
	u := (p + c/2 + math.Sqrt(c*(float64(p*(1-p))+c/4))) / (1 + c)
	return math.Log((1 - u) / u)
}

// see looks at all games but those that a rule with so many times the answers on each side has, and
// some more while there is room.
func (s *searched) see(room float64) {
	n, all := len(s.cells), 0.0
	var answered [2]float64
	for i, c := range s.cells {
		all += c.closed
		if i >= s.in {
			answered[0] += c.closed
		}
		if i < s.out {
			answered[1] += c.closed
		}
	}
	var left [2]int // cells on each side that are left alone
	for side, a := range answered {
		want := max(room*a, (room-1)/20*all)
		for got := 0.0; left[side] < n && got < want; left[side]++ {
			i := left[side]
			if side == 0 {
				i = n - 1 - i
			}
			got += s.cells[i].closed
		}
	}
	for i := left[1]; i < n-left[0]; i++ {
		for k := s.cells[i].from; k < s.cells[i].to; k++ {
			s.games[k].looked = true
		}
	}
	s.count()
}

// answers judges the games that were not looked at.
func (s *searched) answers() Answers {
	a := Answers{Games: s.test, OneSided: s.in == len(s.cells) || s.out == 0}
	for i, c := range s.cells {
		if i < s.in && i >= s.out {
			continue
		}
		for _, g := range s.games[c.from:c.to] {
			switch {
			case g.looked:
			case g.in == (i >= s.in):
				a.Right++
			default:
				a.Wrong++
			}
		}
	}
	return a
}

// rule is in scores what the cells say.
func (s *searched) rule() Rule {
	r := Rule{math.Inf(1), math.Inf(-1)}
	top := func(i int) float64 { return s.games[s.cells[i-1].to-1].score } // of the cells before i
	if s.in == 0 {
		r.In = -math.MaxFloat64
	} else if s.in < len(s.cells) {
		r.In = top(s.in)
	}
	if s.out > 0 {
		r.Out = max(top(s.out), -math.MaxFloat64)
	}
	return r
}
