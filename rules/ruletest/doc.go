// Package ruletest is the language of tests of rules: RuleTest files, what a
// case expects, and whether it got that. It is as pure as package rules and
// evaluates nothing itself.
//
// Data flow:
//
//	files ── Read ──▶ []*File: tests, problems
//	                   │
//	a Case ── Check(case, evaluate) ──▶ CaseReport: outcome, failures
//	                   ▲
//	          an Evaluate function: internal/offline, with the rules, CRDs and
//	          context objects that the test names
//
// A problem is something wrong with a test file: it is reported with its
// position, and its test is not run. A Failure is an expectation that does not
// hold. Both are data; text.go and junit.go print them.
//
// Values of Secrets never get into a report: see hide.go.
package ruletest
