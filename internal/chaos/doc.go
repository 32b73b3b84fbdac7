// Package chaos injects faults into the real things (kube-apiserver, etcd, the
// network between, webhooks, other writers, Rectifier's own processes) and says
// whether Rectifier came through: no object lost, no request in a hot loop, all
// right at the end.
//
// Each fault is a scenario of TestChaos. The short ones run with all tests;
// `make chaos` runs all of them and prints a table: fault, what happened,
// verdict.
package chaos
