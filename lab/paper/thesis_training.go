package paper

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/noise"
)

// training is one of the models of Figure 7.2.
type training struct {
	name              string
	model             train.Model
	data              string // what the images are
	images            func(n int, src *noise.Fast) (train.Dataset, error)
	last              bool // the attack sees the last layer alone
	references, games int
	epoch             int // examples in a training set: one epoch is played
	pool              int // examples that training sets are drawn from
}

const generated = "generated images"

func made(side, channels int) func(n int, src *noise.Fast) (train.Dataset, error) {
	return func(n int, src *noise.Fast) (train.Dataset, error) {
		return train.Images(n, side, side, channels, 10, src), nil
	}
}

func trainings(p Preset) []training {
	fashion := training{
		name: "linear", model: train.Logistic{Features: 36, Labels: 10}, references: 4000,
		games: 5000, epoch: 640,
		data: generated, images: made(6, 1), pool: 1280,
	}
	cifar := training{
		name: "convolutional", model: train.Conv{Height: 8, Width: 8, Channels: 3,
			Filters: []int{4, 8, 16}, Labels: 10}, last: true, references: 4000, games: 2500, epoch: 320,
		data: generated, images: made(8, 3), pool: 640,
	}
	if p == Quick {
		fashion.model, fashion.references, fashion.games, fashion.epoch = train.Logistic{Features: 25,
			Labels: 10}, 2000, 1500, 256
		fashion.images, fashion.pool = made(5, 1), 512
		cifar.references, cifar.games, cifar.epoch, cifar.pool = 1000, 500, 128, 256
	}
	return []training{fashion, cifar}
}

