package doctest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inlineCommand = regexp.MustCompile("`rectifier ([a-z]+)((?: [^`|;]*)?)[`|;]")
	shownCommand  = regexp.MustCompile(`(?m)^(?:\$ )?(?:.*[|;] )?rectifier ([a-z]+)([^|;#\n]*)`)
	fence         = regexp.MustCompile("(?ms)^```(?:sh|console|bash)\n(.*?)^```")
)

// Commands that documents name, in a sentence or to be typed, exist, and so do
// their flags. (Those that need no cluster are run, too: TestCommandsInDocuments.)
func TestSpellingOfCommands(t *testing.T) {
	flags := map[string][]string{}
	found := 0
	check := func(document, command, arguments string) {
		found++
		if flags[command] == nil {
			flags[command] = helpFlags(t, command)
		}
		for _, f := range flagName.FindAllStringSubmatch(" "+strings.TrimSpace(arguments), -1) {
			if !slices.Contains(flags[command], f[1]) {
				t.Errorf("%s: rectifier %s%s: there is no flag %s", document, command, arguments, f[1])
			}
		}
	}
	for _, document := range markdown(t) {
		if name := filepath.Base(document); name == "CHANGELOG.md" {
			continue // it tells what was
		}
		text := read(t, document)
		for _, m := range inlineCommand.FindAllStringSubmatch(text, -1) {
			check(document, m[1], m[2])
		}
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			for _, m := range shownCommand.FindAllStringSubmatch(block[1], -1) {
				check(document, m[1], m[2])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}
