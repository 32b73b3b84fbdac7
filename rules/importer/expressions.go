package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// names of rules' expressions that mean the same in admission.
const (
	objectName    = "object"
	namespaceName = "namespaceObject"
	variablesName = "variables"
)

// check examines all expressions of a policy: what they refer to, and whether
// they compile in a rule.
func (p *policy) check() {
	env := declare(declare(expression.NewEnv(), objectName, expression.Dyn), namespaceName, expression.Dyn)
	for _, c := range p.conditions { // they come before the variables
		t, ok := p.expression(c.expression, env, nil)
		if ok && !t.MayBeBool() {
			p.lose(c.expression.node, "a match condition must be bool, but the expression gives %s", t)
		}
		p.noteNamespace(c.expression)
	}
	var known []string
	for _, v := range p.variables {
		switch {
		case !variableName.MatchString(v.name.value):
			p.lose(v.name.node, "%q is not the name of a variable in a rule: letters, digits and _, not a digit first", v.name.value)
			continue
		case slices.Contains(known, v.name.value):
			p.lose(v.name.node, "the variable %q is given twice", v.name.value)
			continue
		}
		t, ok := p.expression(v.expression, env, known)
		if !ok {
			t = expression.Dyn // so that what reads it is still checked
		}
		env = declare(env, variablesName+"."+v.name.value, t)
		known = append(known, v.name.value)
	}
	if with, err := env.WithPatchTypes(); err == nil {
		env = with
	}
	for _, m := range p.mutations {
		if m.expression.node != nil {
			p.expression(m.expression, env, known)
		}
	}
	if !p.lost {
		p.checkOrder()
	}
}

// declare adds a name; one that cannot be declared is reported by the compiler
// where it is read.
func declare(env *expression.Env, name string, t expression.Type) *expression.Env {
	next, err := env.Declare(name, t)
	if err != nil {
		return env
	}
	return next
}

// expression reports what of an expression means nothing to a rule. It returns
// the type of its result if it compiles.
func (p *policy) expression(t text, env *expression.Env, variables []string) (result expression.Type, ok bool) {
	refs, issues := expression.FindReferences(t.value)
	fine := true
	for _, ref := range refs.Names {
		if msg := p.objection(ref, variables); msg != "" {
			fine = false
			p.loseIn(t, ref.Offset, "%s", msg)
		}
	}
	for _, f := range refs.Unknown {
		fine = false
		p.loseIn(t, f.Offset, "the function %s is not part of Kubernetes' CEL%s", f.Name, p.library())
	}
	var program *expression.Program
	if fine && issues == nil {
		program, issues = env.Compile(t.value)
	}
	for _, issue := range issues {
		p.loseIn(t, issue.Offset, "%s", issue.Msg)
	}
	if program == nil {
		return expression.Dyn, false
	}
	return program.Result(), true
}

// objection says why a name cannot be carried over; empty if it can.
func (p *policy) objection(ref expression.Reference, variables []string) string {
	first := ""
	if len(ref.Path) > 0 {
		first = ref.Path[0]
	}
	switch ref.Name {
	case objectName:
		if len(ref.Path) == 2 && first == "metadata" && ref.Path[1] == "generateName" {
			return "metadata.generateName: it matters before an object has its name; an object that exists has one"
		}
		return ""
	case namespaceName:
		for _, field := range ref.Path {
			if field == "creationTimestamp" || field == "deletionTimestamp" {
				return "namespaceObject." + strings.Join(ref.Path, ".") + " is a timestamp in admission but a string in a rule: write timestamp(…) around it in the rule"
			}
		}
		return ""
	case variablesName:
		switch {
		case first == "":
			return "variables is not a value: name one of them"
		case !slices.Contains(variables, first):
			return "there is no variable " + first + " here"
		}
		return ""
	case "request":
		return "request: " + requestAdvice(first)
	case "oldObject":
		return "oldObject: it is the object before an update; a rule sees the object as it is stored"
	case "params":
		return "params: a rule has no parameters"
	case "authorizer":
		return "authorizer: it asks about the user of a request; a stored object has none"
	}
	return "there is no " + ref.Name + " in a rule" + p.library()
}

func requestAdvice(field string) string {
	switch field {
	case "name", "namespace":
		return "there is none when an object is only there; object.metadata." + field + " says the same"
	case "operation":
		return "there is none, and no operation, when an object is only there"
	case "userInfo":
		return "there is none, and no user, when an object is only there"
	}
	return "there is none when an object is only there"
}

// library says where a name may come from.
func (p *policy) library() string {
	if p.kind == kyvernoKind {
		return " (Kyverno's own libraries cannot be carried over; a rule reads other objects with lookups)"
	}
	return ""
}

// noteNamespace tells of a condition that reads what is null for conditions in
// admission.
func (p *policy) noteNamespace(t text) {
	refs, _ := expression.FindReferences(t.value)
	for _, ref := range refs.Names {
		if ref.Name == namespaceName {
			p.report(Note, p.doc.PosIn(t.node, ref.Offset),
				"namespaceObject: it is null in a matchCondition of admission, but the object's Namespace in the condition of a rule")
			return
		}
	}
}

// checkOrder finds mutations that read a variable which an earlier mutation may
// have changed: admission computes variables anew for each mutation, a rule
// once, from the object before its patches.
func (p *policy) checkOrder() {
	reads := p.variableReads()
	var written [][]string
	for i, m := range p.mutations {
		refs, _ := expression.FindReferences(m.expression.value)
		for _, ref := range refs.Names {
			if ref.Name != variablesName {
				continue
			}
			if path, ok := overlap(reads[ref.Path[0]], written); ok {
				p.loseIn(m.expression, ref.Offset, "variables.%s reads %s, which a mutation before this one changes: admission computes it again, a rule computes it once, before its patches; write its expression into the mutation",
					ref.Path[0], objectPath(path))
			}
		}
		if i < len(p.mutations)-1 {
			written = append(written, expression.Writes(m.expression.value)...)
		}
	}
}

// variableReads returns the paths of the object that each variable reads,
// itself or through others.
func (p *policy) variableReads() map[string][][]string {
	out := map[string][][]string{}
	for _, v := range p.variables {
		refs, _ := expression.FindReferences(v.expression.value)
		var paths [][]string
		for _, ref := range refs.Names {
			switch ref.Name {
			case objectName:
				paths = append(paths, ref.Path)
			case variablesName:
				paths = append(paths, out[ref.Path[0]]...)
			}
		}
		out[v.name.value] = paths
	}
	return out
}

// overlap returns the first path read that is, holds or lies in a path written.
func overlap(read, written [][]string) ([]string, bool) {
	for _, r := range read {
		for _, w := range written {
			n := min(len(r), len(w))
			if slices.Equal(r[:n], w[:n]) {
				return r, true
			}
		}
	}
	return nil, false
}

func objectPath(path []string) string {
	return strings.Join(append([]string{objectName}, path...), ".")
}

// writesSpec reports whether a mutation may change something in spec.
func (p *policy) writesSpec() bool {
	for _, m := range p.mutations {
		for _, path := range expression.Writes(m.expression.value) {
			if len(path) == 0 || path[0] == "spec" {
				return true
			}
		}
	}
	return false
}
