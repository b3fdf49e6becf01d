package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/atomicfile"
)

type flagdCommand struct {
	File  string        `arg:"" help:"${flagdFile}" type:"path"`
	Every time.Duration `default:"5s" help:"${flagdEvery}" placeholder:"TIME"`
	Once  bool          `help:"Write the file once, and end."`
	asks
}

// flagdTexts are help texts that are too long for their flags.
var flagdTexts = kong.Vars{
	"flagdFile":  "The file, which is replaced whole when a plan has changed.",
	"flagdEvery": "How often the service is asked; less than half of any leases.for.",
	"flagd": `Each experiment that declares leases is a flag, which flagd and its providers evaluate without a
request. The key needs the scope decide. Report exposures by a hook, which docs/serve.md has. While the service is not
available the file stays as it is, and what it gives after its plan's end counts nowhere.

Examples:
  sotto flagd flags.json
  sotto flagd flags.json --once --key-file decide.key`,
}

// leastEvery is as often as a service is asked at most.
const leastEvery = 100 * time.Millisecond

func (c *flagdCommand) Run(ctx context.Context, s streams) error {
	if c.Every < leastEvery {
		return usagef("--every is %v, must be at least %v", c.Every, leastEvery)
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	var has []byte
	for failed := false; ; {
		flags, err := to.Flags(ctx)
		switch {
		case ctx.Err() != nil:
			return interrupted("stopped; " + c.File + " stays as it is")
		case err != nil && (has == nil || !errors.Is(err, client.ErrUnavailable)):
			return asked(err)
		case err != nil && !failed:
			fmt.Fprintf(s.err, "%s stays as it is: %v\n", c.File, err)
		case err == nil && !bytes.Equal(flags, has):
			if err := atomicfile.WriteFile(c.File, append(indented(flags), '\n'), 0o644); err != nil {
				return usage(err)
			}
			has = flags
		}
		if failed = err != nil; c.Once {
			return nil
		}
		select {
		case <-time.After(c.Every):
		case <-ctx.Done():
		}
	}
}

// indented is JSON for people, too.
func indented(text []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return text
	}
	return out.Bytes()
}
