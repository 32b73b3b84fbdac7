package rules

import (
	"fmt"
	"unicode/utf8"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// DefaultReason is the reason of events of rules that do not name one.
const DefaultReason = "Rectified"

// maxMessage is the longest event message that the API server takes.
const maxMessage = 1024

// DefaultMessage is what is told of a change if the rule has no message, or its
// message must not be told.
func (r *Rule) DefaultMessage() string { return "changed by rule " + r.Name }

type eventTemplate struct {
	reason  string
	message mixed // nil: a default
}

// render never fails: a fix is not held back because it cannot be described.
// What a rule before this one read from Secrets may be in the object: then
// nothing of it is told. It also reports whether the message quotes an error, and
// with that perhaps a value that its author did not choose to tell.
func (e eventTemplate) render(s *scope, names expression.Resolver) (event Event, quotes bool) {
	message := s.rule.DefaultMessage()
	if e.message != nil && !(s.tainted && len(programsOf(e.message)) > 0) {
		m, err := e.message.render(names)
		if err != nil {
			m = fmt.Sprintf("%s (its message could not be evaluated: %v)", message, err)
			if quotes = !s.isSecret(); !quotes {
				m = message + " (its message could not be evaluated)"
			}
		}
		message = m
	}
	return Event{Reason: e.reason, Message: truncate(message, maxMessage)}, quotes
}

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "…"
	cut := n - len(dots)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + dots
}
