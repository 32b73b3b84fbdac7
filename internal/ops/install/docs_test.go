package install

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a fenced block of the page: as in internal/doctest, a comment before
// it directs the test.
type block struct {
	line                      int
	language, directive, text string
}

var (
	fenced = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```([a-z]*)\n(.*?)^```$")
	notRun = regexp.MustCompile(`^not run: (it needs a registry|it needs a node|there is one version)$`)
)

func blocks(page string) []block {
	var out []block
	for _, m := range fenced.FindAllStringSubmatchIndex(page, -1) {
		b := block{line: 1 + strings.Count(page[:m[0]], "\n"), language: page[m[4]:m[5]], text: page[m[6]:m[7]]}
		if m[2] >= 0 {
			b.directive = page[m[2]:m[3]]
		}
		out = append(out, b)
	}
	return out
}

// The commands of docs/install.md do what the page says, one after the other, in a
// clone of the repository.
func TestDocsInstall(t *testing.T) {
	content, err := os.ReadFile(root + "/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{shell: newShell(t).inCluster(), namespace: release, begin: time.Now()}
	i.client, _ = clients(t)
	i.dir = t.TempDir()
	deploy, err := filepath.Abs(root + "/deploy")
	if err == nil {
		err = os.Symlink(deploy, filepath.Join(i.dir, "deploy"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what a page that fails leaves behind
		i.must("kubectl delete namespace rectifier shop team-a --ignore-not-found --timeout 2m")
		i.must("kubectl delete clusterroles,clusterrolebindings -l app.kubernetes.io/instance=" + release)
	})
	i.kubelet = startKubelet(t, release)
	startKubelet(t, "team-a")
	ran := 0
	for _, b := range blocks(string(content)) {
		file, isFile := strings.CutPrefix(b.directive, "file: ")
		switch {
		case isFile:
			path := filepath.Join(i.dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(b.text), 0o644)); err != nil {
				t.Fatal(err)
			}
		case notRun.MatchString(b.directive):
		case b.language == "sh" && (b.directive == "" || b.directive == "fails"):
			for line := range strings.Lines(b.text) {
				i.shown(b.line, strings.TrimSpace(line), b.directive == "fails")
				ran++
			}
		case b.language != "":
			t.Errorf("line %d: a block of %s with the directive %q", b.line, b.language, b.directive)
		}
	}
	if ran < 30 {
		t.Errorf("only %d commands were found", ran)
	}
	i.wantShownRefusal(string(content))
}

// shown runs a command of the page.
func (i *installation) shown(at int, line string, fails bool) {
	i.Helper()
	stdout, stderr, ok := i.run(line, "")
	if ok == fails {
		i.Fatalf("docs/install.md:%d: %s: succeeded: %v\n%s%s", at, line, ok, stdout, stderr)
	}
}

// wantShownRefusal compares the message that the page shows with the real one.
func (i *installation) wantShownRefusal(page string) {
	i.Helper()
	out := i.refused("", "helm template rectifier deploy/chart -n rectifier -f values.yaml -f rules-values.yaml --set-json 'builtin=[]'")
	for _, b := range blocks(page) {
		if b.language == "" && !strings.Contains(out, strings.TrimSpace(b.text)) {
			i.Errorf("docs/install.md:%d shows\n%s\nbut helm says\n%s", b.line, b.text, out)
		}
	}
}
