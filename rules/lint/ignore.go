package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// ignoreComment is a comment that should silence a finding, but does not.
var ignoreComment = &Check{ID: "ignore-comment", Severity: Warning, Summary: "A rectifier:ignore comment has no effect"}

// directive is a comment that asks for silence, however it is spelled.
var directive = regexp.MustCompile(`^#+\s*rectifier\s*[:-]\s*ignore(\s|:|$)`)

const usage = "write # rectifier:ignore ID reason"

// silence is a comment "# rectifier:ignore ID reason".
type silence struct {
	rule  *rules.Definition
	check string
	whole bool // the whole rule; otherwise
	line  int  // the line that it is about
	pos   yamldoc.Position
	used  bool
}

// ignore takes out of the findings what comments silence, and adds what is
// wrong with the comments. silenced counts what was taken out.
func ignore(sources []rules.Source, all []*rules.Definition, found []*Finding) (kept []*Finding, silenced int) {
	var silences []*silence
	texts := map[string]*text{}
	for _, s := range sources {
		if !strings.Contains(string(s.Data), "ignore") {
			continue
		}
		t := newText(s, all)
		texts[s.Name] = t
		for _, c := range t.comments() {
			if !directive.MatchString(c.text) {
				continue
			}
			for _, rule := range t.about(c) {
				made, problem := t.silence(c, rule)
				if problem != "" {
					kept = append(kept, &Finding{ignoreComment, rule.Problem(t.position(c.at), problem)})
					break // it is wrong once, not for each rule of a List
				}
				silences = append(silences, made)
			}
		}
	}
	for _, f := range found {
		if s := silencer(silences, f, texts[f.Problem.Pos.File]); s != nil {
			s.used = true
			silenced++
			continue
		}
		kept = append(kept, f)
	}
	return append(kept, unused(silences)...), silenced
}

// silencer is the comment that silences a finding; one at its line is preferred
// to one at the head of the rule.
func silencer(silences []*silence, f *Finding, t *text) *silence {
	var whole *silence
	for _, s := range silences {
		switch {
		case s.check != f.Check.ID || s.rule.Name != f.Problem.Rule || s.pos.File != f.Problem.Pos.File:
		case s.whole:
			whole = s
		case slices.Contains(t.lines(f.Problem.Pos.Line), s.line):
			return s
		}
	}
	return whole
}

// unused are the comments that silenced nothing. One above a List is about all
// of its rules, and is used if any of them needs it.
func unused(silences []*silence) []*Finding {
	var out []*Finding
	for i, s := range silences {
		same := func(o *silence) bool { return o.pos == s.pos }
		if slices.ContainsFunc(silences, func(o *silence) bool { return same(o) && o.used }) || slices.IndexFunc(silences, same) < i {
			continue
		}
		where := "on this line"
		if s.whole {
			where = "in this rule"
		}
		out = append(out, &Finding{ignoreComment, s.rule.Problem(s.pos, fmt.Sprintf("there is nothing to ignore: %s finds nothing %s", s.check, where))})
	}
	return out
}

// silence reads a comment; it returns what is wrong with it.
func (t *text) silence(c comment, rule *rules.Definition) (s *silence, problem string) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimLeft(c.text, "#")), "rectifier:ignore")
	id := strings.TrimSpace(rest)
	reason := ""
	if i := strings.IndexAny(id, " \t"); i >= 0 {
		id, reason = id[:i], id[i:]
	}
	check := Find(id)
	switch {
	case !ok || rest != "" && strings.TrimLeft(rest, " \t") == rest:
		return nil, "this looks like a comment that silences lint, but is none: " + usage
	case id == "":
		return nil, "which check is to be ignored, and why? " + usage
	case check == nil:
		return nil, fmt.Sprintf("there is no check %q%s: %s", id, suggest.DidYouMean(id, ids()), usage)
	case check == ignoreComment:
		return nil, "ignore-comment cannot be ignored: remove the comment that has no effect"
	case check.Run == nil:
		return nil, fmt.Sprintf("%s cannot be ignored: what it finds keeps a rule from being used at all", id)
	case strings.TrimSpace(reason) == "":
		return nil, fmt.Sprintf("why is %s to be ignored? %s", id, usage)
	}
	return &silence{rule: rule, check: id, whole: t.isHead(c, rule), line: t.target(c), pos: t.position(c.at)}, ""
}

func ids() []string {
	var out []string
	for _, c := range Checks {
		out = append(out, c.ID)
	}
	return out
}

// text is a rule file as text: where its comments stand, and what they are
// about. YAML's own nodes keep comments, but not their positions.
type text struct {
	data  string
	file  string
	docs  []*yamldoc.Document
	rules []*rules.Definition // those of the file that compile
	// scalars are the byte ranges in which a # is no comment, sorted.
	scalars []span
	// starts tells for the lines of a scalar of several lines where it begins:
	// at the line of its key.
	starts map[int]int
	breaks []int // byte offsets at which lines begin
}

type span struct{ start, end int }

