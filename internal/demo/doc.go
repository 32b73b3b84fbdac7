// Command demo is `make demo`: Rectifier at work on a real API server, for
// somebody who wants to see it before reading about it.
//
// demo.go is the show in the order of its acts:
//
//	control plane ─▶ CRD, Deployments, Backups ─▶ what is wrong (table)
//	     ─▶ `rectifier run` as a process of its own, under RBAC
//	     ─▶ its fixes, told by the Events on the objects
//	     ─▶ a second writer that disturbs them for some seconds
//	     ─▶ what is right (table), and the requests in the audit log
//
// The demo is a test too. What each object should be is written down in
// scenario.go and never asked of Rectifier; the requests are counted by the
// API server. run returns an error if one object is not as it should be, if
// anything but the wrong fields has changed, or if there was a GET, a PUT or a
// write too many.
//
// Every process that is started ends with this one, however it ends: the
// servers by package controlplane, rectifier by the watchdog in rectifier.go.
package main
