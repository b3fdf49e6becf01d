package report_test

import (
	"io"
	"testing"
)

func BenchmarkFigure(b *testing.B) {
	f := regrets()
	b.ReportAllocs()
	for b.Loop() {
		if err := f.WriteSVG(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	r := page()
	b.ReportAllocs()
	for b.Loop() {
		if err := r.WriteHTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
