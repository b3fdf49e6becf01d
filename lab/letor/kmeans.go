package letor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/noise"
)

// Options say how rows are clustered.
type Options struct {
	Clusters int    // K, at least 2; 50 in [Chowdhury and Zhou 2023]
	Seed     uint64 // of the sample and of k-means++
	Features int    // of a row; 0: as many as the first row has
	// Sample is how many rows centres are fitted to, drawn uniformly without replacement; 0 means
	// DefaultSample. All rows are then given to the nearest centre.
	Sample int
	Steps  int // at most so many steps of Lloyd's; 0 means DefaultSteps
	// Starts is from how many draws of k-means++ Lloyd's algorithm goes; the best end is taken, as
	// each is a local optimum only. 0 means DefaultStarts.
	Starts int
	// Raw leaves features as they are. Otherwise each is divided by its standard deviation in
	// the sample: in the MSLR data some are counts in the millions, and alone would decide.
	// [Chowdhury and Zhou 2023] does not say.
	Raw bool
	// Progress is told of each part that is done, of all: the sample, each start, the second reading. It may be nil.
	Progress func(done, all int)
}

// Defaults of Options.
const (
	DefaultSample = 50_000
	DefaultSteps  = 100
	DefaultStarts = 5
)

// Arms are clusters as arms: how often rows of each have each rating.
type Arms struct {
	Counts  [][MaxRating + 1]int
	Seed    uint64 // Options.Seed: WriteCSV draws its order from it
	Rows    int
	Queries int // different ones in a row: changes of the query
	Dim     int
	Fitted  int // rows of the sample
	Steps   int // of Lloyd's algorithm, from the best start
	// mean squared distance to the nearest centre, over all rows, in the units of Options.Raw
	Inertia float64
}

// Cluster reads a file twice: open gives a reader of its beginning, each time. Centres start by
// k-means++ (Arthur and Vassilvitskii 2007) and move by Lloyd's algorithm until no row changes its
// cluster. A cluster that loses all its rows gets the row that is farthest from its centre. The
// same file, options and architecture give the same arms.
func Cluster(ctx context.Context, open func() (io.ReadCloser, error), o Options) (Arms, error) {
	if o.Clusters < 2 {
		return Arms{}, fmt.Errorf("letor: clusters is %d, must be at least 2", o.Clusters)
	}
	if o.Sample == 0 {
		o.Sample = max(DefaultSample, o.Clusters)
	}
	if o.Sample < o.Clusters {
		return Arms{}, fmt.Errorf("letor: sample is %d, must be at least the number of clusters, %d",
			o.Sample, o.Clusters)
	}
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	if o.Steps < 1 {
		return Arms{}, fmt.Errorf("letor: steps is %d, must be at least 1", o.Steps)
	}
	if o.Starts == 0 {
		o.Starts = DefaultStarts
	}
	if o.Starts < 1 {
		return Arms{}, fmt.Errorf("letor: starts is %d, must be at least 1", o.Starts)
	}
	src := noise.Key{Seed: o.Seed, Experiment: "letor", Role: noise.RoleInstance}.ChaCha8()
	random := rand.New(src)
	points, dim, err := sample(ctx, open, o, random)
	if err != nil {
		return Arms{}, err
	}
	done := 0
	tell := func() {
		if done++; o.Progress != nil {
			o.Progress(done, o.Starts+2)
		}
	}
	tell()
	n := len(points) / dim
	if n < o.Clusters {
		return Arms{}, fmt.Errorf("letor: the file has %d rows, must have at least as many as "+
			"clusters, %d", n, o.Clusters)
	}
	scale := scales(points, dim, o.Raw)
	for i := range points {
		points[i] *= scale[i%dim]
	}
	var centres [][]float32
	steps, best := 0, math.Inf(1)
	for range o.Starts {
		start, err := plusPlus(points, dim, o.Clusters, random)
		if err != nil {
			return Arms{}, err
		}
		taken, inertia, err := lloyd(ctx, points, start, dim, o.Steps)
		if err != nil {
			return Arms{}, err
		}
		if inertia < best {
			centres, steps, best = start, taken, inertia
		}
		tell()
	}
	if centres == nil {
		return Arms{}, errors.New("letor: squared distances overflow: the features are too large " +
			"to be left as they are")
	}
	out := Arms{Counts: make([][MaxRating + 1]int, o.Clusters), Seed: o.Seed, Dim: dim, Fitted: n, Steps: steps}
	query := -1
	point := make([]float32, dim)
	err = each(ctx, open, dim, func(row Row) {
		for i, x := range row.Features {
			point[i] = x * scale[i]
		}
		c, d := nearest(point, centres)
		out.Counts[c][row.Rating]++
		out.Rows++
		out.Inertia += d
		if row.Query != query {
			out.Queries, query = out.Queries+1, row.Query
		}
	})
	if err != nil {
		return Arms{}, err
	}
	out.Inertia /= float64(out.Rows)
	for c, count := range out.Counts {
		if count == ([MaxRating + 1]int{}) {
			return Arms{}, fmt.Errorf("letor: cluster %d has no row: take fewer clusters than "+
				"%d, or another seed", c+1, o.Clusters)
		}
	}
	return out, nil
}

