package statuspage

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// words are the functions of the template.
var words = template.FuncMap{
	"iso":    iso,
	"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") },
	"number": number[int],
	"count":  count,
	"parts":  parts,
	"more":   func(left int, full bool, showAll string) more { return more{left, full, showAll} },
}

// parts cuts a name where a line may be broken: behind dots and slashes.
func parts(name string) []string {
	var out []string
	for len(name) > 0 {
		i := strings.IndexAny(name, "./[") + 1
		if i == 0 {
			i = len(name)
		}
		out = append(out, name[:i])
		name = name[i:]
	}
	return out
}

// more is what a table says of rows that it does not show.
type more struct {
	Left    int
	Full    bool
	ShowAll string
}

// iso is a time for machines, and for people who want to know exactly.
func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// moment is a time as it is shown: how long ago, or how long until then.
type moment struct {
	At   time.Time
	Text string
}

// Zero reports whether there is nothing to show.
func (m moment) Zero() bool { return m.At.IsZero() }

func ago(at, now time.Time) moment {
	switch d := now.Sub(at); {
	case at.IsZero():
		return moment{}
	case d < time.Second:
		return moment{at, "now"}
	default:
		return moment{at, duration(d) + " ago"}
	}
}

func until(at, now time.Time) moment {
	if !now.Before(at) {
		return moment{at, "now"}
	}
	return moment{at, "in " + duration(at.Sub(now))}
}

func since(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	return moment{at, "for " + duration(now.Sub(at))}
}

// duration rounds to what matters: 42 s, 3 min, 5 h, 12 d.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// number groups digits, so that long figures can be read: 1 234 567 with narrow
// spaces that do not break.
func number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// listOf is a few words of a list.
func listOf(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(all[:n], ", "), number(len(all)-n))
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
