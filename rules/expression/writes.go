package expression

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Writes tells which paths of an object a patch expression in the manner of
// MutatingAdmissionPolicy can change: Object{…} literals, or lists of
// JSONPatch{…}. A path ends where it enters a list or is no longer literal; an
// empty path means the whole object, and is also the answer where the
// expression does not tell. An expression that does not parse writes nothing.
func Writes(source string) [][]string {
	f := finder{source: source}
	root, issues := f.parse()
	if issues != nil {
		return nil
	}
	var out [][]string
	visitStructs(root, func(s ast.StructExpr) {
		switch s.TypeName() {
		case objectTypeName:
			out = append(out, fieldPaths(s, nil)...)
		case jsonPatchTypeName:
			out = append(out, pointerPaths(s)...)
		}
	})
	if out == nil {
		return [][]string{{}}
	}
	slices.SortFunc(out, slices.Compare)
	return slices.CompactFunc(out, slices.Equal)
}

// visitStructs calls visit for all Name{…} literals of an expression.
func visitStructs(e ast.Expr, visit func(ast.StructExpr)) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.StructKind {
			visit(e.AsStruct())
		}
	}))
}

// fieldPaths are the paths of the fields of an Object{…}, down to what is not
// an Object… literal itself.
func fieldPaths(s ast.StructExpr, path []string) [][]string {
	var out [][]string
	for _, f := range s.Fields() {
		field := f.AsStructField()
		at := append(slices.Clip(path), field.Name())
		if v := field.Value(); v.Kind() == ast.StructKind && len(v.AsStruct().Fields()) > 0 {
			out = append(out, fieldPaths(v.AsStruct(), at)...)
			continue
		}
		out = append(out, at)
	}
	if out == nil {
		out = [][]string{path}
	}
	return out
}

// pointerPaths are where a JSONPatch{…} writes: its path, and for a move its
// from too.
func pointerPaths(s ast.StructExpr) [][]string {
	var out [][]string
	for _, f := range s.Fields() {
		field := f.AsStructField()
		if name := field.Name(); name == "path" || name == "from" {
			out = append(out, pointerPath(field.Value()))
		}
	}
	if out == nil {
		out = [][]string{{}}
	}
	return out
}

// pointerPath is the literal beginning of a JSON pointer, up to the first list.
func pointerPath(e ast.Expr) []string {
	whole := true
	for e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add {
		e, whole = e.AsCall().Args()[0], false
	}
	text, ok := stringLiteral(e)
	if !ok {
		return []string{}
	}
	segments := strings.Split(text, "/")
	if !whole { // what is appended may continue the last segment
		segments = segments[:len(segments)-1]
	}
	path := []string{}
	for _, segment := range segments[min(1, len(segments)):] {
		if _, err := strconv.Atoi(segment); err == nil || segment == "-" {
			break
		}
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(segment))
	}
	return path
}