// each reads a file's rows.
func each(ctx context.Context, open func() (io.ReadCloser, error), features int, f func(Row)) (err error) {
	in, err := open()
	if err != nil {
		return fmt.Errorf("letor: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, err := NewReader(in, features)
	if err != nil {
		return err
	}
	for {
		if r.line&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(row)
	}
}

// sample draws o.Sample rows uniformly without replacement: Vitter's algorithm R (1985).
func sample(ctx context.Context, open func() (io.ReadCloser, error), o Options,
	random *rand.Rand) (points []float32, dim int, err error) {
	seen := 0
	err = each(ctx, open, o.Features, func(row Row) {
		dim = len(row.Features)
		if seen < o.Sample {
			points = append(points, row.Features...)
		} else if i := random.IntN(seen + 1); i < o.Sample {
			copy(points[i*dim:], row.Features)
		}
		seen++
	})
	if err == nil && seen == 0 {
		err = fmt.Errorf("letor: %w: the file has no row", ErrFormat)
	}
	return points, dim, err
}

// scales are the reciprocals of the features' standard deviations; 1 for one that does not vary.
func scales(points []float32, dim int, raw bool) []float32 {
	scale := make([]float32, dim)
	n := float64(len(points) / dim)
	for i := range scale {
		scale[i] = 1
		mean, square := 0.0, 0.0
		for j := i; j < len(points); j += dim {
			mean += float64(points[j])
		}
		mean /= n
		for j := i; j < len(points); j += dim {
			d := float64(points[j]) - mean
			square += float64(d * d)
		}
		if sd := math.Sqrt(square / n); !raw && sd > 0 {
			if s := float32(1 / sd); s > 0 && !math.IsInf(float64(s), 0) {
				scale[i] = s
			}
		}
	}
	return scale
}

// plusPlus chooses rows as centres, each next one with a probability that goes with its squared
// distance to those there are.
func plusPlus(points []float32, dim, k int, random *rand.Rand) ([][]float32, error) {
	n := len(points) / dim
	row := func(i int) []float32 { return points[i*dim : (i+1)*dim] }
	centres := [][]float32{append([]float32(nil), row(random.IntN(n))...)}
	away := make([]float64, n)
	for i := range away {
		away[i] = math.Inf(1)
	}
	for len(centres) < k {
		sum, last := 0.0, centres[len(centres)-1]
		for i := range away {
			away[i] = min(away[i], distance(row(i), last, away[i]))
			sum += away[i]
		}
		if !(sum > 0) {
			return nil, fmt.Errorf("letor: the rows have only %d different feature vectors, must "+
				"have at least as many as clusters, %d", len(centres), k)
		}
		u, at := random.Float64()*sum, n-1
		for i, d := range away {
			if u -= d; u < 0 {
				at = i
				break
			}
		}
		for away[at] == 0 { // rounding led beyond the last
			at--
		}
		centres = append(centres, append([]float32(nil), row(at)...))
	}
	return centres, nil
}

// lloyd moves centres to the means of their rows until no row changes. It tells its steps and the
// sum of squared distances that is left.
func lloyd(ctx context.Context, points []float32, centres [][]float32, dim, most int) (steps int,
	inertia float64, err error) {
	n, k := len(points)/dim, len(centres)
	of := make([]int32, n)
	for i := range of {
		of[i] = -1
	}
	sum, count := make([]float64, k*dim), make([]int, k)
	for step := 1; ; step++ {
		changed := 0
		inertia = 0
		clear(sum)
		clear(count)
		farthest, at := -1.0, 0
		for i := range n {
			if i&0xfff == 0 && ctx.Err() != nil {
				return 0, 0, ctx.Err()
			}
			p := points[i*dim : (i+1)*dim]
			c, d := nearest(p, centres)
			if int32(c) != of[i] {
				of[i] = int32(c)
				changed++
			}
			inertia += d
			if d > farthest {
				farthest, at = d, i
			}
			count[c]++
			s := sum[c*dim : (c+1)*dim]
			for j, x := range p {
				s[j] += float64(x)
			}
		}
		if changed == 0 || step > most {
			return step - 1, inertia, nil
		}
		for c := range centres {
			if count[c] == 0 {
				copy(centres[c], points[at*dim:(at+1)*dim])
				continue
			}
			for j := range dim {
				centres[c][j] = float32(sum[c*dim+j] / float64(count[c]))
			}
		}
	}
}

// nearest is the nearest centre and its squared distance; of equal ones the first.
func nearest(p []float32, centres [][]float32) (int, float64) {
	best, at := math.Inf(1), 0
	for c, q := range centres {
		if d := distance(p, q, best); d < best {
			best, at = d, c
		}
	}
	return at, best
}

// distance is squared; once it is above most it need not be finished.
func distance(p, q []float32, most float64) float64 {
	q = q[:len(p)]
	total := 0.0
	for len(p) >= 8 {
		var s float32
		for j := range 8 {
			d := p[j] - q[j]
			s += float32(d * d)
		}
		if total += float64(s); total > most {
			return total
		}
		p, q = p[8:], q[8:]
	}
	for j := range p {
		d := p[j] - q[j]
		total += float64(float32(d * d))
	}
	return total
}
