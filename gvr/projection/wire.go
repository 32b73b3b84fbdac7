package projection

import (
	"errors"
	"math"
)

// The functions in this file find the end of a token in a protobuf message: the index
// behind it, or unusual. Each takes the index of the token's first byte. They never
// look beyond the input.

// The wire types that a server writes. Groups are unusual.
const (
	wireVarint = 0
	wireFixed8 = 1 // eight bytes
	wireBytes  = 2
	wireFixed4 = 5 // four bytes
)

var (
	errUnusual = errors.New("the encoding is unusual")
	errUnknown = errors.New("it has a field that this version of Rectifier does not know")
)

// varint reads a number. What does not fit into 64 bits is cut off, as the decoders of
// the Go types do.
func varint(b []byte, i int) (uint64, int) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	n := uint64(0)
	for shift := 0; shift < 64 && i < len(b); shift += 7 {
		c := b[i]
		i++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, i
		}
	}
	return 0, unusual
}

// wireTag reads the number and the wire type of a field.
func wireTag(b []byte, i int) (number, wire uint64, _ int) {
	tag, i := varint(b, i)
	if i < 0 || tag > math.MaxInt32 || tag>>3 == 0 { // the Go types cut the number off
		return 0, 0, unusual
	}
	return tag >> 3, tag & 7, i
}

// wireContent reads what is behind a tag: a number, or bytes, which are part of b.
func wireContent(b []byte, i int, wire uint64) (content []byte, n uint64, _ int) {
	switch wire {
	case wireVarint:
		n, i = varint(b, i)
		return nil, n, i
	case wireBytes:
		n, i = varint(b, i)
		if i < 0 || n > uint64(len(b)-i) {
			return nil, 0, unusual
		}
		end := i + int(n)
		return b[i:end:end], 0, end
	case wireFixed8:
		i += 8
	case wireFixed4:
		i += 4
	default:
		return nil, 0, unusual
	}
	if i > len(b) {
		return nil, 0, unusual
	}
	return nil, 0, i
}

// sameTag reports whether the field at i has a tag, and where its content begins.
func sameTag(b []byte, i int, number, wire uint64) (int, bool) {
	if i >= len(b) {
		return i, false
	}
	n, w, end := wireTag(b, i)
	return end, end >= 0 && n == number && w == wire
}

// wireFields calls visit for each field of a message that is expected to have bytes
// only.
func wireFields(b []byte, visit func(number uint64, content []byte) error) error {
	for i := 0; i < len(b); {
		number, wire, next := wireTag(b, i)
		if next < 0 || wire != wireBytes {
			return errUnusual
		}
		var content []byte
		if content, _, i = wireContent(b, next, wire); i < 0 {
			return errUnusual
		}
		if err := visit(number, content); err != nil {
			return err
		}
	}
	return nil
}
