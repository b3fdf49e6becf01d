package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/lab/verdict"
)

type auditTraining struct {
	Method   flags.Choice `of:"dp-sgd,batch,mini-batch,stochastic" default:"dp-sgd" help:"${method}" placeholder:"NAME"`
	Model    flags.Choice `of:"logistic,conv" default:"logistic" help:"${auditTrainingModel}" placeholder:"NAME"`
	Fashion  string       `name:"fashion-mnist" help:"${auditTrainingFashion}" placeholder:"DIR" type:"path" group:"images"`
	CIFAR    string       `name:"cifar10" help:"${auditTrainingCIFAR}" placeholder:"DIR" type:"path" group:"images"`
	Pool     flags.Count  `default:"1" help:"${pool}" placeholder:"k" group:"images"`
	Examples flags.Count  `in:"[2,100000]" default:"64" help:"Examples of the training set." placeholder:"N"`

	Steps    flags.Count  `default:"8" help:"Steps, all of which the adversary sees." placeholder:"T"`
	Rate     flags.Number `in:"(0,inf)" default:"0.5" help:"Learning rate, above 0." placeholder:"η"`
	Batch    flags.Count  `default:"16" help:"Examples of a batch, of mini-batch." placeholder:"B"`
	Sampling flags.Number `in:"(0,1]" default:"0.25" help:"${auditTrainingSampling}" placeholder:"q"`
	Clip     flags.Number `in:"(0,inf)" default:"1" help:"${auditTrainingClip}" placeholder:"C"`
	Noise    flags.Number `in:"(0,inf)" default:"1" help:"${auditTrainingNoise}" placeholder:"σ"`

	Neighbour flags.Choice  `of:"add,replace" default:"add" help:"${neighbour}" placeholder:"NAME"`
	Canary    flags.Choice  `of:"auto,mislabelled,blank,dirac,canife" default:"auto" help:"${canary}" placeholder:"NAME"`
	Attacks   flags.Choices `of:"covariance,scalar,glir" help:"${attacks}" placeholder:"NAME,…"`
	LastLayer bool          `help:"Restrict attacks to the last layer's parameters."`
	Delta     flags.Number  `in:"[0,1)" default:"0.01" help:"δ at which ε is claimed and audited." placeholder:"δ"`
	Claim     flags.Number  `in:"[0,inf)" help:"Audit this claim instead of the accountant's." placeholder:"ε"`
	Flaw      flags.Choice  `of:"none,half-noise,unclipped,batch-clipped" default:"none" help:"${flaw}" placeholder:"NAME"`
	confidenceFlag
	auditFlags
}

var auditTrainingTexts = kong.Vars{
	"method": "Descent: dp-sgd, batch, mini-batch or stochastic. Only dp-sgd claims anything.",
	"pool":   "Average images over k×k pixels first; k divides their height and width.",
	"neighbour": "Data sets that must look alike: add (an example is added or removed) or replace " +
		"(one takes the place of another).",
	"canary": "auto (the highest Mahalanobis score of all), mislabelled, blank, dirac (ten times " +
		"the clip: shows whether gradients are clipped) or canife.",
	"attacks": "Attacks, with the confidence split over them: covariance, scalar, glir; all without " +
		"it, of stochastic only scalar, since the others need batches of two.",
	"flaw": "Break dp-sgd on purpose: half-noise, unclipped or batch-clipped. The claim remains; an " +
		"audit that is strong enough refutes it.",
	"auditTrainingModel":    "Model: logistic, or conv, a small convolutional net.",
	"auditTrainingFashion":  "Directory of the files of Fashion-MNIST.",
	"auditTrainingCIFAR":    "Directory of the binary files of CIFAR-10.",
	"auditTrainingSampling": "Probability of an example to be in a step, of dp-sgd.",
	"auditTrainingClip":     "Norm that gradients are clipped to, of dp-sgd.",
	"auditTrainingNoise":    "Noise multiplier, of dp-sgd: the noise's deviation is σC.",
	"audit training": "Examples:\n  sotto audit training --games 2000 --out report\n  sotto audit training " +
		"--flaw half-noise --games 20000\n  sotto audit training --flaw unclipped --canary " +
		"dirac\n  sotto audit training --method batch\n  sotto audit training --fashion-mnist " +
		"DIR --pool 4 --method mini-batch --rate 0.001 --examples 1280 --batch 64\n\n" + train.Where,
}

func (c *auditTraining) Run(ctx context.Context, s streams) error {
	p, err := c.prepare()
	return play(ctx, s, &c.auditFlags, p, err)
}

// prepare is the audit that the flags say.
func (c *auditTraining) prepare() (*verdict.PreparedTraining, error) {
	set, err := c.settings(c.Confidence, 4000)
	if err != nil {
		return nil, err
	}
	set.Claim = c.Claim.Pointer()
	t := verdict.Training{Settings: set, Examples: int(c.Examples), Pool: int(c.Pool), Delta: c.Delta.X,
		Setting: train.Request{
			Method: []train.Method{train.DPSGD, train.Batch, train.MiniBatch,
				train.Stochastic}[c.Method.Index("dp-sgd", "batch", "mini-batch", "stochastic")],
			Flaw:  train.Flaw(c.Flaw.Index(train.FlawNames()...)),
			Model: string(c.Model), Steps: int(c.Steps), Rate: c.Rate.X, Size: int(c.Batch),
			Sampling: c.Sampling.X, Clip: c.Clip.X, Noise: c.Noise.X,
			Neighbour: train.Neighbour(c.Neighbour.Index("add", "replace")),
			Canary:    string(c.Canary), LastLayer: c.LastLayer}}
	for _, name := range c.Attacks.Names {
		t.Setting.Scores = append(t.Setting.Scores, map[string]train.Score{
			"covariance": train.Covariance, "scalar": train.ScalarProduct, "glir": train.GLiR}[name])
	}
	if c.Flaw != "none" && c.Method != "dp-sgd" {
		return nil, fmt.Errorf("--flaw is %q, must be none: the method %s claims nothing that could "+
			"be false", c.Flaw, c.Method)
	}
	switch {
	case c.Fashion != "" && c.CIFAR != "":
		return nil, errors.New("want one of --fashion-mnist and --cifar10")
	case c.Fashion != "":
		t.Open = func() (train.Dataset, string, error) {
			d, err := train.OpenFashionMNIST(c.Fashion, t.Examples)
			return d, "Fashion-MNIST", err
		}
	case c.CIFAR != "":
		t.Open = func() (train.Dataset, string, error) {
			d, err := train.OpenCIFAR10(c.CIFAR, t.Examples)
			return d, "CIFAR-10", err
		}
	}
	return t.Prepare()
}
