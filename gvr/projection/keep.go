package projection

// maxDepth is that of what is kept. client-go's decoder, which takes what is deeper,
// goes to 10,000.
const maxDepth = 500

// scanner scans JSON once and writes the text of what is kept. Its methods take the
// index of a token's first byte and return the index behind it, or unusual; then
// what was written is worthless.
//
// What is written is JSON that can be parsed, without white space. Of what is not
// kept, only the ends of strings and the number of brackets are checked.
type scanner struct {
	in  []byte
	out []byte

	// Of an object in protobuf:
	metadata *messagePlan // what is kept of its metadata
	id       identity     // what was found of it
}

// value writes what a plan keeps of the value at i.
func (s *scanner) value(p *plan, i, depth int) int {
	switch {
	case i >= len(s.in) || depth > maxDepth:
		return unusual
	case p == nil:
		s.out = append(s.out, "null"...)
		return skip(s.in, i)
	case p.whole:
		return s.whole(i, depth)
	}
	switch s.in[i] {
	case '{':
		return s.object(p, i, depth)
	case '[':
		return s.list(p, i, depth)
	}
	if p.keys {
		return s.whole(i, depth)
	}
	return s.zero(i)
}

// zero writes the zero value of the kind of a scalar.
func (s *scanner) zero(i int) int {
	switch s.in[i] {
	case '"':
		s.out = append(s.out, `""`...)
		return skipString(s.in, i+1)
	case 'n':
		s.out = append(s.out, "null"...)
		return scanLiteral(s.in, i)
	case 't', 'f':
		s.out = append(s.out, "false"...)
		return scanLiteral(s.in, i)
	}
	end, integer := scanNumber(s.in, i)
	if integer {
		s.out = append(s.out, '0')
	} else {
		s.out = append(s.out, "0.0"...)
	}
	return end
}

// object writes the members of a map that the plan keeps.
func (s *scanner) object(p *plan, i, depth int) int {
	s.out = append(s.out, '{')
	start := len(s.out)
	i, done := s.open(i, '}')
	for !done {
		var key key
		if key, i = s.member(i); i < 0 {
			return unusual
		}
		i = s.field(p, key, start, i, depth)
		i, done = s.next(i, '}')
	}
	s.out = append(s.out, '}')
	return i
}

// list writes a list: all of it, its length, or that it is one.
func (s *scanner) list(p *plan, i, depth int) int {
	switch {
	case p.lists:
		return s.whole(i, depth)
	case !p.keys:
		s.out = append(s.out, "[]"...)
		return skip(s.in, i)
	}
	s.out = append(s.out, '[')
	start := len(s.out)
	i, done := s.open(i, ']')
	for !done {
		if len(s.out) > start {
			s.out = append(s.out, ',')
		}
		i = s.value(p.items, i, depth+1)
		i, done = s.next(i, ']')
	}
	s.out = append(s.out, ']')
	return i
}

// open steps into a list or map: to the first token in it. done says that there is
// none.
func (s *scanner) open(i int, closing byte) (_ int, done bool) {
	i = space(s.in, i+1)
	if i < len(s.in) && s.in[i] == closing {
		return i + 1, true
	}
	return i, false
}

// next steps from behind a value to the next token in the list or map. done says
// that there is none, or that i is unusual.
func (s *scanner) next(i int, closing byte) (_ int, done bool) {
	if i < 0 {
		return unusual, true
	}
	i = space(s.in, i)
	if i >= len(s.in) {
		return unusual, true
	}
	switch s.in[i] {
	case ',':
		return space(s.in, i+1), false
	case closing:
		return i + 1, true
	}
	return unusual, true
}

// key is one of a map: its name, and how it is written, with its quotes.
type key struct {
	name, raw []byte
	plain     bool // the name is ASCII, and written without escapes
}

// member reads a key and steps to its value. The key is good until the next.
func (s *scanner) member(i int) (key, int) {
	if i >= len(s.in) || s.in[i] != '"' {
		return key{}, unusual
	}
	end, plain := scanString(s.in, i+1)
	if end < 0 {
		return key{}, unusual
	}
	k := key{name: s.in[i+1 : end-1], raw: s.in[i:end], plain: plain}
	if !plain {
		k.name = []byte(unquote(string(k.name)))
	}
	if i = space(s.in, end); i >= len(s.in) || s.in[i] != ':' {
		return key{}, unusual
	}
	return k, space(s.in, i+1)
}

// field writes a member of the map whose text begins at start, if the plan of the
// map keeps it.
func (s *scanner) field(p *plan, k key, start, i, depth int) int {
	f, ok := p.field(k.name)
	if !ok {
		return skip(s.in, i)
	}
	if len(s.out) > start {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, k.raw...)
	s.out = append(s.out, ':')
	return s.value(f, i, depth+1)
}

// whole writes all of a value, and checks it.
func (s *scanner) whole(i, depth int) int {
	end, compact := s.check(i, depth)
	switch {
	case end < 0:
		return unusual
	case compact:
		s.out = append(s.out, s.in[i:end]...)
		return end
	}
	for i < end { // of what is checked, copy all but the white space
		switch c := s.in[i]; {
		case c == '"':
			next := skipString(s.in, i+1)
			s.out = append(s.out, s.in[i:next]...)
			i = next
			continue
		case !isSpace(c):
			s.out = append(s.out, c)
		}
		i++
	}
	return end
}

// check finds the end of a value and checks all of it. compact says that there is
// no white space in it, but for strings.
func (s *scanner) check(i, depth int) (end int, compact bool) {
	if i >= len(s.in) || depth > maxDepth {
		return unusual, false
	}
	switch c := s.in[i]; c {
	case '"':
		end, _ = scanString(s.in, i+1)
		return end, true
	case 'n', 't', 'f':
		return scanLiteral(s.in, i), true
	case '{', '[':
		return s.checkMembers(i, depth, c)
	}
	end, _ = scanNumber(s.in, i)
	return end, true
}

func (s *scanner) checkMembers(i, depth int, opening byte) (end int, compact bool) {
	closing := opening + 2 // in ASCII
	compact = true
	first, done := s.open(i, closing)
	if !done && first > i+1 || done && first > i+2 {
		compact = false
	}
	i = first
	for !done {
		if opening == '{' {
			if i >= len(s.in) || s.in[i] != '"' {
				return unusual, false
			}
			colon, _ := scanString(s.in, i+1)
			if colon < 0 {
				return unusual, false
			}
			if i = space(s.in, colon); i >= len(s.in) || s.in[i] != ':' {
				return unusual, false
			}
			value := space(s.in, i+1)
			compact = compact && value == colon+1
			i = value
		}
		behind, tight := s.check(i, depth+1)
		if i, done = s.next(behind, closing); i < 0 {
			return unusual, false
		}
		compact = compact && tight && i == behind+1
	}
	return i, compact
}
