// Package simulate tries the service, which is linked as it is, in worlds that follow from a seed: clock, disk,
// network, people, operators and faults are simulated, in one process and without sleeping. A model remembers
// what each person was told, and holds what the service does against the invariants (TestSimulate). And 1000
// traces of requests are answered, shown and stored byte by byte as they were (TestGuard): a change of when
// something is released changes their digests on purpose, and each difference is to be explained. It is tests
// alone. Begin with make simulate.
package simulate
