// Package imports holds the shape of the repository: which package may import
// which, and which folders there are. It has no code, only a test.
//
//	cmd ─▶ engine ─▶ rules, gvr
//
// A rule is written down with its reason, which the test prints when it is
// broken. Where a rule should change, change it in imports_test.go and say why
// in an ADR (docs/adr).
package imports
