package rulefiles

import (
	"context"
	"io/fs"
	"os"
	"sync"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// watcher tells of changes in folders.
type watcher struct {
	events chan struct{} // something has happened: one entry, however much it was

	logger klog.Logger
	notify *fsnotify.Watcher // nil: there is none, polling has to do
	pump   sync.WaitGroup
	// watched are the folders that are watched, as they were then: another one
	// may come in the place of a folder.
	watched map[string]fs.FileInfo
	told    map[string]bool // the folders of which it was told that they cannot be watched

	mu     sync.Mutex
	places places
}

func newWatcher(ctx context.Context) *watcher {
	w := &watcher{
		events: make(chan struct{}, 1), logger: klog.FromContext(ctx),
		watched: map[string]fs.FileInfo{}, told: map[string]bool{},
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.logger.Info("Changes of rule files are seen late: there is no notification", "reason", err)
		return w
	}
	w.notify = notify
	// The channels are read whatever else is done: fsnotify holds locks while it
	// writes to them.
	w.pump.Go(func() {
		for event := range notify.Events {
			if w.matters(event.Name) {
				w.signal()
			}
		}
	})
	w.pump.Go(func() {
		for range notify.Errors { // events have been lost
			w.signal()
		}
	})
	return w
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
		w.pump.Wait()
	}
}

func (w *watcher) signal() {
	select {
	case w.events <- struct{}{}:
	default:
	}
}

func (w *watcher) matters(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places.matter(name)
}

// follow watches the folders that decide at the moment what paths lead to, and
// no others.
func (w *watcher) follow(paths []string) {
	// What comes into a folder before that is watched is no event: look again.
	for w.notify != nil && w.add(placesOf(paths)) {
	}
}

// add watches the folders of places, and no others. It reports whether there is
// one that was not watched before.
func (w *watcher) add(places places) (added bool) {
	w.mu.Lock()
	w.places = places
	w.mu.Unlock()
	alive := map[string]bool{} // those that are gone have lost their watch
	for _, folder := range w.notify.WatchList() {
		alive[folder] = true
	}
	for folder := range w.watched {
		if _, ok := places[folder]; !ok {
			_ = w.notify.Remove(folder)
			delete(w.watched, folder)
			delete(w.told, folder)
		}
	}
	for folder := range places {
		info, err := os.Stat(folder)
		if err != nil {
			continue // whoever has it in its place knows when it comes
		}
		if before := w.watched[folder]; before != nil {
			if alive[folder] && os.SameFile(before, info) {
				continue
			}
			_ = w.notify.Remove(folder)
			delete(w.watched, folder)
		}
		added = w.watch(folder, info) || added
	}
	return added
}

func (w *watcher) watch(folder string, info fs.FileInfo) bool {
	err := w.notify.Add(folder)
	switch {
	case err == nil:
		w.watched[folder] = info
	case !w.told[folder]:
		w.told[folder] = true
		w.logger.Info("Changes in a folder with rules are seen late: it cannot be watched", "folder", folder, "reason", err)
	}
	return err == nil
}
