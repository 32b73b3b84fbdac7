package objectdiff

import "bytes"

// Colour adds the escape sequences that terminals understand to a unified diff,
// in the colours of git.
func Colour(unified []byte) []byte {
	const bold, red, green, cyan, reset = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"
	var out bytes.Buffer
	for i, line := range bytes.SplitAfter(unified, []byte("\n")) {
		colour := ""
		switch {
		case len(line) == 0:
		case i < 2:
			colour = bold
		case line[0] == '@':
			colour = cyan
		case line[0] == '-':
			colour = red
		case line[0] == '+':
			colour = green
		}
		if colour == "" {
			out.Write(line)
			continue
		}
		text := bytes.TrimRight(line, "\r\n")
		out.WriteString(colour)
		out.Write(text)
		out.WriteString(reset)
		out.Write(line[len(text):])
	}
	return out.Bytes()
}
