// Package live is what a live cluster knows, for commands that look once and
// do not watch: which resources there are, their schemas, one object, its
// Namespace, and what rules look up. It evaluates with the same rules.Evaluate
// as the engine and package offline; only where objects come from differs.
//
// Data flow: Connect reads discovery, one or two requests. Resource finds the
// resource that an argument such as deploy or deployments.v1.apps means. Get
// reads an object, Evaluate its Namespace and what the rules look up, and runs
// the rules. Known tells rules/lint about the cluster.
//
// All requests are reads: GET and LIST, under the caller's identity. What it
// may not read is not known: rules that need it say so, as in the engine. Each
// thing is asked for once and kept, so that all rules of one evaluation see the
// same. Messages of the server can contain whole objects: errors hold the verb,
// the resource and the machine-readable reason.
//
// A Cluster is safe for concurrent use.
package live
