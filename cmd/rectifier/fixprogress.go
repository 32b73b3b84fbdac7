package main

import (
	"fmt"
	"io"
	"time"
)

// progress shows on a terminal how far a long run is: one line that is written
// over and over, and gives way to what else is told. Elsewhere it shows nothing.
type progress struct {
	w        io.Writer
	terminal bool
	next     time.Time // when to show the line again
	shown    bool
}

// progressEvery is how often the line is written; shorter runs show none.
const progressEvery = time.Second

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), next: time.Now().Add(progressEvery)}
}

// show shows how many objects have been read and changed.
func (p *progress) show(objects, changed int) {
	if !p.terminal || time.Now().Before(p.next) {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, "%d objects, %d changed …", objects, changed)
	p.shown, p.next = true, time.Now().Add(progressEvery)
}

// clear takes the line away.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Write tells something else.
func (p *progress) Write(text []byte) (int, error) {
	p.clear()
	return p.w.Write(text)
}