func (c training) play(ctx context.Context, n *Numbers, grid *report.Table) report.Figure {
	fig := report.Figure{
		ID: "thesis-7.2-" + c.name, Title: "Attacks on one epoch, " + c.name + " model",
		Subtitle: c.data + ", batches of 64", XLabel: "significance", YLabel: "power", LogX: true,
		Note: "Bands are 99 % intervals of each point.",
	}
	src := noise.NewFast(n.seed(72), uint64(len(c.name)))
	all := need(c.images(c.pool+c.references, &src))
	pool, references := all.Slice(0, c.pool), all.Slice(c.pool, c.pool+c.references)
	start := make([]float64, c.model.Params())
	c.model.Init(start, &src)
	attacks := []train.Attack{
		{References: references, LastLayer: c.last},
		{Score: train.ScalarProduct, LastLayer: c.last},
		{Score: train.GLiR, References: references, LastLayer: c.last},
	}
	labels := []string{"covariance", "scalar product", "GLiR"}
	a := train.Audit{
		Training: train.Training{Model: c.model, Method: train.MiniBatch, Size: 64,
			Steps: c.epoch / 64, Rate: 1e-3},
		Data: pool, Size: c.epoch, Start: start, Neighbour: train.ReplaceOne, Games: c.games,
		Attacks: attacks,
	}
	// Algorithm 14 over training points, and over the canaries of others.
	var candidates []train.Canary
	for i := range pool.X {
		z := need(train.Example(pool, i))
		candidates = append(candidates, z)
	}
	a.Canary = candidates[0]
	plans := need(a.Plans())
	if note := plans[0].Note(); note != "" {
		n.Notes = append(n.Notes, "The "+c.name+" model: "+note)
	}
	best, scores := both(train.Select(plans[0], candidates))
	worst := slices.Index(scores, slices.Min(scores))
	ordered := slices.Sorted(slices.Values(scores))
	wrong := need(train.Mislabelled(c.model, start, pool, worst))
	lo, hi := c.model.Last()
	dirac := need(train.Dirac(c.model, (lo+hi)/2, 1))
	_, heuristics := both(train.Select(plans[0], []train.Canary{train.Blank(pool, 0), wrong, dirac}))
	high := ordered[len(ordered)*9/10]
	share := func(score float64) float64 { // of the training points, that score less
		i, _ := slices.BinarySearch(ordered, score)
		return float64(i) / float64(len(ordered))
	}
	// A point of the lowest score is the worst to mislabel: what becomes of others is told too.
	var flipped []train.Canary
	for i := range min(len(pool.X), 500) {
		z := need(train.Mislabelled(c.model, start, pool, i))
		flipped = append(flipped, z)
	}
	_, flips := both(train.Select(plans[0], flipped))
	found := canaryScores{High: high}
	for i, score := range heuristics {
		found.Scores[i], found.Shares[i] = score, share(score)
	}
	n.set("canaries "+c.name, found)
	above := 0
	for _, score := range flips {
		if score > high {
			above++
		}
	}
	rows := [][]string{}
	for _, t := range []struct {
		name  string
		index int
	}{{"easy", best}, {"hard", worst}} {
		a.Canary, a.Key = candidates[t.index], noise.Key{Seed: n.seed(21072), Experiment: c.name + " " + t.name}
		s := need(a.Play(ctx))
		for _, pair := range [][2]int{{0, 1}, {2, 0}} {
			d, lo, hi := areaDifference(s[pair[0]], s[pair[1]], 4)
			n.set(fmt.Sprintf("%s %s %s over %s", c.name, t.name, labels[pair[0]],
				labels[pair[1]]), bounds{d, lo, hi})
		}
		for i, label := range labels {
			auc := need(s[i].AUC(level(4 * len(labels))))
			n.set(fmt.Sprintf("%s %s %s", c.name, t.name, label), bounds(auc))
			fig.Series = append(fig.Series, rocOf(label+", "+t.name, s[i], audit.LogGrid(0.01, 21)))
			rows = append(rows, []string{t.name, label, fmt.Sprintf("%.3f", scores[t.index]),
				fmt.Sprintf("%.3f", auc.Value), fmt.Sprintf("%.3f to %.3f", auc.Lo, auc.Hi)})
		}
	}
	for i, name := range []string{"blank", "mislabelled", "Dirac"} {
		rows = append(rows, []string{name, percent(share(heuristics[i])) + " of points score less",
			fmt.Sprintf("%.3f", heuristics[i]), "", ""})
	}
	rows = append(rows, []string{"mislabelled, others",
		fmt.Sprintf("%s of %d are above nine in ten points",
			percent(float64(above)/float64(len(flips))), len(flips)),
		fmt.Sprintf("median %.3f", slices.Sorted(slices.Values(flips))[len(flips)/2]), "", ""})
	grid.Groups = append(grid.Groups, report.Group{Head: c.name, Rows: rows})
	n.Runs = max(n.Runs, c.games)
	return fig
}

const (
	generatedWhy = "The source has Fashion-MNIST and CIFAR-10, which were not at hand. On " +
		"generated images the check is as it says above; " +
		"that is not the source's experiment."
	cifarWhy = "The source has CIFAR-10, which was not at hand. On generated images the check is " +
		"as it says above; that is not the source's " +
		"experiment."
	otherWhy = "The files are not those of Fashion-MNIST as it was published. On them the " +
		"check is as it says above; that is not the source's experiment."
	fashionWhy = "These are the source's images, but smaller ones, a smaller model at a start of " +
		"ours, and epochs of fewer steps: how far its " +
		"figure would be otherwise is not known. Many of these images are mostly black, so that " +
		"a black one may be nothing out of the " +
		"ordinary; the mislabelled point is the one of the lowest score, and the table has others."
)

// fashion are the files of Fashion-MNIST in a directory.
type fashion struct {
	dir string
	sum string // as train.SumFashionMNIST has it
}

