// Package patch applies, shrinks and renders patches on JSON-shaped Go values.
//
// It is the arithmetic below the rule language: what a merge patch (RFC 7386) or
// a JSON patch (RFC 6902) does to an object, what of it is not already so, and
// the bytes of the one request that follows. It knows no CEL, no YAML, no cluster.
//
// # Data flow
//
//	rendered merge ──CheckMerge──▶ Shrink ──▶ nil: nothing is sent
//	                                  └─────▶ ApplyMerge (working copy) ──▶ MergeBody
//	rendered ops ──ParseOps──CheckOps──▶ ApplyOps (working copy) ──▶ OpsBody
//	several merges of one chain ──ComposeMerge──▶ Shrink
//	a merge beside ops in one chain ──MergeToOps──▶ OpsBody
//
// # Values
//
// A value is map[string]any, []any, string, bool, int64, float64 or nil;
// Normalize brings anything into that shape or says why it cannot. A nil map or
// slice is an empty one. Values of any other Go type are never equal to anything
// and are refused when a body is written; no function panics on them.
//
// # Ownership
//
// Nothing here modifies what it is given, because objects come from an informer
// cache that everybody shares. A result is built by copy-on-write along the
// changed path: it shares all untouched parts with the object, and what was put
// in with the patch. So results are read-only too, for ever; the next change is
// made by the next call. Every function is safe for concurrent use.
//
// # Where this departs from the letter of RFC 7386
//
// A no-op must be recognised before a request is made of it, so in merge patches:
//
//   - a map that only removes keys does nothing where there is no map to remove
//     them from ({a: {b: null}} onto {}: the RFC would create an empty a, and in a
//     pod template that is a rollout). An explicit {} still creates: selfSigned: {};
//   - an empty annotations, labels, finalizers or ownerReferences of any metadata
//     is the same as none, as it is for the API server;
//   - null members of maps inside lists are dropped, as the API server does.
//
// Shrink takes these decisions and leaves a patch on which we, the RFC and the
// API server agree; a parity test on json-patch.v4, the server's own library,
// holds that.
//
// # Secrets
//
// Errors hold paths, indices and type names, never values.
package patch
