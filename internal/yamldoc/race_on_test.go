//go:build race

package yamldoc

const raceEnabled = true