type comment struct {
	at    int // byte offset of the #
	text  string
	alone bool // nothing else stands on the line
}

func newText(s rules.Source, all []*rules.Definition) *text {
	t := &text{file: s.Name, data: strings.TrimPrefix(string(s.Data), "\ufeff"), starts: map[int]int{}}
	t.breaks = lineStarts(t.data)
	for _, d := range all {
		if d.Doc.File == s.Name {
			t.rules = append(t.rules, d)
			if !slices.Contains(t.docs, d.Doc) {
				t.docs = append(t.docs, d.Doc)
			}
		}
	}
	// Only documents with rules are of interest: what is in others is not read.
	for _, d := range t.docs {
		t.collect(d, d.Root, nil)
	}
	slices.SortFunc(t.scalars, func(a, b span) int { return a.start - b.start })
	return t
}

// collect notes where the scalars below a node are. key is the node's, if it
// is a value of a mapping.
func (t *text) collect(d *yamldoc.Document, n, key *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		e, ok := d.Extent(n)
		if !ok {
			return
		}
		begin := t.line(e.Outer)
		if key != nil {
			begin = d.Pos(key).Line
		}
		for line := t.line(e.Outer); line <= t.line(e.End); line++ {
			t.starts[line] = min(begin, orLine(t.starts[line], begin))
		}
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 { // behind > and | a comment may stand
			e.Start = t.lineEnd(e.Start)
		}
		t.scalars = append(t.scalars, span{e.Start, e.End})
		return
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 1:
			t.collect(d, c, n.Content[i-1])
		default:
			t.collect(d, c, nil)
		}
	}
}

func orLine(line, otherwise int) int {
	if line == 0 {
		return otherwise
	}
	return line
}

// comments are all comments in the documents that hold rules, and before them.
func (t *text) comments() []comment {
	var out []comment
	at, next := 0, 0
	for _, d := range t.docs {
		_, end := d.Span()
		for at < end {
			i := strings.IndexByte(t.data[at:end], '#')
			if i < 0 {
				break
			}
			i += at
			for next < len(t.scalars) && t.scalars[next].end <= i {
				next++
			}
			if next < len(t.scalars) && t.scalars[next].start <= i {
				at = t.scalars[next].end
				continue
			}
			line := t.breaks[t.line(i)-1]
			before := t.data[line:i]
			if before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\t") {
				at = i + 1
				continue
			}
			at = t.lineEnd(i)
			out = append(out, comment{i, strings.TrimSpace(t.data[i:at]), strings.TrimSpace(before) == ""})
		}
		at = max(at, end)
	}
	return out
}

// about are the rules that a comment is about: the one that it stands in or
// above, or all of a List.
func (t *text) about(c comment) []*rules.Definition {
	for _, d := range t.docs {
		_, end := d.Span()
		if c.at >= end {
			continue
		}
		var of []*rules.Definition
		for _, r := range t.rules {
			if r.Doc == d {
				of = append(of, r)
			}
		}
		if t.line(c.at) < d.Pos(d.Root).Line {
			return of
		}
		line := t.target(c)
		for i := range of {
			if i == len(of)-1 || line < d.Pos(of[i+1].Node).Line {
				return of[i : i+1]
			}
		}
	}
	return nil
}

// isHead reports whether a comment stands above a rule, not in it.
func (t *text) isHead(c comment, rule *rules.Definition) bool {
	first := rule.Doc.Pos(rule.Node).Line
	return t.line(c.at) < first && t.target(c) <= first
}

// target is the line that a comment is about: its own, or, of one that stands
// alone, the one that follows. Comments may be stacked.
func (t *text) target(c comment) int {
	line := t.line(c.at)
	if !c.alone {
		return line
	}
	for line < len(t.breaks) {
		line++
		if !strings.HasPrefix(strings.TrimSpace(t.lineText(line)), "#") {
			break
		}
	}
	return line
}

// lines are where a comment can stand that is about a line: at the line itself,
// or where the scalar begins that it is a part of.
func (t *text) lines(line int) []int {
	return []int{line, orLine(t.starts[line], line)}
}

func (t *text) position(at int) yamldoc.Position {
	line := t.line(at)
	return yamldoc.Position{File: t.file, Line: line, Column: len([]rune(t.data[t.breaks[line-1]:at])) + 1}
}

// line is the number of the line that a byte stands on, from 1.
func (t *text) line(at int) int {
	i, found := slices.BinarySearch(t.breaks, at)
	if found {
		i++
	}
	return i
}

func (t *text) lineEnd(at int) int {
	if i := strings.IndexAny(t.data[at:], "\r\n"); i >= 0 {
		return at + i
	}
	return len(t.data)
}

func (t *text) lineText(line int) string {
	start := t.breaks[line-1]
	return t.data[start:t.lineEnd(start)]
}

func lineStarts(s string) []int {
	starts := []int{0}
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' && (i+1 == len(s) || s[i+1] != '\n') {
			starts = append(starts, i+1)
		}
	}
	return starts
}
