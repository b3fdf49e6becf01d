package cli

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/live/serve"
)

type proveCommand struct {
	Source string `arg:"" name:"FILE" help:"${proveSource}"`
}

// proveTexts are help texts that are too long for their flags.
var proveTexts = kong.Vars{
	"proveSource": "Transcript of a live experiment, or of a trial of sotto identify; - reads standard input.",
	"prove": `The certificate is JSON on standard output. It has every release with its mechanism and price, the rules by which
the total follows, each with its statement, proof and test, and the list of what no transcript can show. The transcript must
hold, as sotto replay or sotto identify --replay checks it. python3 contrib/check.py CERTIFICATE FILE, which uses Python's standard library alone,
reads the two files and nothing of Sotto's, and computes everything again.

Examples:
  sotto prove shop.jsonl > shop.certificate.json`,
}

func (c *proveCommand) Run(s streams) error {
	in, err := openInput(c.Source, s)
	if err != nil {
		return err
	}
	defer in.Close()
	certificate, err := serve.Prove(in, s.known)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Source, err)
	}
	return printJSON(s, certificate)
}
