package projection

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// The functions in this file find the end of a token in JSON: the index behind it,
// or unusual (-1). Each takes the index of the token's first byte. They never look
// beyond the input.

// unusual is the index that says: this is for client-go's decoder, be it because it
// is malformed or because it is rare.
const unusual = -1

// Eight bytes are looked at in one word.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	quotes = '"' * ones
	slash  = '\\' * ones
	spaces = ' ' * ones
)

// zeros marks the zero bytes of a word by their highest bit. The lowest mark is exact.
func zeros(w uint64) uint64 { return (w - ones) &^ w & highs }

func space(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

// skipString finds the end of a string whose content does not matter. i is behind
// its opening quote.
func skipString(b []byte, i int) int {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := zeros(w^quotes) | zeros(w^slash); m != 0 {
			i += bits.TrailingZeros64(m) / 8
			if b[i] == '"' {
				return i + 1
			}
			i += 2
			continue
		}
		i += 8
	}
	for i < len(b) {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return unusual
}

// scanString finds the end of a string and checks it: it can be unquoted. plain
// says that it is ASCII without escapes, hence what is between the quotes. i is
// behind its opening quote.
func scanString(b []byte, i int) (end int, plain bool) {
	plain = true
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		m := zeros(w^quotes) | zeros(w^slash) | (w-spaces)&^w&highs | w&highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		if b[i] == '"' {
			return i + 1, plain
		}
		plain = false
		if i = scanUnusual(b, i); i < 0 {
			return i, false
		}
	}
	for i < len(b) {
		if c := b[i]; c == '"' {
			return i + 1, plain
		} else if c >= ' ' && c < utf8.RuneSelf && c != '\\' {
			i++
			continue
		}
		plain = false
		if i = scanUnusual(b, i); i < 0 {
			return i, false
		}
	}
	return unusual, false
}

// scanUnusual finds the end of an escape or of a run of bytes that are not ASCII,
// within a string.
func scanUnusual(b []byte, i int) int {
	switch c := b[i]; {
	case c >= utf8.RuneSelf: // malformed UTF-8 is replaced when it is parsed
		for i < len(b) && b[i] >= utf8.RuneSelf {
			i++
		}
		return i
	case c < ' ' || i+1 >= len(b):
		return unusual
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return unusual
		}
		for _, c := range b[i+2 : i+6] {
			if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
				return unusual
			}
		}
		return i + 6
	}
	return unusual
}

// scanNumber finds the end of a number and checks that it is one that can be
// represented. integer says that it becomes an int64, and not a float64.
func scanNumber(b []byte, i int) (end int, integer bool) {
	start, long := i, false
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	if i = digits(b, i); i == first || b[first] == '0' && i > first+1 {
		return unusual, false
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		integer = false
		fraction := i + 1
		if i = digits(b, fraction); i == fraction {
			return unusual, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		integer, long = false, true
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = digits(b, exponent); i == exponent {
			return unusual, false
		}
	}
	if long || i-start > len("999999999999999999") {
		if integer {
			_, err := strconv.ParseInt(string(b[start:i]), 10, 64)
			integer = err == nil
		}
		if !integer {
			if _, err := strconv.ParseFloat(string(b[start:i]), 64); err != nil {
				return unusual, false
			}
		}
	}
	return i, integer
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// scanLiteral finds the end of null, true or false.
func scanLiteral(b []byte, i int) int {
	if i >= len(b) {
		return unusual
	}
	var word string
	switch b[i] {
	case 'n':
		word = "null"
	case 't':
		word = "true"
	case 'f':
		word = "false"
	default:
		return unusual
	}
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return unusual
}

// skip finds the end of a value whose content does not matter. Of it are checked
// only the ends of its strings and the number of its brackets.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return unusual
	}
	switch b[i] {
	case '"':
		return skipString(b, i+1)
	case '{', '[':
		return skipBrackets(b, i+1)
	}
	start := i
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	if i == start {
		return unusual
	}
	return i
}

// skipBrackets finds the end of a list or map whose content does not matter. i is
// behind its opening bracket.
func skipBrackets(b []byte, i int) int {
	for depth := 1; i < len(b); {
		switch b[i] {
		case '"':
			if i = skipString(b, i+1); i < 0 {
				return unusual
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return unusual
}
