package bandit

import (
	"fmt"
	"strconv"
	"strings"
)

// laws says how each law is written.
const laws = "bernoulli(p), gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), " +
	"uniform(lo,hi) or table(v1:p1,v2:p2,…)"

// ParseLaw reads a law as String writes it: bernoulli(0.75), gaussian(0.5,0.1),
// clipped-gaussian(0.5,0.1,0,1), beta(2,3), uniform(0,1), table(0:0.5,1:0.5). A bare number is the
// mean of a Bernoulli. Spaces around names and numbers do not matter. An empirical law cannot be
// parsed: it is read from its log by ReadCSV.
func ParseLaw(text string) (Law, error) {
	text = strings.TrimSpace(text)
	name, rest, call := strings.Cut(text, "(")
	if !call {
		p, err := parseNumber(text)
		if err != nil {
			return nil, fmt.Errorf("law is %q, must be a number (the mean of a Bernoulli) or %s", text, laws)
		}
		b, err := NewBernoulli(p)
		return law(text, b, err)
	}
	args, tail, closed := strings.Cut(rest, ")")
	if !closed || tail != "" {
		return nil, fmt.Errorf("law is %q, must have one closing bracket, at the end", text)
	}
	switch name = strings.TrimSpace(name); name {
	case "bernoulli":
		x, err := parseArgs(text, args, "p")
		if err != nil {
			return nil, err
		}
		l, err := NewBernoulli(x[0])
		return law(text, l, err)
	case "gaussian":
		x, err := parseArgs(text, args, "mean", "sd")
		if err != nil {
			return nil, err
		}
		l, err := NewGaussian(x[0], x[1])
		return law(text, l, err)
	case "clipped-gaussian":
		x, err := parseArgs(text, args, "mean", "sd", "lo", "hi")
		if err != nil {
			return nil, err
		}
		l, err := NewClippedGaussian(x[0], x[1], x[2], x[3])
		return law(text, l, err)
	case "beta":
		x, err := parseArgs(text, args, "a", "b")
		if err != nil {
			return nil, err
		}
		l, err := NewBeta(x[0], x[1])
		return law(text, l, err)
	case "uniform":
		x, err := parseArgs(text, args, "lo", "hi")
		if err != nil {
			return nil, err
		}
		l, err := NewUniform(x[0], x[1])
		return law(text, l, err)
	case "table":
		var values, p []float64
		for pair := range strings.SplitSeq(args, ",") {
			v, q, ok := strings.Cut(pair, ":")
			if !ok {
				return nil, fmt.Errorf("law %q: pair is %q, must be value:probability", text,
					strings.TrimSpace(pair))
			}
			x, err := parseArgs(text, v+","+q, "value", "probability")
			if err != nil {
				return nil, err
			}
			values, p = append(values, x[0]), append(p, x[1])
		}
		l, err := NewTable(values, p)
		return law(text, l, err)
	case "empirical":
		return nil, fmt.Errorf("law %q: an empirical law is read from the CSV of its rewards", text)
	}
	return nil, fmt.Errorf("law %q: name is %q, must be %s", text, name, laws)
}

// law hands on what a constructor returned: no half-made law, and an error that quotes the text.
func law(text string, l Law, err error) (Law, error) {
	if err != nil {
		return nil, fmt.Errorf("law %q: %w", text, err)
	}
	return l, nil
}

// parseArgs reads the numbers between the brackets, one for each field.
func parseArgs(text, args string, fields ...string) ([]float64, error) {
	parts := strings.Split(args, ",")
	if len(parts) != len(fields) {
		return nil, fmt.Errorf("law %q: the number of parameters is %d, must be %d (%s)", text,
			len(parts), len(fields), strings.Join(fields, ","))
	}
	x := make([]float64, len(fields))
	for i, f := range fields {
		var err error
		if x[i], err = parseNumber(strings.TrimSpace(parts[i])); err != nil {
			return nil, fmt.Errorf("law %q: %s is %q, %w", text, f, strings.TrimSpace(parts[i]), err)
		}
	}
	return x, nil
}

// parseNumber reads a decimal number. NaN and the infinities pass: whoever knows the field's
// range refuses them.
func parseNumber(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xX_") {
		return 0, fmt.Errorf("must be a decimal number in the range of a double")
	}
	return x, nil
}
