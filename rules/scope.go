package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// The names that CEL of a rule may read; variables and lookups have a prefix.
const (
	objectName     = "object"
	namespaceName  = "namespaceObject"
	nowName        = "now"
	variablePrefix = "variables."
	lookupPrefix   = "lookups."
)

// scope gives the expressions of one rule, on one object, their names.
type scope struct {
	in       *Input
	rule     *Rule
	object   map[string]any // what `object` is now: patches see those before them
	start    map[string]any // what variables and lookups are computed from
	vars     []lazyValue    // like rule.variables; empty until one is read
	found    []lazyList     // like rule.Lookups; nil until one is read
	optedOut bool
	tainted  bool      // the object holds what another rule read from Secrets
	recheck  time.Time // when the rule wants to be asked again; zero: never
}

type lazyValue struct {
	done bool
	val  expression.Value
	err  error
}

type lazyList struct {
	done bool
	list []any
	err  error
}

// begin makes the scope one of a rule on a working copy. in is as it was.
func (s *scope) begin(r *Rule, object map[string]any, tainted bool) {
	*s = scope{in: s.in, rule: r, object: object, start: object, tainted: tainted, vars: s.emptied().vars}
}

// emptied is a scope that holds nothing but space.
func (s *scope) emptied() scope {
	clear(s.vars[:cap(s.vars)])
	return scope{vars: s.vars[:0]}
}

func (s *scope) condition() (bool, error) {
	if s.rule.condition == nil {
		return true, nil
	}
	v, err := s.rule.condition.Eval(s)
	if err != nil {
		return false, err
	}
	return v.Bool()
}

// Resolve implements expression.Resolver.
func (s *scope) Resolve(name string) (any, error) {
	switch name {
	case objectName:
		return s.object, nil
	case nowName:
		return s.in.Now, nil
	case namespaceName:
		if s.in.NamespaceObject == nil {
			return nil, nil // not a nil map: CEL shall see null
		}
		return s.in.NamespaceObject, nil
	}
	if variable, ok := strings.CutPrefix(name, variablePrefix); ok {
		return s.variable(variable)
	}
	return s.lookup(strings.TrimPrefix(name, lookupPrefix))
}

// variable evaluates a variable when it is first read, and never again.
func (s *scope) variable(name string) (any, error) {
	if len(s.vars) == 0 {
		s.vars = slices.Grow(s.vars, len(s.rule.variables))[:len(s.rule.variables)]
	}
	for i := range s.rule.variables {
		if s.rule.variables[i].name != name {
			continue
		}
		lazy := &s.vars[i]
		if !lazy.done {
			lazy.val, lazy.err = s.rule.variables[i].program.Eval(atStart{s})
			lazy.done = true
		}
		return lazy.val, lazy.err
	}
	return nil, fmt.Errorf("no variable %q", name) // the checker excludes this
}

// lookup looks something up when it is first read, and never again.
func (s *scope) lookup(name string) (any, error) {
	if s.found == nil {
		s.found = make([]lazyList, len(s.rule.Lookups))
	}
	for i, l := range s.rule.Lookups {
		if l.Name != name {
			continue
		}
		lazy := &s.found[i]
		if !lazy.done {
			lazy.list, lazy.err = s.find(l)
			lazy.done = true
		}
		return lazy.list, lazy.err
	}
	return nil, fmt.Errorf("no lookup %q", name) // the checker excludes this
}

func (s *scope) find(l *Lookup) ([]any, error) {
	q, err := l.query(atStart{s})
	if err != nil {
		return nil, fmt.Errorf("lookup %s: %w", l.Name, err)
	}
	if q == nil {
		return []any{}, nil
	}
	unknown := &UnknownError{What: fmt.Sprintf("lookup %s of %s", l.Name, ResourceName(l.Resource))}
	if s.in.Lookups == nil {
		return nil, unknown
	}
	objects, err := s.in.Lookups.Find(*q)
	if err != nil {
		unknown.Err = err
		return nil, unknown
	}
	list := make([]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	return list, nil
}

// atStart is the scope with the object as it was before the rule's patches, so
// that a variable's value does not depend on when it is first read.
type atStart struct{ *scope }

func (s atStart) Resolve(name string) (any, error) {
	if name == objectName {
		return s.start, nil
	}
	return s.scope.Resolve(name)
}
