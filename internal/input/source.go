package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Source is one file that can be read, and read again: standard input and pipes
// too. It is not safe for concurrent use.
type Source struct {
	Name string // as shown in messages; Stdin for standard input
	// Listed says that the file was found in a folder, not named itself.
	Listed bool

	spool *spool // nil: a regular file
}

// Open returns the content from its start. What comes from a pipe is kept for
// the next call, unless this is said to be the last. The reader must be closed
// before the next call.
func (s *Source) Open(last bool) (io.ReadCloser, error) {
	if s.spool == nil {
		return os.Open(s.Name)
	}
	r, err := s.spool.open(last)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	return r, nil
}

// Close forgets what was kept. The source cannot be opened any more.
func (s *Source) Close() error {
	if s.spool == nil {
		return nil
	}
	return s.spool.close()
}

// read returns the first limit+1 bytes.
func (s *Source) read(limit int) ([]byte, error) {
	r, err := s.Open(true)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err = errors.Join(err, r.Close(), s.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	return data, nil
}

// inMemory is how much of a pipe is kept in memory; the rest goes to a
// temporary file.
const inMemory = 4 << 20

// spool keeps what was read from a pipe.
type spool struct {
	from   io.ReadCloser
	ended  bool // all of from has been read
	memory bytes.Buffer
	file   *os.File // what does not fit into memory
}

func (s *spool) open(last bool) (io.ReadCloser, error) {
	kept := []io.Reader{bytes.NewReader(s.memory.Bytes())}
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		kept = append(kept, io.LimitReader(s.file, 1<<62))
	}
	if s.ended {
		return io.NopCloser(io.MultiReader(kept...)), nil
	}
	if last {
		return io.NopCloser(io.MultiReader(append(kept, s.from)...)), nil
	}
	// The whole is read first: a reader that stops early must not lose the rest.
	if _, err := io.Copy(s, s.from); err != nil {
		return nil, err
	}
	s.ended = true
	return s.open(last)
}

// Write keeps data.
func (s *spool) Write(data []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(data) <= inMemory {
		return s.memory.Write(data)
	}
	if s.file == nil {
		var err error
		if s.file, err = os.CreateTemp("", "rectifier-*"); err != nil {
			return 0, fmt.Errorf("keep it for a second look: %w", err)
		}
		// Nobody else needs its name. Where an open file cannot be removed, close does it.
		_ = os.Remove(s.file.Name())
	}
	return s.file.Write(data)
}

func (s *spool) close() error {
	err := s.from.Close()
	s.memory = bytes.Buffer{}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
		if removed := os.Remove(s.file.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
