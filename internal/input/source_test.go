package input

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// content opens a source and reads it.
func content(t *testing.T, s *Source, last bool) string {
	t.Helper()
	r, err := s.Open(last)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSourcesCanBeReadAgain reads files, standard input and pipes three times,
// the second time not to the end.
func TestSourcesCanBeReadAgain(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "short": "a: 1\n", "long": strings.Repeat("0123456789abcdef\n", inMemory/10)} {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"file.yaml": text})
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			if err := syscall.Mkfifo("pipe", 0o600); err != nil {
				t.Fatal(err)
			}
			go func() { _ = os.WriteFile("pipe", []byte(text), 0) }()
			sources, err := Find([]string{"file.yaml", "-", "pipe"}, iotest.HalfReader(strings.NewReader(text)))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sources {
				if got := content(t, s, false); got != text {
					t.Errorf("%s: %d bytes, want %d", s.Name, len(got), len(text))
				}
				r, err := s.Open(false)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.CopyN(io.Discard, r, int64(len(text)/2)); err != nil {
					t.Error(err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if got := content(t, s, true); got != text {
					t.Errorf("%s, the last time: %d bytes, want %d", s.Name, len(got), len(text))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, err := filepath.Glob(temp + "/*"); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestTheLastReadIsDirect checks that nothing is kept where nobody comes back.
func TestTheLastReadIsDirect(t *testing.T) {
	var asked bytes.Buffer
	sources, err := Find([]string{"-"}, io.TeeReader(strings.NewReader(strings.Repeat("x", 1<<20)), &asked))
	if err != nil {
		t.Fatal(err)
	}
	r, err := sources[0].Open(true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil || asked.Len() != 10 {
		t.Errorf("%d bytes were read for 10, %v", asked.Len(), err)
	}
}

func TestUnreadablePipe(t *testing.T) {
	broken := errors.New("broken")
	sources, err := Find([]string{"-"}, iotest.ErrReader(broken))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sources[0].Open(false); !errors.Is(err, broken) || err.Error() != "read <stdin>: broken" {
		t.Errorf("got %v", err)
	}
}
