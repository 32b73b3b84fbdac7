// Command bench compares rectifier with a controller written by hand, on a real
// API server: `make bench`. It prints which bars hold, and writes docs/benchmarks.md.
//
// Each contender is a process of its own, so that its processor time, its memory
// and its heap are only its own:
//
//	rectifier   bin/rectifier run with the built-in rule
//	typed       the same job by hand: typed informers, workqueue, DeepCopy, Update
//	dynamic     a dynamic informer as client-go has it, and no work
//	patchloop   nothing but patches: how fast the API server takes them
//	cache       package gvr alone, with the fields of the built-in rule
//
// They take turns within each round, and the API server is left to become quiet
// between two of them. What is reported is the median of the rounds, with the
// smallest and the largest value: on a shared machine times wander.
//
//	suite.go                     all scenarios, in their order
//	start.go sync.go latency.go  one scenario each: what is done, and what is noted
//	rules.go churn.go drift.go
//	offline.go
//	plane.go seed.go writes.go   the API server, its objects, writes that make work
//	observer.go requests.go      what the API server says of what was done
//	process.go idle.go           the contenders
//	results.go bars.go           the figures, and what they have to be
//	report.go markdown.go plot.go
//
// It needs Linux: see clock_linux.go.
package main
