// Command bench compares rectifier with a controller written by hand, on a real
// API server: `make bench`. It prints which bars hold, and writes docs/benchmarks.md.
//
// Each contender is a process of its own, so that its processor time, its memory
// and its heap are only its own:
//
//	rectifier   bin/rectifier run with the built-in rule
//	typed       the same job by hand: typed informers, workqueue, DeepCopy, Update;
//	            also for Pods, and for the custom resource of package rollouts
//	dynamic     a dynamic informer as client-go has it, and no work
//	patchloop   nothing but patches: how fast the API server takes them
//	cache       package gvr alone, with the fields of the built-in rule
//
// They take turns within each round, and the API server is left to become quiet
// between two of them. What is reported is the median of the rounds, with the
// smallest and the largest value: on a shared machine times wander.
//
//	main.go keep.go plan.go      the command line, and how much is done
//	scenarios.go suite.go        all scenarios, in their order
//	offline.go start.go sync.go  one scenario each (others.go: custom and pods): what
//	latency.go events.go         is done, and what is noted
//	rules.go wire.go churn.go
//	drift.go others.go
//	plane.go seed.go             the API server and its objects
//	writes.go load.go            writes that make work, and what they cost
//	observer.go requests.go      what the API server says of what was done
//	process.go idle.go           the contenders
//	results.go bars.go           the figures, and what they have to be
//	report.go markdown.go plot.go
//	tree.go machine.go           where they were measured
//
// It needs Linux: see clock_linux.go.
package main
