d <- read.csv("results/small/summary.csv")
regret <- subset(d, metric == "regret" & t > 0 & mean > 0)
lines <- split(regret, paste(regret$policy, regret$budget, sep = ", "))
pdf("regret-r.pdf", width = 7, height = 4)
plot(NA, xlim = range(regret$t), ylim = range(regret$mean), log = "xy", xlab = "round t",
     ylab = "pseudo-regret")
for (i in seq_along(lines)) {
  x <- lines[[i]]
  half <- qt(0.975, x$runs - 1) * x$se
  low <- pmax(x$mean - half, min(regret$mean))
  polygon(c(x$t, rev(x$t)), c(low, rev(x$mean + half)), col = adjustcolor(i, 0.2), border = NA)
  lines(x$t, x$mean, col = i)
}
legend("topleft", names(lines), col = seq_along(lines), lty = 1)
invisible(dev.off())

last <- subset(d, metric == "regret" & t == max(t))
print(round(tapply(last$mean, list(last$policy, last$budget), sum), 1))

library(jsonlite)
asked <- NULL
releases <- NULL
for (line in lapply(readLines("trial.jsonl"), fromJSON)) {
  if (!is.null(line$trial)) arms <- line$arms
  if (!is.null(line$plays)) asked <- line$plays$arm[line$plays$release %in% TRUE]
  if (!is.null(line$sum)) {
    releases <- rbind(releases, data.frame(arm = arms[asked + 1], n = line$n, sum = line$sum))
  }
}
means <- aggregate(cbind(n, sum) ~ arm, releases, sum)
print(setNames(round(means$sum / means$n, 4), means$arm))
ledger <- fromJSON("ledger.json")
print(tapply(ledger$entries$releases, ledger$entries$mechanism$mechanism, sum))
