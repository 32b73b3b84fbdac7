// Package openapi knows the schemas of kinds, and merges partial objects into objects by them.
//
// It does what MutatingAdmissionPolicy's ApplyConfiguration does, without a request: lists that the schema keys are merged
// element by element, and what could only be replaced whole (atomic lists and maps) is refused.
//
// # Data flow
//
//	builtin.json.gz (embedded) ─ Builtin ─┐
//	CRD manifests ────────────── CRDs ────┼─ OpenAPI v3 definitions ─▶ what one kind reaches ─▶ *Type ─▶ Check, Merge
//	/openapi/v3 of a server ──── Cluster ─┘                            (the rest is dropped)
//	                                                              object + merged ─▶ rules/patch.Diff ─▶ JSON patch
//
// A Type is built when it is first asked for, from the definitions that its kind refers to and no others. How a definition
// becomes lists, maps and keys is decided by k8s.io/kube-openapi/pkg/schemaconv, the same code as in the API server. The walk
// over the values is ours (docs/adr/0004-apply-configuration.md says why); tests compare every outcome with the server's.
//
// # Ownership
//
// Nothing here modifies what it is given. A merged object shares all that was not changed with the object, and what was put in
// with the configuration, so it is read-only too. What is shared is recognised by rules/patch without being walked.
//
// # Concurrency
//
// A Type is immutable. Every source is safe for concurrent use; concurrent first uses of one kind build it once.
//
// # Secrets
//
// Errors hold paths, indices, and names of kinds and of JSON types; never values.
//
// # builtin.json.gz
//
// The schemas of Kubernetes' own kinds, made by internal/schemagen from api/openapi-spec/v3 of k8s.io/kubernetes, and reduced to
// what a merge and a type check need. They are Copyright The Kubernetes Authors and licensed under the Apache License, Version
// 2.0 (https://www.apache.org/licenses/LICENSE-2.0).
package openapi

//go:generate go run github.com/rectifier-dev/rectifier/internal/schemagen
