package patch

import (
	"errors"
	"strconv"
)

// errAbsent says that a path leads to nothing, as opposed to one that could never
// lead anywhere in this document.
var errAbsent = errors.New("absent")

// Find returns what stands at a path of a document, if it leads to something. The
// value is shared with the document.
func Find(doc any, path Pointer) (any, bool) {
	v, err := lookup(doc, path)
	return v, err == nil
}

// lookup follows path from node. It does not modify anything.
func lookup(node any, path Pointer) (any, error) {
	for depth := range path {
		next, err := member(node, path[:depth+1])
		if err != nil {
			return nil, err
		}
		node = next
	}
	return node, nil
}

// member returns the member of node that the last token of path names; path leads
// from the document to that member.
func member(node any, path Pointer) (any, error) {
	token := path[len(path)-1]
	switch node := node.(type) {
	case map[string]any:
		v, ok := node[token]
		if !ok {
			return nil, errAbsent
		}
		return v, nil
	case []any:
		i, ok := index(token)
		if !ok {
			return nil, &IndexError{Path: path, Len: len(node)}
		}
		if i >= len(node) {
			return nil, errAbsent
		}
		return node[i], nil
	case nil:
		return nil, errAbsent // null is not there: below it there is nothing
	}
	return nil, checkContainer(node, path[:len(path)-1])
}

// checkContainer returns an error if node, to which path leads, has no members.
func checkContainer(node any, path Pointer) error {
	switch node.(type) {
	case map[string]any, []any:
		return nil
	case nil:
		return &MissingParentError{Path: path}
	}
	return &NotContainerError{Path: path, Type: typeName(node)}
}

// missingOnTheWay turns the absence of a member of node into an error for the
// author of the patch, who wants to go on below it. path leads to that member.
func missingOnTheWay(err error, node any, path Pointer) error {
	if !errors.Is(err, errAbsent) {
		return err
	}
	switch node := node.(type) {
	case []any:
		return &IndexError{Path: path, Len: len(node)}
	case nil:
		return &MissingParentError{Path: path[:len(path)-1]}
	}
	return &MissingParentError{Path: path}
}

// index reads a list index as RFC 6901 writes it: digits without a leading zero.
func index(token string) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(token)
	return i, err == nil
}
