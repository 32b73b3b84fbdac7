// Package rbac knows what rights a set of rules needs, and no more:
//
//	rules.Set ──For──▶ Needs ──Roles──▶ Role ──YAML, List──▶ ClusterRole, Role, bindings
//	                     └──Missing──▶ the needs that a cluster does not grant
//
// It is the only place that decides what the engine may ask of a cluster: the
// engine watches what Watched lists, `rectifier rbac` prints what For says, and
// `rectifier rbac --check` asks the cluster for the same.
//
// A need names one verb on one resource or subresource, in one namespace or in
// all, and the rules that cannot work without. Some needs are optional: without
// them the rules work, and something else is lost, which the need tells. A verb,
// a group or a resource is never '*'.
//
// The package is pure: it knows no cluster, and does no requests. What it makes
// is the same for the same rules, in whatever order they were read.
package rbac
