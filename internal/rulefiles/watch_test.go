package rulefiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rectifier-dev/rectifier/rules"
)

// patience is how long a change may take to be seen on a slow machine.
const patience = 20 * time.Second

// watching is a Watch under way.
type watching struct {
	*testing.T
	files *Files
	calls chan call
}

// call is a call of changed: "name=content" for each file, or an error.
type call struct {
	files []string
	err   string
}

func show(sources []rules.Source) []string {
	var out []string
	for _, s := range sources {
		out = append(out, s.Name+"="+string(s.Data))
	}
	slices.Sort(out)
	return out
}

// watch reads and watches paths. Without events a change would be seen in an
// hour.
func watch(t *testing.T, paths ...string) *watching {
	t.Helper()
	w := &watching{T: t, files: New(paths, strings.NewReader("from stdin")), calls: make(chan call, 100)}
	w.files.times = times{quiet: 30 * time.Millisecond, burst: time.Second, poll: time.Hour, retry: 50 * time.Millisecond}
	if _, err := w.files.Read(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watching) start() *watching {
	_, ctx := ktesting.NewTestContext(w.T)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.files.Watch(ctx, func(sources []rules.Source, err error) error {
			c := call{files: show(sources)}
			if err != nil {
				c.err = err.Error()
			}
			w.calls <- c
			return nil
		})
	}()
	w.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			w.Error("Watch does not end")
		}
	})
	return w
}

// want waits for the next call. One that shows a state in between is passed
// over.
func (w *watching) want(files ...string) {
	w.Helper()
	slices.Sort(files)
	var last call
	for timeout := time.After(patience); ; {
		select {
		case last = <-w.calls:
			if last.err == "" && cmp.Equal(files, last.files) {
				return
			}
		case <-timeout:
			w.Fatalf("want %q; the last call was %q", files, last)
		}
	}
}

func (w *watching) wantError(part string) {
	w.Helper()
	select {
	case c := <-w.calls:
		if !strings.Contains(c.err, part) {
			w.Fatalf("want an error with %q, got %q", part, c)
		}
	case <-time.After(patience):
		w.Fatalf("no error with %q", part)
	}
}

// write is what an editor does that writes into the file.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// must fails the test at an error of a file operation.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatHappensToFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/a.yaml", "a1")
	write(t, "single.yaml", "s1")
	w := watch(t, "rules", "single.yaml", "-").start()

	write(t, "rules/a.yaml", "a2")
	w.want("rules/a.yaml=a2", "single.yaml=s1", "<stdin>=from stdin")
	// An editor that renames over the file.
	write(t, "rules/.a.yaml.swp", "a3")
	must(t, os.Rename("rules/.a.yaml.swp", "rules/a.yaml"))
	w.want("rules/a.yaml=a3", "single.yaml=s1", "<stdin>=from stdin")
	write(t, "other.tmp", "s2")
	must(t, os.Rename("other.tmp", "single.yaml"))
	w.want("rules/a.yaml=a3", "single.yaml=s2", "<stdin>=from stdin")
	// A folder with files comes, one in it changes, it goes.
	write(t, "rules/deep/er/b.yaml", "b1")
	w.want("rules/a.yaml=a3", "rules/deep/er/b.yaml=b1", "single.yaml=s2", "<stdin>=from stdin")
	write(t, "rules/deep/er/b.yaml", "b2")
	w.want("rules/a.yaml=a3", "rules/deep/er/b.yaml=b2", "single.yaml=s2", "<stdin>=from stdin")
	must(t, os.RemoveAll("rules/deep"))
	w.want("rules/a.yaml=a3", "single.yaml=s2", "<stdin>=from stdin")
	// Another folder takes the place of one, within a moment.
	write(t, "new/c.yaml", "c1")
	must(t, os.Rename("rules", "old"))
	must(t, os.Rename("new", "rules"))
	w.want("rules/c.yaml=c1", "single.yaml=s2", "<stdin>=from stdin")
	write(t, "rules/c.yaml", "c2")
	w.want("rules/c.yaml=c2", "single.yaml=s2", "<stdin>=from stdin")
	// All files go: that is no error.
	must(t, os.Remove("rules/c.yaml"))
	w.want("single.yaml=s2", "<stdin>=from stdin")
}

// Folders are watched from the moment on that they are there, however soon
// something comes into them.
func TestFoldersThatCome(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("rules", 0o755))
	w := watch(t, "rules")
	w.files.times.quiet = time.Microsecond // in the midst of it
	w.start()
	for i := range 30 {
		name := fmt.Sprintf("rules/%d%s/rule.yaml", i, strings.Repeat("/deeper", 50))
		write(t, name, "1")
		w.want(name + "=1")
		write(t, name, "2")
		w.want(name + "=2")
		must(t, os.RemoveAll(fmt.Sprintf("rules/%d", i)))
		w.want()
	}
}

