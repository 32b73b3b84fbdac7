package patch

import (
	"errors"
	"fmt"
)

var (
	// ErrNotApplicable is the error of a patch that removes, moves or copies what
	// is not there. It is no failure: nothing is sent and nothing retried.
	ErrNotApplicable = errors.New("not applicable: there is no such value")

	// ErrTooLarge is the error of a patch over MaxOps, MaxCopyBytes or MaxBodyBytes,
	// which the API server would refuse whole.
	ErrTooLarge = errors.New("patch too large")

	// ErrUnguarded is the error of a body without uid or resourceVersion: such a
	// request would overwrite blindly.
	ErrUnguarded = errors.New("a request needs the uid and resourceVersion that it was decided on")
)

// OpError says which operation of a JSON patch is at fault: Index counts from 0,
// Member is "op", "path", "from", "value", an unknown member's name, or empty
// where it is the operation as a whole. It unwraps to the reason.
type OpError struct {
	Index  int
	Member string
	Err    error
}

func (e *OpError) Error() string {
	if e.Member == "" {
		return fmt.Sprintf("JSON patch [%d]: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("JSON patch [%d].%s: %v", e.Index, e.Member, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }

// MissingParentError says that nothing can be put where the operation wants to,
// because Path, on the way there, does not exist or is null.
type MissingParentError struct {
	Path Pointer
}

func (e *MissingParentError) Error() string {
	return fmt.Sprintf("%s does not exist, and a JSON patch cannot create it on the way: use a merge patch", e.Path)
}

// NotContainerError says that an operation leads through the value at Path, which
// has no members. Type names its JSON type.
type NotContainerError struct {
	Path Pointer
	Type string
}

func (e *NotContainerError) Error() string {
	return fmt.Sprintf("%s is %s, and nothing can be below it", e.Path, e.Type)
}

// IndexError says that the last token of Path is no index of the list of length
// Len that it meets: negative, signed, with leading zeros, beyond the end, or no
// number at all.
type IndexError struct {
	Path Pointer
	Len  int
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("%s: the last token is no index of this list of length %d (no sign, no leading zero, not beyond the end; - appends)",
		e.Path, e.Len)
}

// TestFailedError is the outcome of a test operation whose value is not the one at
// Path, or which finds nothing there. It holds neither value: they may be secret.
type TestFailedError struct {
	Path Pointer
}

func (e *TestFailedError) Error() string {
	return fmt.Sprintf("test failed: %s has another value", e.Path)
}

// ProtectedError says that a patch would change Path, which is identity or is kept
// by the API server.
type ProtectedError struct {
	Path Pointer
}

func (e *ProtectedError) Error() string {
	if len(e.Path) == 0 {
		return ErrWholeDocument.Error()
	}
	return fmt.Sprintf("%s identifies the object or is kept by the API server: no rule may write it", e.Path)
}
