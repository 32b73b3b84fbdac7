// Package statuspage shows people how an engine stands: a page at /, and the same
// as JSON at /api/status. It only reads.
//
// Data flow:
//
//	engine.Status ─▶ limit ─▶ JSON
//	       └──────▶ newPage (view.go, problems.go, rows.go) ─▶ assets/page.html
//
// What the engine hands over is data. What is put first, what a state means and
// what to do about it is said here. Names and messages come from the cluster and
// can be anything: html/template escapes them, and nothing else writes HTML.
//
// The page works without JavaScript: it then loads itself anew. With it,
// assets/status.js puts in what has changed, so that focus, scroll position and
// what is folded open stay. It needs nothing from elsewhere, and its headers
// forbid that (handler.go).
//
// Everything is safe for concurrent use.
package statuspage
