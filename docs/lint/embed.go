// Package lintdocs holds the pages of the checks of `rectifier lint`, which stand
// beside it, for lint --explain.
package lintdocs

import "embed"

//go:embed *.md
var pages embed.FS

// Page returns the page of a check in Markdown; ok is false if there is none.
func Page(id string) (page string, ok bool) {
	text, err := pages.ReadFile(id + ".md")
	return string(text), err == nil
}
