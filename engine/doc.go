// Package engine puts objects right: it runs the rules on what the informers
// hold and writes what is wrong.
//
// One object's way, which sync.go shows in this order:
//
//	handler ─▶ enqueue ─▶ queue ─▶ runWorker ─▶ processNextWorkItem ─▶ sync
//	                                   │ the object, from the informer's cache
//	                                   ▼
//	                            rules.Evaluate ─▶ write (one PATCH) ─▶ verify ─▶ record
//
// What it promises:
//
//   - Handlers only enqueue.
//   - One writer per object: the key is resource (without version), namespace
//     and name, and the workqueue never hands a key to two workers.
//   - A write is a decision about one version: uid and resourceVersion go with
//     it. Refused with a conflict, it is dropped and made again from the fresh
//     object. There is never a GET, a PUT or a create.
//   - The engine's own write is in the cache before the next decision.
//   - Every accepted write is verified on the server's answer.
//   - What the server refuses is held for that version of the object, by rule:
//     one rule's mistake does not keep another from its work.
//
// Objects of the cache are read-only throughout. Run-time state lives here, by
// key, never on rules.
package engine
