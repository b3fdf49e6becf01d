// Package paper holds the figures and the claims of the sources, as experiments and checks.
//
// A Figure is one page: what a source shows, the experiments and computations that make it again, and the claims the source makes of it. A
// Claim is decided by an interval, never by eye: it holds, it fails, or the runs that were made do not decide. Reproduce plays figures into a
// directory, goes on where it was stopped, and writes a site of static pages and claims.csv beside what it played.
//
// Two presets: Full is the scale of the sources, Quick is enough to decide the robust claims in minutes.
package paper
