package main

import (
	"io"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// bill writes the bill of materials of a program: what the linker put into it, and nothing that a go.mod
// merely asks for. It has neither a serial number nor the time at which it was made, which differ each time.
func (p *plan) bill(t target, program string) error {
	g, err := bin.NewGenerator(program, bin.WithIncludeStdlib(true), bin.WithVersionOverride(p.version),
		bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return err
	}
	bom, err := g.Generate()
	if err != nil {
		return err
	}
	return write(p.name(t.String()+".cdx.json"), func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).
			EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	})
}