// findFashion is nil if the directory has no such files.
func findFashion(dir string) (*fashion, error) {
	found, err := filepath.Glob(filepath.Join(escape.Replace(dir), "train-*-ubyte*"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	sum, err := train.SumFashionMNIST(dir)
	if err != nil {
		return nil, err
	}
	return &fashion{dir, sum}, nil
}

// escape makes a path one that a pattern matches literally.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func (f *fashion) published() bool { return f.sum == train.FashionMNISTSum }

// name is what the images are called.
func (f *fashion) name() string {
	if f.published() {
		return "Fashion-MNIST"
	}
	return "other images in the files of Fashion-MNIST"
}

// images are the first n, each averaged over 4×4 pixels.
func (f *fashion) images(n int, _ *noise.Fast) (train.Dataset, error) {
	d, err := train.OpenFashionMNIST(f.dir, n)
	switch {
	case err != nil:
		return d, err
	case d.Height != 28 || d.Width != 28:
		return d, fmt.Errorf("%w: %s: images of %d×%d pixels, must be of 28×28", ErrData, f.dir,
			d.Height, d.Width)
	case len(d.X) < n:
		return d, fmt.Errorf("%w: %s: %d images, must be at least %d", ErrData, f.dir, len(d.X), n)
	}
	return d.Pool(4)
}

// trainings are those of the preset, the linear model on these images.
func (f *fashion) trainings(p Preset) []training {
	all := trainings(p)
	c := &all[0]
	c.data, c.images, c.model = f.name()+" at 7×7 pixels", f.images, train.Logistic{Features: 49, Labels: 10}
	c.references, c.pool = 20_000, 40_000
	if p == Quick {
		c.references, c.pool = 4000, 4000
	}
	return all
}

// notes say which data were played, from where, and how they differ from the source's.
func (f *fashion) notes() []string {
	what := "its contents are those published (SHA-256 " + f.sum + ")"
	if !f.published() {
		what = "its contents are not those published (SHA-256 " + f.sum + ", published " +
			train.FashionMNISTSum + ")"
	}
	return []string{
		"Real data: the linear model is played on the training set in " + f.dir + "; " + what +
			". Fashion-MNIST is by Zalando SE, 2017, under the MIT " +
			"licence (github.com/zalandoresearch/fashion-mnist); Debian's package " +
			"dataset-fashion-mnist has it.",
		"It differs from the source's in this: images are averaged over 4×4 pixels to 7×7, so " +
			"that the model has 500 parameters and not 7850; " +
			"an epoch has 640 examples in 10 steps, drawn anew for each game out of 40 000, and " +
			"not 60 000 in 938; the 20 000 references are as many " +
			"as the source's, and are none of these. The quick preset has 256 examples of 4000, " +
			"and 4000 references.",
		"We know of no licence of CIFAR-10: generated images stand in for it.",
	}
}

// tracing are the parts of the figure that depend on the images. f is nil where all are generated.
func tracing(f *fashion, of func(Preset) []training) Figure {
	both := []string{"linear", "convolutional"}
	fig := Figure{
		ID: "thesis-7.2", Source: "000", Where: "Figure 7.2, §7.2 to §7.4, Algorithms 13 and 14",
		Title: "Tracing an example in one epoch of gradient descent, on generated images",
		About: "A linear model and a small convolutional net are trained for one epoch, with and " +
			"without a canary, thousands of times; the covariance attack, the scalar product and " +
			"GLiR score the iterates. The canaries are the training points of the highest " +
			"and the lowest Mahalanobis score.",
		Chosen: "The source trains on Fashion-MNIST and CIFAR-10. No files are read here: images " +
			"are generated, 6×6 grey ones for the linear model and 8×8 in three channels for the " +
			"net, ten classes; 370 parameters, and 170 of the net's last layer. Batches of 64, η " +
			"= 0.001, as the source. " +
			"Training sets of 640 and 320 examples (10 and 5 steps) are drawn anew in each game, " +
			"5000 and 2500 games a canary; 4000 references. What is compared is the area under " +
			"the ROC curve. A canary's score is high if above that of nine in ten training points.",
		Voids:  "Plain gradient descent promises no privacy.",
		Claims: tracingClaims("", "for both models", both, NotTested, generatedWhy, "generated images"),
	}
	notes := []string{"Generated images stand in for Fashion-MNIST and CIFAR-10. To attack a " +
		"model of the real ones, give their directory to sotto audit training. " +
		"For this page on Fashion-MNIST, give it to sotto reproduce --data. " + train.Where}
	if f != nil {
		fig.Data = f.sum
		fig.Title = "Tracing an example in one epoch of gradient descent, on " + f.name() +
			" and on generated images"
		fig.Chosen = "The source trains on Fashion-MNIST and CIFAR-10. The linear model is " +
			"trained on " + f.name() + ", averaged to 7×7 pixels: 500 parameters; " +
			"the net on generated images of 8×8 in three channels, ten classes, 170 parameters " +
			"in its last layer. Batches of 64, η = 0.001, as the source. " +
			"Training sets of 640 and 320 examples (10 and 5 steps) are drawn anew in each game, " +
			"5000 and 2500 games a canary; 20 000 references, as the source, " +
			"and 4000. What is compared is the area under the ROC curve. A canary's score is " +
			"high if above that of nine in ten training points."
		linear, why := Verdict(""), fashionWhy
		if !f.published() {
			linear, why = NotTested, otherWhy
		}
		fig.Claims = append(tracingClaims("", "for the linear model", both[:1], linear, why, f.name()),
			tracingClaims("-net", "for the net (its last layer)", both[1:], NotTested, cifarWhy,
				"generated images")...)
		notes = f.notes()
	}
	fig.Compute = func(ctx context.Context, p Preset, n *Numbers) {
		n.Notes = slices.Clone(notes)
		grid := report.Table{Title: "Canaries and attacks",
			Head: []string{"canary", "attack", "Mahalanobis score", "area under ROC", "99 % interval"}, Text: 2}
		for _, c := range of(p) {
			n.Figures = append(n.Figures, c.play(ctx, n, &grid))
		}
		n.Tables = []report.Table{grid}
	}
	return fig
}

func thesis72() Figure {
	fig := tracing(nil, trainings)
	fig.Real = func(dir string) (*Figure, error) {
		f, err := findFashion(dir)
		if f == nil || err != nil {
			return nil, err
		}
		real := tracing(f, f.trainings)
		return &real, nil
	}
	return fig
}

// canaryScores are the score that nine in ten training points are below, those of a blank, a
// mislabelled and a Dirac canary, and the shares of training points that are below these.
type canaryScores struct {
	High           float64
	Scores, Shares [3]float64
}

// tracingClaims are the claims made of some models. verdict is what any answer means;
// empty: the usual.
func tracingClaims(suffix, whose string, models []string, verdict Verdict, why, images string) []Claim {
	claims := []Claim{
		{
			ID: "mahalanobis", Text: "The point of the highest Mahalanobis score is easier to " +
				"find than that of the lowest, " + whose + ".", Where: "(a) of §7.4",
			Statistic: "Area under the ROC curve of the covariance attack on the first minus " +
				"that on the second; holds if " + every(models, "both are", "it is") + " above 0",
			Decide: all(models, func(c string) Check {
				return moreArea(c+" easy covariance", c+" hard covariance")
			}),
		},
		{
			ID: "scalar", Text: "The covariance attack improves on the scalar product" +
				every(models, "", ", "+whose) + ".", Where: "(b) of §7.4",
			Statistic: "Area under the ROC curve of the covariance attack minus that of the " +
				"scalar product on the same games, " +
				every(models, "two models and two canaries; holds if all four are above 0",
					"two canaries; holds if both are above 0"),
			Decide: all(models, func(c string) Check {
				return all([]string{"easy", "hard"}, func(t string) Check {
					return pairedArea(above(0), c+" "+t+" covariance over scalar product")
				})
			}),
		},
		{
			ID: "once", Text: "A covariance that is estimated once, before the epoch, is enough " +
				"to find a canary" +
				every(models, "; for the net, that of its last layer.", ", "+whose+"."), Where: "(c) of §7.4",
			Statistic: "Area under the ROC curve of the covariance attack on the point of the " +
				"highest score; holds if " + every(models, "both are", "it is") + " above ½",
			Decide: all(models, func(c string) Check {
				return func(e *Evidence) Finding {
					x := named[bounds](e, c+" easy covariance")
					return Above(x.Value, x.Lo, x.Hi, 0.5, e.Numbers.Runs, c)
				}
			}),
		},
		{
			ID: "glir", Own: true, Text: "On " + images + " GLiR finds the easy canary of the " +
				"linear model a little more often than the covariance attack. (§7.5 calls the " +
				"covariance attack provably optimal: for the mean of one large batch, with the " +
				"true moments, in the limit; the source does not play GLiR.)",
			Statistic: "Area under the ROC curve of GLiR minus that of the covariance attack on " +
				"the same games; holds if above 0",
			Decide: pairedArea(above(0), "linear easy GLiR over covariance"),
		},
		{
			ID: "heuristics", Text: "Blank and mislabelled examples and Dirac gradients are " +
				"canaries of high Mahalanobis score" + every(models, "", ", "+whose) + ".", Where: "§7.3",
			Statistic: "Their scores at θ₀ over the score that nine in ten training points are " +
				"below, a threshold of ours; holds if all " +
				every(models, "six", "three") + " are above 1, and fails if one is not high by " +
				"any: half of the training points score more",
			Decide: all(models, func(c string) Check {
				return func(e *Evidence) Finding {
					var parts []Finding
					n := named[canaryScores](e, "canaries "+c)
					for i, name := range []string{"blank", "mislabelled", "Dirac"} {
						x := n.Scores[i] / n.High
						f := exact(x, x > 1, fmt.Sprintf("%s model, %s: score %.3f, above %s of "+
							"points; nine in ten below %.3f",
							c, name, n.Scores[i], percent(n.Shares[i]), n.High))
						if f.Answer == Fails && n.Shares[i] >= 0.5 {
							f.Answer = Undecided
						}
						parts = append(parts, f)
					}
					return Every(parts)
				}
			}),
			Reader: "Compute the score of such a canary on your own data before relying on it.",
		},
	}
	for i := range claims {
		c := &claims[i]
		c.ID += suffix
		if !c.Own {
			c.IfHolds, c.IfFails, c.Why = verdict, verdict, why
		}
	}
	// What is said of GLiR is of the linear model.
	return slices.DeleteFunc(claims, func(c Claim) bool { return c.Own && !slices.Contains(models, "linear") })
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// every is a choice of words for several models, or for one.
func every(models []string, several, one string) string {
	if len(models) > 1 {
		return several
	}
	return one
}

// all is the finding of a claim that is made of each of several things.
func all(names []string, of func(name string) Check) Check {
	var checks []Check
	for _, n := range names {
		checks = append(checks, of(n))
	}
	return allOf(checks...)
}

// areaDifference is the difference of the areas under the ROC curves of two attacks on the
// same games, with its interval by the method of DeLong, DeLong and Clarke-Pearson
// (Biometrics 44, 1988): an area is a mean of each game's share of the other side that it
// beats, so that games are the pairs.
func areaDifference(a, b audit.Scores, cells int) (d, lo, hi float64) {
	// the share of y that each of x is above, ties one half; below if sign is −1
	placed := func(x, y []float64, sign float64) []float64 {
		s := slices.Sorted(slices.Values(y))
		out := make([]float64, len(x))
		for i, v := range x {
			from, _ := slices.BinarySearch(s, v)
			to := from + sort.Search(len(s)-from, func(k int) bool { return s[from+k] > v })
			out[i] = float64(from+to) / float64(2*len(s))
			if sign < 0 {
				out[i] = 1 - out[i]
			}
		}
		return out
	}
	var variance float64
	for _, side := range []struct {
		a, b []float64
	}{{placed(a.In, a.Out, 1), placed(b.In, b.Out, 1)}, {placed(a.Out, a.In, -1), placed(b.Out, b.In, -1)}} {
		for i := range side.a {
			side.a[i] -= side.b[i]
		}
		m, _, se := stats.Mean(side.a)
		d, variance = m, variance+se*se
	}
	half := stats.T(min(len(a.In), len(a.Out)), level(cells)) * math.Sqrt(variance)
	return d, d - half, d + half
}

// pairedArea judges a difference of areas.
func pairedArea(judge judgement, name string) Check {
	return func(e *Evidence) Finding {
		d := named[bounds](e, name)
		return judge(d.Value, d.Lo, d.Hi, e.Numbers.Runs, name)
	}
}
