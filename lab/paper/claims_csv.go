package paper

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
)

// WriteClaims writes claims.csv: a line a claim, in the order of the results, after a head. The
// answer is that of the check, and the verdict what it means for the claim. Numbers have all their
// digits; where there is none the field is empty. Seconds are those of the claim's figure.
func WriteClaims(w io.Writer, results []Result) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	rows := [][]string{{"id", "source", "where", "claim", "verdict", "answer", "statistic", "low",
		"high", "runs", "seconds"}}
	for i := range results {
		r := &results[i]
		for _, c := range r.Outcomes {
			rows = append(rows, []string{
				c.ID, r.Source, oneLine(c.Where), oneLine(c.Text), string(c.Verdict),
				string(c.Answer), digits(c.Value), digits(c.Low), digits(c.High), strconv.Itoa(c.Runs),
				strconv.FormatFloat(r.Time.Seconds, 'f', 3, 64),
			})
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write claims: %w", err)
	}
	return nil
}

func digits(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// oneLine makes text safe on one line: no control characters, nothing invisible or that changes
// direction, and no line breaks.
func oneLine(s string) string { return strings.Join(strings.Fields(report.Clean(s)), " ") }
