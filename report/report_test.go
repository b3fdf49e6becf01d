package report_test

import (
	"bytes"
	"testing"

	"github.com/sotto-dp/sotto/report"
)

func svg(t interface {
	Helper()
	Fatal(...any)
}, f report.Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func html(t *testing.T, r report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func text(t *testing.T, table report.Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestX(t *testing.T) { t.Log("\n" + string(text(t, table()))) }
