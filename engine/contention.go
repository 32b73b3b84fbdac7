package engine

import "time"

// Contention says when a rule gives way: it has made the same change to the
// same object Count times within Window, because somebody else set it back, or
// any changes Cap times. The rule is then held for that object, for a minute and
// twice as long each further time, up to an hour. The zero values mean the
// defaults.
type Contention struct {
	Count  int
	Window time.Duration
	Cap    int // of changes that differ, within Window
}

// Defaults of Contention.
const (
	DefaultContentionCount  = 5
	DefaultContentionWindow = 10 * time.Minute
	DefaultContentionCap    = 60
)
