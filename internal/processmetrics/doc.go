// Package processmetrics tells of the process itself: which build it is, and what
// the Go runtime and the operating system say of it.
package processmetrics
