// Package endpoints is what the process tells over HTTP, and to whom:
//
//	request ─▶ Serve: TLS, limits, timeouts
//	              └─▶ Surface.Full: /healthz                      open
//	                     │          /readyz                       short, or with detail
//	                     │          /metrics, /, /api/status      guarded
//	                     │             └─▶ Authorizer: TokenReview, SubjectAccessReview
//	                     ├─ Surface.Local: the same, open, for who asks for this host
//	                     ├─ Surface.Metrics: /metrics alone, guarded
//	                     └─ Surface.Health: /healthz and a short /readyz, for probes
//
// All of it is read-only, and nothing of it reads a body. Guarded means, with an
// Authorizer, that a bearer token is needed that the API server accepts, and the
// right to get a nonResourceURL: /metrics, or / for all that tells the status.
// Verdicts are cached for a short time, by a hash of the token. Without an
// Authorizer who reaches the port reads everything: so it is on loopback, where a
// browser has no token.
//
// What is slow, large or many is cut off: the process is there to put objects
// right, and answers beside that.
//
// Tokens never reach a log, whatever its verbosity. All that is exported is safe
// for concurrent use.
package endpoints