// A ConfigMap as the kubelet mounts it: files are links to ..data/file, ..data
// is a link to a folder, and is replaced as a whole.
func TestAMountedConfigMap(t *testing.T) {
	for _, tc := range []struct{ name, path string }{{"the folder", "rules"}, {"a file", "rules/a.yaml"}, {"through a link", "link"}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			version := 0
			swap := func(content string) {
				before, _ := os.Readlink("rules/..data")
				version++
				folder := fmt.Sprintf("..2026_%d", version)
				write(t, "rules/"+folder+"/a.yaml", content)
				must(t, os.Symlink(folder, "rules/..data_tmp"))
				must(t, os.Rename("rules/..data_tmp", "rules/..data"))
				if before != "" {
					must(t, os.RemoveAll("rules/"+before))
				}
			}
			swap("0")
			must(t, os.Symlink("..data/a.yaml", "rules/a.yaml"))
			must(t, os.Symlink("rules", "link"))
			name := "rules/a.yaml"
			if tc.path == "link" {
				name = "link/a.yaml"
			}
			w := watch(t, tc.path).start()
			for i := range 20 {
				content := fmt.Sprint(i + 1)
				swap(content)
				w.want(name + "=" + content)
			}
		})
	}
}

// Links on the way to a file are followed wherever they stand.
func TestLinksOnTheWay(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "releases/1/rules/a.yaml", "1")
	write(t, "releases/2/rules/a.yaml", "2")
	must(t, os.Symlink("releases/1", "current"))
	must(t, os.Mkdir("etc", 0o755))
	must(t, os.Symlink("../current/rules/a.yaml", "etc/a.yaml"))
	w := watch(t, "etc").start()
	must(t, os.Symlink("releases/2", "next"))
	must(t, os.Rename("next", "current"))
	w.want("etc/a.yaml=2")
	write(t, "releases/2/rules/a.yaml", "3")
	w.want("etc/a.yaml=3")
}

// A path that is gone for a while changes nothing, is told once, and is taken
// up when it is back, even if nothing has changed.
func TestAPathThatIsGoneForAWhile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/a.yaml", "a")
	w := watch(t, "rules").start()
	for range 3 {
		must(t, os.Rename("rules", "away"))
		w.wantError("stat rules: no such file or directory")
		must(t, os.Rename("away", "rules"))
		w.want("rules/a.yaml=a")
	}
	write(t, "rules/a.yaml", "b")
	w.want("rules/a.yaml=b")
	if len(w.calls) > 0 {
		t.Errorf("called again: %q", <-w.calls)
	}
}

// What changes between Read and Watch is not missed, nor what gives no event:
// here a file is written through another link to it.
func TestWhatGivesNoEvent(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "elsewhere/a.yaml", "a")
	must(t, os.Mkdir("rules", 0o755))
	must(t, os.Link("elsewhere/a.yaml", "rules/a.yaml"))
	w := watch(t, "rules")
	write(t, "elsewhere/a.yaml", "b")
	w.start()
	w.want("rules/a.yaml=b")

	w = watch(t, "rules")
	w.files.times.poll = 100 * time.Millisecond
	w.start()
	write(t, "elsewhere/a.yaml", "c")
	w.want("rules/a.yaml=c")
}

// An error is passed on if it lasts, and once; the end of one that was not
// passed on is no news.
func TestErrorsArePassedOnOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/a.yaml", "a")
	f := watch(t, "rules").files
	away := func() { must(t, os.Rename("rules", "away")) }
	back := func() { must(t, os.Rename("away", "rules")) }
	for i, step := range []struct {
		do   func()
		want string // how changed is called
	}{
		{func() {}, ""},
		{away, ""}, {back, ""},
		{away, ""}, {func() {}, "error"}, {func() {}, ""}, {back, "files"}, {func() {}, ""},
		{away, ""}, {func() {}, "error"}, {back, "files"},
		// What does not stay is not passed on.
		{func() { write(t, "rules/a.yaml", "") }, ""}, {func() { write(t, "rules/a.yaml", "b") }, ""}, {func() {}, "files"}, {func() {}, ""},
		{func() { write(t, "rules/a.yaml", "") }, ""}, {func() { write(t, "rules/a.yaml", "b") }, ""}, {func() {}, ""},
	} {
		step.do()
		got := ""
		f.look(func(_ []rules.Source, err error) error {
			if got = "files"; err != nil {
				got = "error"
			}
			return nil
		})
		if got != step.want {
			t.Errorf("step %d: changed was called with %q, want %q", i, got, step.want)
		}
	}
}

