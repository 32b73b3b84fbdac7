// Package importer turns admission policies into rules for the objects that
// exist already: MutatingAdmissionPolicy with its bindings
// (admissionregistration.k8s.io, v1, v1beta1 and v1alpha1), and Kyverno's
// MutatingPolicy (policies.kyverno.io) as far as it says nothing that a
// MutatingAdmissionPolicy could not say.
//
// Data flow:
//
//	files ──read──▶ policies, bindings ──resources──▶ what a pair matches ──write──▶ rule files
//	                      └──expressions──▶ findings (what is lost, what is to be known)
//
// Expressions are never rewritten. What cannot be carried over is a Finding
// with its position and a reason; nothing is dropped silently. A part whose
// absence makes the rule act on fewer objects (a subresource, a wildcard) is
// left out alone; anything else takes its policy or binding with it, because
// a rule that lacks a condition would change what the policy leaves alone.
//
// Import is pure and safe for concurrent use. It expands nothing and asks no
// cluster: a rule names its resources as the policy does.
package importer
