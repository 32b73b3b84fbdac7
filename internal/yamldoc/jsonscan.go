package yamldoc

import "bytes"

// jsonScan follows one JSON object or array, to find its end without building anything. It can stop anywhere for lack of data and go on
// later. It is a little more lenient than the parser about numbers and escapes, which hold no brackets and quotes and therefore do not move the end.
type jsonScan struct {
	at    int    // offset of what comes next
	open  []byte // the brackets that are open
	want  jsonToken
	state jsonState

	keyAt int // where the last key of the outermost object starts
	// list is behind the bracket that opens the value of its key "items", and 0 without one; item is the end of the first element if that is an
	// object; ended says that an element has just ended.
	list, item int
	ended      bool
}

// jsonToken is what may come next.
type jsonToken int

const (
	anyValue   jsonToken = iota
	firstValue           // or the end of the array
	key
	firstKey // or the end of the object
	colon
	comma // or the end
)

// jsonState is what happens to the text up to the end of it.
type jsonState int

const (
	jsonMore  jsonState = iota // unfinished: more data is needed
	jsonDone                   // at is behind the value
	jsonWrong                  // this is not JSON
	jsonInString
)

const maxJSONDepth = 10_000

// scan goes on over data, of which the first at bytes are known.
func (j *jsonScan) scan(data []byte) jsonState {
	for j.ended = false; j.at < len(data) && j.state != jsonDone && j.state != jsonWrong && !j.ended; {
		if j.state == jsonInString {
			if !j.text(data) {
				return jsonMore
			}
			continue
		}
		switch c := data[j.at]; c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			if c == '[' && len(j.open) == 1 && j.want == anyValue && bytes.HasPrefix(data[j.keyAt:], []byte(`"items"`)) {
				j.list = j.at + 1
			}
			j.opening(c)
		case '}', ']':
			j.closing(c)
			if c == '}' && len(j.open) == 2 && j.list > 0 && j.open[1] == '[' {
				if j.ended = true; j.item == 0 {
					j.item = j.at + 1
				}
			}
			if len(j.open) == 1 && c == ']' {
				j.list = 0 // the list has ended
			}
		case ':':
			j.next(colon, anyValue)
		case ',':
			if j.want != comma || len(j.open) == 0 {
				j.state = jsonWrong
			} else if j.want = anyValue; j.open[len(j.open)-1] == '{' {
				j.want = key
			}
		case '"':
			if j.isValue() {
				j.want = comma
			} else if j.want == key || j.want == firstKey {
				j.want = colon
				if len(j.open) == 1 {
					j.keyAt = j.at
				}
			} else {
				j.state = jsonWrong
				break
			}
			j.state = jsonInString
		default:
			if !j.word(data) {
				return j.stopped()
			}
			continue
		}
		j.at++
	}
	return j.stopped()
}

func (j *jsonScan) stopped() jsonState {
	if j.state == jsonInString {
		return jsonMore
	}
	return j.state
}

func (j *jsonScan) isValue() bool { return j.want == anyValue || j.want == firstValue }

func (j *jsonScan) next(now, then jsonToken) {
	if j.want != now {
		j.state = jsonWrong
	}
	j.want = then
}

func (j *jsonScan) opening(c byte) {
	if !j.isValue() || len(j.open) == maxJSONDepth {
		j.state = jsonWrong
		return
	}
	j.open = append(j.open, c)
	j.want = firstValue
	if c == '{' {
		j.want = firstKey
	}
}

func (j *jsonScan) closing(c byte) {
	last := len(j.open) - 1
	if last < 0 || c != j.open[last]+2 || j.want != comma && j.want != firstKey && j.want != firstValue {
		j.state = jsonWrong
		return
	}
	j.open, j.want = j.open[:last], comma
	if last == 0 {
		j.state = jsonDone
	}
}

// text goes on within a string; false: its end is not there yet.
func (j *jsonScan) text(data []byte) bool {
	for j.at < len(data) {
		switch c := data[j.at]; {
		case c == '"':
			j.at++
			j.state = jsonMore
			return true
		case c == '\\':
			if j.at+1 >= len(data) {
				return false
			}
			j.at += 2
		case c < 0x20:
			j.state = jsonWrong
			return true
		default:
			j.at++
		}
	}
	return false
}

// word takes a number, true, false or null; false: its end is not there yet, or it is none of them.
func (j *jsonScan) word(data []byte) bool {
	end := j.at
	for end < len(data) && isWord(data[end]) {
		end++
	}
	if end == len(data) {
		return false // no value ends with a word
	}
	switch word := data[j.at:end]; {
	case !j.isValue() || len(word) == 0, word[0] >= 'a' && string(word) != "true" && string(word) != "false" && string(word) != "null":
		j.state = jsonWrong
		return false
	}
	j.at, j.want = end, comma
	return true
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}