// Files that were not taken are offered again, more and more seldom, until they
// are; also those that were in force before, for whoever was told of the others.
func TestFilesThatAreNotTakenAreOfferedAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/a.yaml", "a")
	f := watch(t, "rules").files
	f.times = times{quiet: time.Millisecond, poll: 7 * time.Second, retry: 2 * time.Second}
	busy := errors.New("busy")
	for i, step := range []struct {
		content string
		answer  error
		want    string // what changed is called with
		next    time.Duration
	}{
		{"a", nil, "", 7 * time.Second},
		{"b", busy, "", time.Millisecond}, {"b", busy, "b", 2 * time.Second}, {"b", busy, "b", 4 * time.Second}, {"b", busy, "b", 7 * time.Second},
		{"b", nil, "b", 7 * time.Second}, {"b", nil, "", 7 * time.Second},
		{"c", busy, "", time.Millisecond}, {"c", busy, "c", 2 * time.Second},
		{"b", nil, "", time.Millisecond}, {"b", nil, "b", 7 * time.Second}, {"b", nil, "", 7 * time.Second},
	} {
		write(t, "rules/a.yaml", step.content)
		got := ""
		next := f.look(func(sources []rules.Source, _ error) error {
			got = string(sources[0].Data)
			return step.answer
		})
		if got != step.want || next != step.next {
			t.Errorf("step %d: changed was called with %q, and is again after %v; want %q, %v", i, got, next, step.want, step.next)
		}
	}
}

// A pipe has its content once: it is kept, and not taken for empty later.
func TestAPipeIsReadOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	r, pipe, err := os.Pipe()
	must(t, err)
	defer r.Close()
	_, err = pipe.WriteString("from a pipe")
	must(t, err)
	must(t, pipe.Close())
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skipf("this system has no names for open files: %v", err)
	}
	write(t, "a.yaml", "a")
	w := watch(t, name, "a.yaml").start()
	write(t, "a.yaml", "b")
	w.want("a.yaml=b", name+"=from a pipe")
}

// A burst is one change, and an endless one does not put it off for ever.
func TestBursts(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.yaml", "a")
	w := watch(t, "a.yaml")
	w.files.times.quiet = 5 * time.Second
	w.start()
	for i := range 50 {
		write(t, "a.yaml", fmt.Sprint("a", i))
	}
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(10 * time.Millisecond); ; { // the burst itself
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = os.Chtimes("a.yaml", time.Now(), time.Now())
			}
		}
	}()
	w.want("a.yaml=a49")
	close(stop)
	<-stopped
	if len(w.calls) > 0 {
		t.Errorf("called again: %q", <-w.calls)
	}
}

// What happens beside a file that was named is nothing to wake up for.
func TestWhatMatters(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "etc/..1/a.yaml", "a")
	must(t, os.Symlink("..1", "etc/..data"))
	must(t, os.Symlink("..data/a.yaml", "etc/a.yaml"))
	write(t, "rules/a.yaml", "a")
	working, err := filepath.EvalSymlinks(".")
	must(t, err)
	working, err = filepath.Abs(working)
	must(t, err)
	p := placesOf([]string{"etc/a.yaml", "rules", "missing/b.yaml"})
	for name, want := range map[string]bool{
		"etc/a.yaml": true, "etc/..data": true, "etc/..1/a.yaml": true, "rules/b.yaml": true, "rules": true, "missing": true, "etc": true,
		"etc/b.yaml": false, "etc/..1/b.yaml": false, "other": false, "rules/deep/b.yaml": false,
	} {
		if got := p.matter(filepath.Join(working, name)); got != want {
			t.Errorf("%s matters: %v, want %v", name, got, want)
		}
	}
}

// Watches go with the folders that they are for.
func TestWatchesDoNotLeak(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/a.yaml", "a")
	_, ctx := ktesting.NewTestContext(t)
	w := newWatcher(klog.NewContext(ctx, klog.FromContext(ctx)))
	defer w.close()
	for i := range 200 {
		folder := fmt.Sprintf("..%d", i)
		write(t, "rules/"+folder+"/b.yaml", "b")
		must(t, os.Symlink(folder, "rules/..data_tmp"))
		must(t, os.Rename("rules/..data_tmp", "rules/..data"))
		if i == 0 {
			must(t, os.Symlink("..data/b.yaml", "rules/b.yaml"))
		} else {
			must(t, os.RemoveAll(fmt.Sprintf("rules/..%d", i-1)))
		}
		w.follow([]string{"rules"})
		// rules, its parent, and where b.yaml really is.
		if got := w.notify.WatchList(); len(got) > 4 || len(w.watched) != 3 {
			t.Fatalf("%d watches after %d changes: %q", len(got), i, got)
		}
	}
}
