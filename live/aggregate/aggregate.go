// Package aggregate has the ways to sum users' messages by name, as package release wants them: in
// the open, by the secure aggregation of package secagg, and between two servers. What they
// promise, and to whom, is said in those packages. A [Journal] remembers what has left, so that no
// reward leaves twice.
package aggregate
