package projection

import (
	"encoding/binary"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// wireFramer divides a stream of events in protobuf: in front of each is its length, in
// four bytes, big endian. The standard Framer reads twice for each event. A length that
// cannot be is refused.
type wireFramer struct {
	runtime.Framer
	refuse func(error)
}

func (f wireFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &wireFrames{input{source: r}, f.refuse}
}

// wireFrames reads one event at a time, as a frame. It is not safe for concurrent use,
// but that Close may interrupt a Read.
type wireFrames struct {
	input
	refuse func(error)
}

const lengthSize = 4

// Read implements the contract of runtime.Framer, as lines.Read does.
func (f *wireFrames) Read(out []byte) (int, error) {
	if len(f.rest) > 0 {
		return f.handOut(out)
	}
	if !f.has(lengthSize) {
		return 0, f.broken()
	}
	length := binary.BigEndian.Uint32(f.buffer[f.start:])
	if length > maxFrame-lengthSize {
		f.refuse(errTooLong)
		return 0, errTooLong
	}
	size := int(length)
	if !f.has(lengthSize + size) {
		return 0, f.broken()
	}
	f.rest = f.buffer[f.start+lengthSize : f.start+lengthSize+size]
	f.start += lengthSize + size
	return f.handOut(out)
}

// has reads until that many bytes are in the buffer. It is false if the source ends.
func (f *wireFrames) has(n int) bool {
	for f.end-f.start < n {
		if f.sourceError != nil {
			return false
		}
		f.fill(f.end)
	}
	return true
}

// broken is the error at the end of the source, which may be in the middle of an event.
func (f *wireFrames) broken() error {
	if f.sourceError == io.EOF && f.end > f.start {
		return io.ErrUnexpectedEOF
	}
	return f.sourceError
}
