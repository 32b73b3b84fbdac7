package patch

import (
	"errors"
	"slices"
	"strings"
)

// protectedMetadata are the fields of the object's own metadata that no rule may
// write: its identity, and what the API server keeps.
var protectedMetadata = []string{
	"creationTimestamp", "deletionTimestamp", "generation", "managedFields",
	"name", "namespace", "resourceVersion", "selfLink", "uid",
}

// CheckPath returns a *ProtectedError if writing to p would change the identity of
// the object or what the API server keeps: the whole document, apiVersion, kind,
// metadata as a whole, and the protected fields of metadata with all below them.
// The metadata of a pod template is as free as anything else.
func CheckPath(p Pointer) error {
	if protected(p) {
		return &ProtectedError{Path: p}
	}
	return nil
}

func protected(p Pointer) bool {
	if len(p) == 0 {
		return true
	}
	switch p[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(p) == 1 || slices.Contains(protectedMetadata, p[1])
	}
	return false
}

// CheckOps applies CheckPath to what the operations write: every path but that of
// a test, and the from of a move. Reading (test, the from of a copy) is free. The
// error is an *OpError around a *ProtectedError.
func CheckOps(ops []Op) error {
	for i, op := range ops {
		if op.Op != "test" && protected(op.Path) {
			return &OpError{Index: i, Member: "path", Err: &ProtectedError{Path: op.Path}}
		}
		if op.Op == "move" && protected(op.From) {
			return &OpError{Index: i, Member: "from", Err: &ProtectedError{Path: op.From}}
		}
	}
	return nil
}

// CheckMerge is CheckPath for all that a merge patch names, whatever the value: a
// *ProtectedError, for the same path each time. metadata must be an object.
func CheckMerge(m map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if _, ok := m[key]; ok {
			return &ProtectedError{Path: Pointer{key}}
		}
	}
	v, ok := m["metadata"]
	if !ok {
		return nil
	}
	var metadata map[string]any
	switch v := v.(type) {
	case map[string]any:
		metadata = v
	case ensuredMap:
		metadata = v
	default:
		return &ProtectedError{Path: Pointer{"metadata"}}
	}
	for _, key := range protectedMetadata {
		if _, ok := metadata[key]; ok {
			return &ProtectedError{Path: Pointer{"metadata", key}}
		}
	}
	return nil
}

// CheckIndexes returns an error for a token that looks like a list index as no
// JSON patch may write it: negative, signed, or with leading zeros. It is for load
// time, when no object is there to say what is a list; keys of maps that users fill
// (annotations, labels, data, …) may look like anything. ApplyOps has the last word.
func CheckIndexes(p Pointer) error {
	for i, token := range p {
		if !oddIndex(token) || i > 0 && slices.Contains(freeKeys, p[i-1]) {
			continue
		}
		return &PointerError{
			Offset: len(p[:i].String()) + 1,
			err:    errOddIndex,
			Msg:    errOddIndex.Error(),
		}
	}
	return nil
}

var errOddIndex = errors.New("a list index is written without sign and without leading zero (- appends)")

// freeKeys are the fields of Kubernetes' own types whose keys the user chooses.
var freeKeys = []string{
	"annotations", "labels", "matchLabels", "nodeSelector", "selector",
	"data", "binaryData", "stringData",
}

func oddIndex(token string) bool {
	digits := strings.TrimLeft(token, "+-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	return digits != token || len(token) > 1 && token[0] == '0'
}

// SuspectRawSlash reports whether p, in an annotation or label key, takes for a
// separator the slash that belongs to the key, and returns the pointer as it should
// be written: /metadata/annotations/example.io~1team for
// /metadata/annotations/example.io/team. The values of these maps are strings, so
// nothing can be two steps below one.
//
// It looks at annotations and labels of any metadata, at matchLabels, and, where the
// first step could be the prefix of a label key (has a dot), at nodeSelector and
// selector, which in some types are structs.
func SuspectRawSlash(p Pointer) (right string, ok bool) {
	for i := range p {
		rest := p[i+1:]
		if len(rest) < 2 {
			return "", false
		}
		if holdsLabels(p, i) {
			return p[:i+1].child(strings.Join(rest, "/")).String(), true
		}
	}
	return "", false
}

// holdsLabels reports whether token i names a map of annotations or labels. There
// are tokens behind it.
func holdsLabels(p Pointer, i int) bool {
	switch p[i] {
	case "annotations", "labels":
		return i > 0 && p[i-1] == "metadata"
	case "matchLabels":
		return true
	case "nodeSelector", "selector":
		return strings.Contains(p[i+1], ".")
	}
	return false
}
