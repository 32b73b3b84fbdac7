package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen prints the show: with colour on a terminal, unless NO_COLOR is set,
// and as a plain log elsewhere. Its methods may be called from several goroutines.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	colour   bool
	pending  string // the step under way: the last line, without its end
}

func newScreen(f *os.File) *screen {
	terminal := term.IsTerminal(int(f.Fd()))
	return &screen{out: f, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) bold(text string) string { return s.paint("1", text) }
func (s *screen) dim(text string) string  { return s.paint("2", text) }
func (s *screen) good(text string) string { return s.paint("32", text) }
func (s *screen) bad(text string) string  { return s.paint("31", text) }
func (s *screen) warn(text string) string { return s.paint("33", text) }

func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...) + "\n"
	if s.pending != "" {
		text = "\r\x1b[K" + text + s.pending
	}
	io.WriteString(s.out, text)
}

// announce shows a step that is under way, or with "" that it is not.
func (s *screen) announce(what string) {
	if !s.terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != "" {
		io.WriteString(s.out, "\r\x1b[K")
	}
	s.pending = what
	io.WriteString(s.out, what)
}

func (s *screen) title(text string) {
	s.line("\n%s", s.bold(text))
}

func (s *screen) indented(text string) {
	for line := range strings.Lines(text) {
		s.line("  %s", strings.TrimRight(line, "\n"))
	}
}

// step does something that takes a while. On a terminal it is announced first.
func (s *screen) step(what string, do func() error) error {
	s.announce("  … " + what)
	started := time.Now()
	err := do()
	s.announce("")
	mark := s.good("✓")
	if err != nil {
		mark = s.bad("✗")
	}
	s.line("  %s %s %s", mark, what, s.dim(fmt.Sprintf("(%.1f s)", time.Since(started).Seconds())))
	return err
}

// table prints rows in columns of equal width. paint colours a whole row.
func (s *screen) table(rows [][]string, paint func(row int, line string) string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		s.line("  %s", paint(n, strings.TrimRight(b.String(), " ")))
	}
}
