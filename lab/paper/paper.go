// Package paper holds the figures and the claims of the sources, as experiments and checks.
//
// A Figure is one page: what a source shows, the experiments and computations that make it again,
// and the claims the source makes of it. A Claim has a check, which an interval decides, never the
// eye: what it tests holds, fails, or is undecided by the runs that were made. The claim says what
// each answer means for it: its Verdict. Runs alone refute nothing: that takes a proof or a
// counter-example on the page. Reproduce plays figures into a directory, goes on where it was
// stopped, and writes a site of static pages and claims.csv beside what it played.
//
// Two presets: Full is the scale of the sources, Quick is enough to decide the robust
// claims in minutes.
package paper
