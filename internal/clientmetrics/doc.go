// Package clientmetrics counts and times the requests of all clients of the
// process: rest_client_*, with the names and buckets that other Kubernetes
// controllers have.
//
// client-go has one hook for each metric and process, which its first user sets:
// this package, when it is imported. So the collectors are of the process too, and
// any number of registries can take them.
//
// Labels are the HTTP method and the code of the answer. The host is left out:
// there is one API server. A watch is counted when it is answered, and is not
// timed: client-go times the requests that it reads to their end, which a watch is
// not. A list, and a write, is: its whole time counts.
package clientmetrics
