package rules_test

import (
	"fmt"
)

// celMaker makes expressions by a grammar of the types that they should have.
// On most objects most of them have a value.
type celMaker struct {
	*chooser
	names []string // of any type
}

func (e celMaker) bool(depth int) string {
	if depth == 0 {
		return pick(e.chooser, "true", "has(object.spec.a)", "has(object.spec.l)", "'a' in object.metadata.?labels.orValue({})", "object.spec.?paused.orValue(false)")
	}
	switch e.IntN(9) {
	case 0:
		return "!(" + e.bool(depth-1) + ")"
	case 1:
		return "(" + e.bool(depth-1) + pick(e.chooser, " && ", " || ") + e.bool(depth-1) + ")"
	case 2:
		return e.number(depth-1) + pick(e.chooser, " < ", " == ", " != ", " >= ") + e.number(depth-1)
	case 3:
		return e.any(depth-1) + pick(e.chooser, " == ", " != ") + e.any(depth-1)
	case 4:
		return e.text(depth-1) + fmt.Sprintf(pick(e.chooser, " == (%s)", ".contains(%s)", ".matches(%s)", ".startsWith(%s)"), e.text(depth-1))
	case 5:
		return e.list(depth-1) + pick(e.chooser, ".exists(x, x == ", ".all(x, x != ", ".exists_one(x, x == ") + e.any(0) + ")"
	case 6:
		return e.any(depth-1) + " in " + e.list(depth-1)
	case 7:
		return "(" + e.bool(depth-1) + " ? " + e.bool(depth-1) + " : " + e.bool(depth-1) + ")"
	}
	return e.bool(0)
}

func (e celMaker) number(depth int) string {
	if depth == 0 {
		return pick(e.chooser, "1", "3", "object.spec.?replicas.orValue(1)", "object.spec.a", "-1")
	}
	switch e.IntN(6) {
	case 0, 1:
		return "(" + e.number(depth-1) + pick(e.chooser, " + ", " - ", " * ", " % ", " / ") + e.number(depth-1) + ")"
	case 2:
		return e.list(depth-1) + ".size()"
	case 3:
		return e.text(depth-1) + ".size()"
	case 4:
		return "int(" + e.text(depth-1) + ")"
	}
	return e.number(0)
}

func (e celMaker) text(depth int) string {
	if depth == 0 {
		return pick(e.chooser, "'a'", "'x'", "''", "object.metadata.name", "object.metadata.?labels.?a.orValue('b')", "object.spec.b")
	}
	switch e.IntN(8) {
	case 0:
		return "(" + e.text(depth-1) + " + " + e.text(depth-1) + ")"
	case 1:
		return "string(" + e.any(depth-1) + ")"
	case 2:
		return e.text(depth-1) + ".replace(" + e.text(0) + ", " + e.text(0) + ")"
	case 3:
		return e.text(depth-1) + pick(e.chooser, ".lowerAscii()", ".upperAscii()", ".trim()", ".substring(1)", ".reverse()")
	case 4:
		return "'%s-%v'.format([" + e.any(depth-1) + ", " + e.any(depth-1) + "])"
	case 5:
		return e.list(depth-1) + ".map(x, string(x)).join(',')"
	}
	return e.text(0)
}

func (e celMaker) list(depth int) string {
	if depth == 0 {
		return pick(e.chooser, "[]", "['x']", "[1, 'a', null]", "object.spec.?l.orValue([])", "object.spec.template.spec.containers")
	}
	switch e.IntN(8) {
	case 0:
		return "(" + e.list(depth-1) + " + " + e.list(depth-1) + ")"
	case 1:
		return e.list(depth-1) + ".map(x, " + pick(e.chooser, "x", "[x]", "{'a': x}", e.any(0)) + ")"
	case 2:
		return e.list(depth-1) + ".filter(x, " + e.bool(0) + ")"
	case 3:
		return e.text(depth-1) + ".split('')"
	case 4:
		return e.mapping(depth-1) + ".map(k, k)"
	case 5:
		return e.list(depth-1) + pick(e.chooser, ".distinct()", ".flatten()", ".sort()", ".reverse()")
	case 6:
		return "[" + e.any(depth-1) + ", ?object.spec.?a]"
	}
	return e.list(0)
}

func (e celMaker) mapping(depth int) string {
	if depth == 0 {
		return pick(e.chooser, "{}", "{'a': 'x', 'b': 1}", "object.metadata.?labels.orValue({})", "object.spec.?m.orValue({})", "object.metadata")
	}
	switch e.IntN(4) {
	case 0:
		return "{'a': " + e.any(depth-1) + ", ?'b': object.spec.?b}"
	case 1:
		return e.mapping(depth-1) + ".transformMap(k, v, " + pick(e.chooser, "v", "string(k)", e.any(0)) + ")"
	}
	return e.mapping(0)
}

// any is an expression of any type.
func (e celMaker) any(depth int) string {
	switch e.IntN(9) {
	case 0:
		return e.bool(depth)
	case 1, 2:
		return e.number(depth)
	case 3, 4:
		return e.text(depth)
	case 5:
		return e.list(depth)
	case 6:
		return e.mapping(depth)
	case 7:
		return pick(e.chooser, "null", "0.5", "object.spec.?a", "optional.none()", "object.spec.?l[?0]", "timestamp('2026-01-01T00:00:00Z')")
	}
	return pick(e.chooser, e.names...)
}
