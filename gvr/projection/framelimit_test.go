package projection

import (
	"errors"
	"io"
	"testing"
)

// endless is a body that goes on for so many bytes behind what it begins with.
type endless struct {
	head string
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

func (e *endless) Close() error { return nil }

// An event without an end, or with a length that cannot be, is not read until there is
// no memory left.
func TestEventsAreBounded(t *testing.T) {
	const size = 256 << 20
	json := &endless{head: `{"type":"ADDED","object":{"a":"`, left: size}
	wire := &endless{head: "\xff\xff\xff\xff", left: size}
	large := &endless{head: "\x00\xff\xff\xff", left: size} // 16 MiB less one byte
	refused := 0
	lineFramer, framer := framer{}, wireFramer{refuse: func(error) { refused++ }}
	for name, tc := range map[string]struct {
		source *endless
		reader io.ReadCloser
	}{
		"JSON":             {json, lineFramer.NewFrameReader(json)},
		"protobuf":         {wire, framer.NewFrameReader(wire)},
		"protobuf, nearly": {large, framer.NewFrameReader(large)},
	} {
		n, err := tc.reader.Read(make([]byte, 1024))
		if !errors.Is(err, errTooLong) || n != 0 {
			t.Errorf("%s: %d bytes, error %v", name, n, err)
		}
		if read := size - tc.source.left; read > 2*maxFrame {
			t.Errorf("%s: %d bytes are read", name, read)
		}
	}
	if refused != 2 {
		t.Errorf("%d refused", refused)
	}
}

// What an unusually large event took is not kept until the watch ends.
func TestALargeBufferIsGivenUp(t *testing.T) {
	frames := &wireFrames{input: input{source: &endless{head: "\x00\x80\x00\x00", left: 8 << 20}}}
	out := make([]byte, 9<<20)
	if n, err := frames.Read(out); n != 8<<20 || err != nil {
		t.Fatalf("%d bytes, error %v", n, err)
	}
	if _, err := frames.Read(out); err != io.EOF {
		t.Errorf("error %v at the end", err)
	}
	if got := len(frames.buffer); got > keptBuffer {
		t.Errorf("the buffer has %d bytes", got)
	}
}
