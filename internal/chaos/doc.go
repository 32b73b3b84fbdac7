// Package chaos injects faults into the real things (kube-apiserver, etcd, the
// network between, webhooks, other writers, Rectifier's own processes) and says
// whether Rectifier came through: no object lost, no request in a hot loop, all
// right at the end.
//
// Each fault is a scenario of TestChaos. The short ones run with all tests;
// `make chaos` runs all of them and prints a table: fault, what happened,
// verdict. Faults of servers and network end in the same judgement, judge_test.go:
// requests are counted against what is justified, in the client where the API
// server may be away; every accepted PATCH was decided on the version that it
// replaced; the engine is quiet, and keeps no goroutines.
package chaos
