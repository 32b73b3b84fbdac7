// Package browser tests the status page as people meet it: in a real Chromium,
// with a real engine on a real API server behind it.
//
// Three states are produced: quiet (all is right), busy (many fixes of many
// rules) and problems (one of each kind that the page knows). What is looked at is
// the accessibility tree, the order of the focus, computed styles and the layout,
// not the HTML: package statuspage tests that.
//
// With RECTIFIER_SCREENSHOTS=folder, pictures of all states are written there: in
// light and dark, and as wide as a phone. Those in docs/images are made so.
//
// It holds nothing but tests; `make test-ops` runs them.
package browser
