package paper

import (
	"fmt"
	"regexp"
	"strings"
)

// begins are the pages on which parts of the two theses begin, by their tables of contents. The
// papers, [Azize and Basu 2024], [Chowdhury and Zhou 2023] and [Azize et al. 2023], are read where
// pages have no numbers.
func begins(source string) map[string]int {
	switch source {
	case "000":
		return map[string]int{
			"§2.1.2": 13, "§2.1.3": 16, "§2.1.4": 18, "§2.1.5": 20, "§2.3.4": 41, "§2.3.5": 43,
			"§2.3.6": 44, "§2.3.7": 45,
			"§3.6": 68, "§3.8": 76, "§4.2": 80, "§4.3.1": 91, "§4.3.2": 95, "§4.4": 96, "§4.5": 99,
			"§5.1": 102, "§5.2": 103, "§5.3.1": 108, "§5.3.2": 109, "§5.3.3": 113, "§5.4.1": 117,
			"§5.4.2": 119, "§5.4.3": 122,
			"§5.5.1": 125, "§5.5.2": 125, "§5.5.3": 128, "§5.6": 128,
			"§6.2": 135, "§6.3": 139, "§6.4": 140, "§6.5.1": 144, "§6.5.2": 145, "§6.5.3": 146, "§6.6": 147,
			"§7.1.1": 152, "§7.1.2": 155, "§7.2": 156, "§7.3": 158, "§7.4": 159, "§7.5": 161,
			"Appendix A": 171, "Appendix B.3": 179, "Appendix B.4": 184, "Appendix C.1": 194,
			"Appendix C.2": 200, "Appendix C.3": 214, "Appendix C.4": 223, "Appendix D.3": 241,
			"Appendix D.4": 245,
		}
	case "002":
		return map[string]int{
			"§2.1.1": 7, "§2.1.2": 12, "§2.2": 14, "§2.2.1": 15, "§3.3": 26, "§3.4": 28, "§4.1": 30,
			"§4.2": 33, "§5.1": 36,
			"chapter 6": 43, "§A.1": 53, "§A.2": 58, "§A.3": 65,
		}
	}
	return nil
}

var part = regexp.MustCompile(`§[0-9A-Z]+(\.[0-9]+)*|Appendix [A-Z](\.[0-9]+)?|chapter [0-9]+`)

// passage adds to where a claim stands on which page that part of its source begins, or
// that of its figure.
func passage(source, where, figure string) string {
	pages := begins(source)
	var from []string
	for _, text := range []string{where, figure} {
		for _, p := range part.FindAllString(text, -1) {
			if n, ok := pages[p]; ok {
				from = append(from, fmt.Sprintf("p. %d", n))
			}
		}
		if len(from) > 0 {
			break
		}
	}
	if len(from) == 0 {
		return where
	}
	return where + " (from " + strings.Join(from, ", ") + ")"
}
