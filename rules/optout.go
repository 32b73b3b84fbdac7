package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The annotations by which an object, or the Namespace that it is in, asks to
// be left alone.
const (
	SkipAnnotation      = "rectifier.dev/skip"       // "rule-a,rule-b", or "*" for all
	SkipUntilAnnotation = "rectifier.dev/skip-until" // RFC 3339; alone it means "*"
)

// optOut says whether annotations keep a rule away, and until when (zero: for
// ever). An end that cannot be read keeps the rule away too, and is an error
// to be told.
type optOut struct {
	reason string // empty: they do not
	until  time.Time
	err    error
}

// asksToOptOut reports whether an object, or a Namespace, has one of the
// annotations at all. Nearly none has.
func asksToOptOut(object map[string]any) bool {
	annotations, _ := metadataOf(object)["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return false
	}
	_, skip := annotations[SkipAnnotation]
	_, until := annotations[SkipUntilAnnotation]
	return skip || until
}

// optedOut reads the annotations of an object or a Namespace; where names it
// in the reason.
func optedOut(object map[string]any, where, rule string, now time.Time) optOut {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if annotations == nil {
		return optOut{}
	}
	skip, hasSkip := annotations[SkipAnnotation].(string)
	until, hasUntil := annotations[SkipUntilAnnotation].(string)
	if !hasSkip && !hasUntil || hasSkip && !names(skip, rule) && !unclear(skip) {
		return optOut{}
	}
	if hasSkip && unclear(skip) {
		return optOut{
			reason: fmt.Sprintf("%s has the annotation %s", where, SkipAnnotation),
			err:    fmt.Errorf("the annotation %s on %s names rules, or is \"*\" for all, but it is %q: the object is left alone", SkipAnnotation, where, skip),
		}
	}
	out := optOut{reason: fmt.Sprintf("%s has the annotation %s", where, SkipAnnotation)}
	if !hasSkip {
		out.reason = fmt.Sprintf("%s has the annotation %s", where, SkipUntilAnnotation)
	}
	if !hasUntil {
		return out
	}
	end, err := time.Parse(time.RFC3339, until)
	switch {
	case err != nil:
		out.err = fmt.Errorf("the annotation %s on %s is not a time such as 2026-12-31T00:00:00Z: the object is left alone", SkipUntilAnnotation, where)
	case !now.Before(end):
		return optOut{}
	}
	out.until = end
	return out
}

// unclear reports whether somebody wrote what is no list of rules, but surely
// meant that the object is not to be touched.
func unclear(skip string) bool {
	switch strings.ToLower(strings.TrimSpace(skip)) {
	case "true", "yes", "all", "1", "on":
		return true
	}
	return false
}

// names reports whether a skip annotation names a rule.
func names(skip, rule string) bool {
	return slices.ContainsFunc(strings.Split(skip, ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == "*" || s == rule
	})
}
