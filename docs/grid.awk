# A table of docs/grid.md from the summary.csv of examples/grid.yaml, of a budget, with a title and the policies in rows.
function spaced(x, s) {
	s = sprintf("%.0f", x)
	return length(s) > 4 ? substr(s, 1, length(s) - 3) " " substr(s, length(s) - 2) : s
}
index(" " rows " ", " " $3 " ") && $4 == budget && $9 == "regret" && $10 == 1e6 {
	mean[$3, $2] = $12; half[$3, $2] = $13
	if (!($2 in least) || $12 < least[$2]) least[$2] = $12
}
END {
	n = split(rows, policy, " ")
	print "| " title " | mu1 | mu2 | mu3 | mu4 |\n|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		row = "| `" policy[i] "` |"
		for (k = 1; k <= 4; k++) {
			cell = sprintf("%s ± %.1f", spaced(mean[policy[i], "mu" k]), half[policy[i], "mu" k])
			row = row " " (mean[policy[i], "mu" k] == least["mu" k] ? "**" cell "**" : cell) " |"
		}
		print row
	}
}
