// Package gvr knows which resources exist and keeps one dynamic informer per resource and scope.
//
// It answers two questions for the engine. What is this resource: is it served, namespaced, does it have
// /status and /scale, where does /scale keep its replicas? And what are its objects: a read-only cache per
// GroupVersionResource (GVR), for the whole cluster or for each namespace that the engine is limited to. Of each object
// it keeps the fields that somebody wants (Options.Fields), as text: see gvr/projection. Built-in resources are read as
// protobuf where the server has it and it tells all that is wanted, others as JSON.
//
// # Data flow
//
//	discovery poll ──┐
//	                 ├─▶ world.resolve(gvr) ─▶ Manager.reconcile ─▶ informers ─▶ Options.Handler
//	CRD watch ───────┘   (pure: present,       starts and stops                └▶ Get, List, Keys
//	                      absent, unknown)
//
// Discovery is polled, and survives a dead aggregated API: what a failed group serves is unknown, which neither
// starts nor stops an informer. CRDs are watched where that is permitted; while that watch works, it alone
// decides about custom resources, because it also sees a CRD that is deleted and created again within a second
// (another uid: a fresh informer). Where it is not permitted, and where the engine is limited to namespaces, polling
// alone does the job, more slowly.
//
// Every informer starts, syncs and fails alone, in goroutines of its own; nothing waits for all of them. A request
// that fails is retried inside the client that the informer uses (see attempts.go), not by client-go's reflector,
// whose back-off of up to a minute cannot be set: so a watch resumes where it was after an outage, a granted Role is
// seen within 20 s, a stop takes effect at once, and this package knows and says what goes on.
//
// What is in use can change at any time: Use starts and stops informers, and Adapt gives those that go on the indexes
// that have become necessary, and has objects read again of which more is wanted than is kept: the store before serves
// meanwhile. So does a change of what a resource is. None of it touches an informer whose resource is wanted as it was,
// or with less.
//
// # What an informer's end means
//
// When a resource goes away, or is no longer in use, its informer is stopped and its store is dropped at once: Get
// answers false, List is empty. No delete events are made up for the objects that were in it, and a few events that
// were under way may still arrive. Handlers should enqueue keys only, and workers forget a key that they cannot Get.
//
// # Confidentiality
//
// Messages of the server can contain whole objects. What is published (Status, logs) is the verb, the resource, the
// machine-readable reason and the HTTP code, or the text of a network error. client-go's own log lines are switched
// off for these informers for the same reason.
//
// # Concurrency
//
// All methods of Manager are safe from everywhere, also from handlers and from OnStateChange. Objects that come out
// of the cache are the caller's: each is parsed when it is asked for. The offline half (Catalog, ResourceCandidates, KindMatches,
// ClusterScoped) needs no cluster and no client.
package gvr
