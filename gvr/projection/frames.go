package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// framer divides a stream of events where the server ends a line. If it meets a line
// that does not look like an event, the rest of the stream is for the standard
// Framer, which reads all of its JSON to find where an event ends.
type framer struct{ runtime.Framer }

func (f framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &lines{input: input{source: r}, standard: f.Framer}
}

// lines reads one line at a time, as a frame. It is not safe for concurrent use, but
// that Close may interrupt a Read.
type lines struct {
	input
	standard runtime.Framer
	other    io.Reader
}

// input is a source that is read in large pieces.
type input struct {
	source      io.ReadCloser
	buffer      []byte // what was read and not yet handed out, from start to end
	start, end  int
	rest        []byte // what is left of a frame that was too long for the caller; part of buffer
	sourceError error
}

const (
	firstBuffer = 16 << 10
	// maxFrame bounds an event, as client-go's decoder of streams does, but before it has been read: an API server stores
	// no object of more than 3 MiB, and a length that is damaged must not take all memory.
	maxFrame = 16 << 20
	// keptBuffer is how large a buffer may stay until the next event.
	keptBuffer = 1 << 20
)

var errTooLong = errors.New("an event of the watch is longer than 16 MiB")

// Read implements the contract of runtime.Framer: a frame at a time, and
// io.ErrShortBuffer for each part of a frame but the last.
func (l *lines) Read(out []byte) (int, error) {
	if l.other != nil {
		return l.other.Read(out)
	}
	if len(l.rest) == 0 {
		line, complete := l.line()
		if len(line) == 0 || !complete && errors.Is(l.sourceError, errTooLong) {
			return 0, l.sourceError
		}
		if !looksLikeEvent(line) || !complete && !json.Valid(line) {
			l.other = l.others(line)
			return l.other.Read(out)
		}
		l.rest = line
	}
	return l.handOut(out)
}

// handOut copies what is left of a frame, or a part of it.
func (l *input) handOut(out []byte) (int, error) {
	n := copy(out, l.rest)
	if l.rest = l.rest[n:]; len(l.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// looksLikeEvent reports whether a line is one that splitEvent understands, as far
// as can be seen without reading it.
func looksLikeEvent(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"`)) && bytes.HasSuffix(bytes.TrimRight(line, " \t\r\n"), []byte("}}"))
}

// line reads the next line that is not empty; the last may end without a line feed,
// which is not complete then. No line means that the source has ended. The line is
// part of the buffer until the next call.
func (l *lines) line() (_ []byte, complete bool) {
	searched := l.start
	for {
		if i := bytes.IndexByte(l.buffer[searched:l.end], '\n'); i >= 0 {
			line := l.buffer[l.start : searched+i+1]
			l.start += len(line)
			if searched = l.start; len(line) > 1 {
				return line, true
			}
			continue
		}
		if l.sourceError != nil {
			line := l.buffer[l.start:l.end]
			l.start = l.end
			return line, false
		}
		searched = l.fill(l.end)
	}
}

// fill reads more from the source, and returns where in the buffer an index is then.
func (l *input) fill(index int) int {
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		index, l.end, l.start = index-l.start, l.end-l.start, 0
	}
	if l.end == 0 && len(l.buffer) > keptBuffer {
		l.buffer = nil
	}
	if l.end >= maxFrame {
		l.sourceError = errTooLong
		return index
	}
	if l.end == len(l.buffer) {
		l.buffer = append(l.buffer, make([]byte, max(firstBuffer, len(l.buffer)))...)
	}
	n, err := l.source.Read(l.buffer[l.end:])
	l.end += n
	l.sourceError = err
	return index
}

// others reads on with the standard Framer, from the beginning of a line that was
// just read.
func (l *lines) others(line []byte) io.Reader {
	read := bytes.Clone(l.buffer[l.start-len(line) : l.end])
	var unread io.Reader = l.source
	if l.sourceError != nil {
		unread = failed{l.sourceError}
	}
	l.buffer = nil
	return l.standard.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), unread), l.source})
}

// failed is a source that has ended.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// Close closes the source.
func (l *input) Close() error { return l.source.Close() }
