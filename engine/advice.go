package engine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

// SetAdvice has readiness detail and status tell one line more, which the caller
// knows, and has logged; empty: no more.
func (e *Engine) SetAdvice(line string) {
	e.advised.Store(line, true)
	e.given.Store(&line)
}

// advice tells of rules that run, but may not do what their author expects:
// one line each, sorted.
func (e *Engine) advice() []string {
	var out []string
	if given := e.given.Load(); given != nil && *given != "" {
		out = append(out, *given)
	}
	for _, r := range e.rules().All() {
		if e.matchesNowhere(r) {
			out = append(out, fmt.Sprintf("rule %s: it matches in none of --namespace %s", r.Name, strings.Join(e.opts.Namespaces, ",")))
		}
		if r.MatchesOnlyIn(e.excluded) {
			out = append(out, fmt.Sprintf("rule %s: it does nothing: all that it matches is excluded (--exclude-namespace %s)", r.Name, strings.Join(e.opts.ExcludeNamespaces, ",")))
		}
		if r.Mode != rules.Enforce {
			continue
		}
		for _, resource := range r.Resources {
			if info, ok := e.informers.Info(resource); ok && info.Preferred != "" {
				out = append(out, fmt.Sprintf("rule %s on %s: it writes through a version that is not the preferred one: fields that only %s knows may be lost",
					r.Name, rules.ResourceName(resource), info.Preferred))
			}
		}
	}
	slices.Sort(out)
	return out
}

// matchesNowhere reports whether a rule is about other namespaces than the
// engine is limited to.
func (e *Engine) matchesNowhere(r *rules.Rule) bool {
	return len(e.opts.Namespaces) > 0 && !slices.ContainsFunc(e.opts.Namespaces, r.MayMatchIn)
}

// advise logs what advice has not been logged yet.
func (e *Engine) advise() {
	for _, line := range e.advice() {
		if _, told := e.advised.LoadOrStore(line, true); !told {
			klog.Background().Info("A rule may not do what is expected", "reason", line)
		}
	}
}
