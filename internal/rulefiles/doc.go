// Package rulefiles reads rules from files, and reads them anew when they have
// changed: what PATH arguments name, see package input.
//
//	inotify ──▶ watcher ──▶ Watch: wait for the end of a burst, follow, look ──▶ changed
//	a poll  ──────────────────▲
//
// Folders are watched, not files: an editor that renames over a file, and a
// mounted ConfigMap, whose ..data link is replaced, show only there. What a path
// leads to is followed link by link, so that a change of any of them is seen. An
// event only says when to look; what is there, and whether it has changed, is
// told by reading all files. So events that are lost, and file systems without
// any, such as NFS, make a change late and nothing else: there is a poll besides.
//
// Standard input and pipes are read once; what came is kept.
package rulefiles
