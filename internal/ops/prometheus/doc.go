// Package prometheus tests what Rectifier ships for Prometheus and Grafana: the
// alerts and the dashboard of deploy/chart/files, and what is in
// deploy/prometheus.
//
// Without Prometheus, it is checked that each alert has a section in
// docs/alerts.md and a case for promtool, that panels do not lie over each other,
// and that docs/metrics.md has all metrics that are named.
//
// With it (see package ops), promtool runs the cases with the real times, and a
// real Prometheus scrapes real `rectifier run` processes on a real API server:
//
//	scenarios_test.go   what is done to them, and which alerts have to fire
//	lab_test.go         one scenario: its namespace, its processes, its job
//	monitor_test.go     Prometheus, and the alerts with short times
//	live_test.go        all scenarios at once, then the dashboard on what they left
//
// Each alert must have a scenario. All share one Prometheus and one API server;
// what is said of a scenario is said of its job.
package prometheus
