package browser

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// audit checks what has to be so in every state.
func audit(t *testing.T, s *stage, name string) {
	b := open(t, s.url, 1120, 840)
	eval[bool](b, `[...document.querySelectorAll(".activity details")].slice(0, 2).every((d) => (d.open = true))`)
	b.docPicture(name)
	b.resize(1280, 800)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.wantContrast(scheme)
		b.wantWidth(scheme)
		b.picture(name + "-" + scheme)
	}
	b.wantTree()
	b.wantHeadings()
	b.wantTabOrder()
	b.axe()
	b.resize(320, 640)
	b.wantWidth("320 px")
	b.wantContrast("320 px")
	b.picture(name + "-phone")
	b.do(chromedp.Navigate(s.url))
	b.docPicture(name + "-phone")
	b.scheme("light")
	b.axe()
}

// openAll unfolds everything.
func (b *tab) openAll() {
	b.Helper()
	eval[bool](b, `[...document.querySelectorAll("details")].every((d) => (d.open = true))`)
}

func (b *tab) wantContrast(in string) {
	b.Helper()
	b.openAll()
	got := eval[struct {
		Texts int
		Poor  []string
	}](b, "contrast()")
	if got.Texts < 50 {
		b.Errorf("%s: only %d texts are seen", in, got.Texts)
	}
	for _, p := range got.Poor {
		b.Errorf("%s: a contrast of %s", in, p)
	}
}

// wantWidth fails if the page has to be scrolled sideways.
func (b *tab) wantWidth(in string) {
	b.Helper()
	b.openAll()
	if over := eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		b.Errorf("%s: the page is %d px too wide", in, over)
	}
	if out := eval[[]string](b, "sticking()"); len(out) > 0 {
		b.Errorf("%s: these stick out: %q", in, out)
	}
}

// role is a node of the accessibility tree.
type role struct{ Role, Name string }

// tree lists what a screen reader is told, in order.
func (b *tab) tree() []role {
	b.Helper()
	call(b, accessibility.Enable, cdp.Empty{})
	var out []role
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		r := role{Role: word(n.Role)}
		if n.Name != nil {
			r.Name = word(n.Name)
		}
		out = append(out, r)
	}
	return out
}

func word(v *accessibility.Value) string {
	var s string
	if json.Unmarshal(v.Value, &s) != nil {
		return string(v.Value)
	}
	return strings.Join(strings.Fields(s), " ")
}

// wantTree checks landmarks and names.
func (b *tab) wantTree() {
	b.Helper()
	tree := b.tree()
	count := func(of role) (n int) {
		for _, r := range tree {
			if r.Role == of.Role && (of.Name == "" || r.Name == of.Name) {
				n++
			}
		}
		return n
	}
	for _, landmark := range []role{{"banner", ""}, {"navigation", "Sections"}, {"main", ""}, {"contentinfo", ""}} {
		if n := count(landmark); n != 1 {
			b.Errorf("%d landmarks %v, want 1", n, landmark)
		}
	}
	for _, r := range tree {
		switch r.Role {
		case "link", "button", "DisclosureTriangle", "heading", "region", "table", "columnheader", "rowheader", "navigation":
			if r.Name == "" {
				b.Errorf("a %s without a name", r.Role)
			}
		}
	}
	if count(role{"status", ""}) != 1 {
		b.Error("nothing tells a screen reader that the page is old")
	}
	if tables := eval[int](b, `document.querySelectorAll("table").length`); count(role{"table", ""}) != tables {
		b.Errorf("%d of %d tables are tables to a screen reader", count(role{"table", ""}), tables)
	}
	if lang := eval[string](b, "document.documentElement.lang"); lang != "en" {
		b.Errorf("the language is %q", lang)
	}
	if ids := eval[[]string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`); len(ids) > 0 {
		b.Errorf("ids that are not unique: %q", ids)
	}
}

// wantHeadings checks that no level of headings is left out.
func (b *tab) wantHeadings() {
	b.Helper()
	levels := eval[[]int](b, `[...document.querySelectorAll("h1, h2, h3, h4")].map((h) => Number(h.nodeName[1]))`)
	if len(levels) == 0 || levels[0] != 1 || slices.Contains(levels[1:], 1) {
		b.Errorf("the headings are of levels %v, want one h1, which is first", levels)
	}
	for i := 1; i < len(levels); i++ {
		if levels[i] > levels[i-1]+1 {
			b.Errorf("the headings are of levels %v: one is left out", levels)
		}
	}
}

// wantTabOrder goes through the page by Tab.
func (b *tab) wantTabOrder() {
	b.Helper()
	want := eval[[]string](b, `(document.querySelector("#toggle").focus(), document.activeElement.blur(), controls())`)
	b.do(chromedp.Navigate(eval[string](b, `location.href.split("?")[0] + "?refresh=off"`)))
	b.openAll()
	type stop struct {
		What           string
		Outlined, Seen bool
	}
	var got []string
	for range len(want) + 5 {
		b.do(chromedp.KeyEvent("\t"))
		at := eval[*stop](b, "focused()")
		if at == nil {
			break
		}
		if !at.Outlined || !at.Seen {
			b.Errorf("the focus on %q cannot be seen: %+v", at.What, *at)
		}
		got = append(got, at.What)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("what is reached by Tab (-want +got):\n%s", diff)
	}
}

// axe runs axe-core, if there is a copy of it: RECTIFIER_AXE names the file, which
// `npm pack axe-core` has as package/axe.min.js.
func (b *tab) axe() {
	b.Helper()
	file := os.Getenv("RECTIFIER_AXE")
	if file == "" {
		return
	}
	source, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	b.openAll()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](string(source)+";0")); err != nil {
		b.Fatal(err)
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](
		`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) =>
			r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 200))))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range found {
		b.Errorf("axe: %s", f)
	}
}
