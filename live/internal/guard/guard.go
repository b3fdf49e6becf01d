// Package guard holds the service to what it was: 1000 random traces of requests, with faults of the disk,
// crashes and two processes, must be answered, shown and stored byte by byte as before. It is tests alone.
// A change of when something is released changes digests on purpose: each difference is to be explained.
package guard
