// Package engine puts objects right: it runs the rules on what the informers
// hold and writes what is wrong.
//
// One event's way through it; docs/how-it-works.md has all of it, from the watch on:
//
//	handler ─▶ immaterial ─▶ enqueue ─▶ objectQueue
//	─▶ runWorker ─▶ processNextWorkItem ─▶ sync ─▶ look ─▶ decide ─▶ result ─▶ Evaluate
//	─▶ send ─▶ patch ─▶ accepted ─▶ recordFix
//
// Evaluate is that of a rules.Index, as long as nothing is remembered of the object,
// else that of package rules.
//
// What it promises:
//
//   - Handlers only enqueue, and pass over what no rule can see: see immaterial.
//   - What a rule reads of an object is in the cache, or the rule waits for it.
//   - One writer per object: the key is resource (without version), namespace
//     and name, and the workqueue never hands a key to two workers.
//   - A write is a decision about one version: uid and resourceVersion go with
//     it. Refused with a conflict, it is dropped and made again from the fresh
//     object. There is never a GET, a PUT or a create.
//   - The engine's own write is in the cache before the next decision.
//   - Every accepted write is verified on the server's answer.
//   - What the server refuses is held for that version of the object, by rule:
//     one rule's mistake does not keep another from its work.
//   - No resource keeps another waiting: they take turns.
//   - A request that failed is not sent again before its time, however often
//     the object changes.
//   - A rule gives way to whoever keeps setting its change back, and says to whom.
//   - A panic is an error of the object, or of the resource, that it was about.
//   - Of several instances with one lease, one works. It writes only as long as
//     nobody else can have taken the lease; then it ends.
//   - Rules can be replaced at any time: see SetRules. A decision is made by one
//     set of rules, and written only while that is in force.
//
// Where it stands, in the order of that way:
//
//	handler.go     what comes from informers; own.go: what no rule is about
//	sync.go        keys, one object; fields.go: what caches keep of it; kept.go: to tell
//	runnable.go    which rules can run, and their index
//	decide.go      its rules together; after a refusal, one by one
//	queue.go       turns of resources, live keys first; backlog.go, failurelog.go
//	optout.go      objects that ask to be left alone
//	lookups.go     what rules may read; dependents.go: who read what; schemas.go
//	state.go       what is remembered of an object; giveway.go and contention*.go:
//	               fights, managers.go: with whom
//	write.go       the PATCH, writeclients.go: by whom; verify.go: what came back
//	failures.go    what becomes of a refusal; errors.go: its class; permissions.go
//	record.go      what is told; events.go and delivery.go: Events
//	recent*.go     what was done lately, and how it is shown without Secrets
//	metrics*.go    what is counted: by rule, of requests, of the queue, from drift to fix
//	policy.go      the rules in force; reload.go: others; shutdown.go; panics.go
//	leader.go      the lease, lease.go: its lock
//	health.go      /readyz; advice.go; status*.go: the same as data, for the status page;
//	               standing.go and cachesize.go: in metrics
//	once.go        --once; preview.go and dryrun.go: diff
//
// An object is parsed once for each look at it, and read-only from then on. Run-time
// state lives here, by key, never on rules.
package engine
