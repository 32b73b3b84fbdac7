// Package offline runs rules without a cluster: the work behind `rectifier fix`
// and `rectifier test`, and what lint knows of resources. It evaluates with the
// same rules.Evaluate as the engine; what differs is only where objects come from
// and where results go.
//
//	manifests ──▶ World: lookups, Namespaces ─┐
//	CRDs ──▶ NewCatalog: kinds, schemas ──────┤
//	an object ──▶ Fixer.Evaluate ◀────────────┘──▶ Fixer.Fix: the manifest, changed
//	                                             └─▶ RunTests: held against a RuleTest
//
// A World is built first and then only read; a Fixer is immutable and safe for
// concurrent use.
package offline
