package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// scale is how many Deployments TestLookupsAtScale has; there is an autoscaler
// for every fourth. RECTIFIER_SCALE=20000 takes minutes.
func scale(t *testing.T) (deployments, autoscalers int) {
	t.Helper()
	n := 500
	if s := os.Getenv("RECTIFIER_SCALE"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 200 {
			t.Fatalf("RECTIFIER_SCALE must be a number of Deployments, at least 200: %q", s)
		}
	}
	return n, n / 4
}

// ownFixture is a fixture on an API server of its own, which may be filled or
// killed. All is done in the namespace default.
func ownFixture(t *testing.T, options controlplane.Options) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dynamic.NewForConfig(cp.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, cp: cp, client: client, ns: metav1.NamespaceDefault, user: "engine"}
}

// However many objects there are, what an autoscaler's status says concerns
// nobody, and what it targets concerns that Deployment alone.
func TestLookupsAtScale(t *testing.T) {
	f := ownFixture(t, controlplane.Options{})
	n, m := scale(t)
	began := time.Now()
	// All are as they should be, but for those that have an autoscaler.
	f.inParallel(n, func(ctx context.Context, i int) error {
		replicas := 1
		if i < m {
			replicas = 2
		}
		return f.tryCreate(ctx, deployments, fmt.Sprintf(deploymentYAML, web(i), "1", replicas))
	})
	f.inParallel(m, func(ctx context.Context, i int) error {
		return f.tryCreate(ctx, hpas, fmt.Sprintf(hpaYAML, web(i), web(i)))
	})
	t.Logf("created %d Deployments and %d HPAs in %v", n, m, time.Since(began).Round(time.Millisecond))

	before, began := heap(), time.Now()
	f.start(expectedReplicas(t))
	testcluster.Eventually(t, 5*time.Minute, func() error {
		if got := f.engine.syncs.Load(); got < int64(n) {
			return fmt.Errorf("%d of %d Deployments evaluated", got, n)
		}
		return nil
	})
	f.wantReadyz(10*time.Second, "deployments: synced", "horizontalpodautoscalers: synced")
	took := time.Since(began)
	f.quietQueue()
	t.Logf("evaluated all in %v, %d evaluations, heap of the engine %d MB", took.Round(time.Millisecond), f.engine.syncs.Load(), (heap()-before)>>20)

	t.Run("heartbeats of one autoscaler", func(t *testing.T) {
		f := f.within(t)
		f.wantEvaluations(0, 0, func() string { return f.heartbeats(20, func(int) int { return 7 }) })
	})
	t.Run("a heartbeat of every autoscaler", func(t *testing.T) {
		f := f.within(t)
		f.wantEvaluations(0, 0, func() string { return f.heartbeats(m, func(i int) int { return i }) })
	})
	// All of these but that one keep an autoscaler of their own.
	const moving = 30
	t.Run("a target that leaves a drifted Deployment", func(t *testing.T) {
		f := f.within(t)
		// The old target by the change, and again by its own fix; the new one.
		f.wantEvaluations(3, 4, func() string {
			version := f.retarget(moving, web(10))
			f.eventually(5*time.Second, deployments, web(moving), int64(1), "spec", "replicas")
			return version
		})
	})
	t.Run("a target that goes from one to another", func(t *testing.T) {
		f := f.within(t)
		f.wantEvaluations(2, 2, func() string { return f.retarget(moving, web(11)) })
	})
	t.Run("a target that is not there", func(t *testing.T) {
		f := f.within(t)
		f.wantEvaluations(1, 1, func() string { return f.retarget(moving, "elsewhere") })
	})
	t.Run("a target that is right as it is", func(t *testing.T) {
		f := f.within(t)
		// It was decided on without a look at autoscalers.
		f.wantEvaluations(0, 0, func() string { return f.retarget(moving, web(n-1)) })
	})
}

// within is the fixture in a subtest.
func (f *fixture) within(t *testing.T) *fixture {
	sub := *f
	sub.T = t
	return &sub
}

func web(i int) string { return fmt.Sprintf("web-%d", i) }

func (f *fixture) tryCreate(ctx context.Context, resource schema.GroupVersionResource, y string) error {
	_, err := f.client.Resource(resource).Namespace(f.ns).Create(ctx, f.object("%s", y), metav1.CreateOptions{})
	return err
}

// inParallel does something n times, a few at a time; the first error ends the
// test.
func (f *fixture) inParallel(n int, do func(ctx context.Context, i int) error) {
	f.Helper()
	ctx, cancel := context.WithCancelCause(f.Context())
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(ctx, int(i)); err != nil {
					cancel(fmt.Errorf("number %d: %w", i, err))
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		f.Fatal(err)
	}
}

// heartbeats writes the status of autoscalers, of which gives whose, and
// returns the newest resource version.
func (f *fixture) heartbeats(n int, of func(i int) int) string {
	f.Helper()
	var mu sync.Mutex
	var newest string
	beat := time.Now().UnixNano() % 1e6
	f.inParallel(n, func(ctx context.Context, i int) error {
		u, err := f.client.Resource(hpas).Namespace(f.ns).Patch(ctx, web(of(i)), types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"currentReplicas":%d,"desiredReplicas":%d}}`, beat+int64(i), i), metav1.PatchOptions{}, "status")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if older(newest, u.GetResourceVersion()) {
			newest = u.GetResourceVersion()
		}
		return nil
	})
	return newest
}

// retarget points an autoscaler to another Deployment and returns its resource
// version.
func (f *fixture) retarget(i int, target string) string {
	f.Helper()
	f.merge(hpas, web(i), fmt.Sprintf(`{"spec":{"scaleTargetRef":{"name":%q}}}`, target))
	return f.get(hpas, web(i)).GetResourceVersion()
}

// wantEvaluations counts the evaluations that something causes. do returns the
// resource version of the last autoscaler that it wrote: the engine must have
// seen that.
func (f *fixture) wantEvaluations(atLeast, atMost int64, do func() string) {
	f.Helper()
	before, began := f.engine.syncs.Load(), time.Now()
	version := do()
	testcluster.Eventually(f, time.Minute, func() error {
		if seen := f.engine.informers.LastSyncVersion(hpas, f.ns); older(seen, version) {
			return fmt.Errorf("the engine has seen version %s, not %s", seen, version)
		}
		return nil
	})
	seen := time.Since(began)
	f.quietQueue()
	got := f.engine.syncs.Load() - before
	f.Logf("%d evaluations; written and seen in %v", got, seen.Round(time.Millisecond))
	if got < atLeast || got > atMost {
		f.Errorf("%d evaluations, want %d to %d", got, atLeast, atMost)
	}
}

// heap is what lives on this process's heap.
func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
