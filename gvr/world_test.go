package gvr

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	readWrite   = metav1.Verbs{"get", "list", "patch", "watch"}
)

func apiLists(withWidgets bool) []*metav1.APIResourceList {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: readWrite},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			// Aggregated discovery puts subresources after their resource; nobody promises it.
			{Name: "deployments/scale", Kind: "Scale", Namespaced: true},
			{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: readWrite},
			{Name: "deployments/status", Kind: "Deployment", Namespaced: true},
		}},
	}
	if withWidgets {
		lists = append(lists, &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: readWrite},
			{Name: "widgets/scale", Kind: "Scale", Namespaced: true},
		}})
	}
	return lists
}

func TestResolve(t *testing.T) {
	now := time.Now()
	definition, err := parseCRD(manifest(t, widgetCRD))
	if err != nil {
		t.Fatal(err)
	}
	pending := definition
	pending.established = false
	gr := widgets.GroupResource()
	crds := map[schema.GroupResource]crd{gr: definition}
	served := newSnapshot(apiLists(true), nil, nil)
	without := newSnapshot(apiLists(false), nil, nil)
	broken := newSnapshot(apiLists(false), map[schema.GroupVersion]bool{widgets.GroupVersion(): true}, nil)

	deploymentInfo := Info{
		Resource: deployments, Kind: "Deployment", Namespaced: true, HasStatus: true, HasScale: true,
		ReplicasPath: []string{"spec", "replicas"},
	}
	widgetInfo := Info{
		Resource: widgets, Kind: "Widget", Namespaced: true, HasStatus: true, HasScale: true,
		ReplicasPath: []string{"spec", "size"},
	}
	fromDiscovery := Info{Resource: widgets, Kind: "Widget", Namespaced: true, HasScale: true}
	withPath := fromDiscovery
	withPath.ReplicasPath = []string{"spec", "size"}

	for _, c := range []struct {
		name  string
		world world
		gvr   schema.GroupVersionResource
		want  verdict
	}{
		{"nothing known", world{}, widgets, verdict{reason: "discovery has not answered yet"}},
		{"discovery failed", world{discoveryError: "connection refused"}, widgets, verdict{reason: "discovery: connection refused"}},
		{"built in", world{discovered: served}, deployments, verdict{presence: present, info: deploymentInfo}},
		{"built in, discovery fails now", world{discovered: served, discoveryError: "x"}, deployments, verdict{presence: present, info: deploymentInfo}},
		{"not watchable", world{discovered: served}, schema.GroupVersionResource{Version: "v1", Resource: "bindings"},
			verdict{presence: absent, reason: "served, but it can not be listed and watched"}},
		{"not served", world{discovered: without}, widgets, verdict{presence: absent, reason: "not served by the cluster"}},
		{"another version", world{discovered: served}, schema.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"},
			verdict{presence: absent, reason: "version not served (available: v1)"}},
		{"another group", world{discovered: served}, schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "widgets"},
			verdict{presence: absent, reason: "not served by the cluster"}},
		{"its group failed", world{discovered: broken}, widgets, verdict{reason: "discovery of example.com/v1 failed"}},
		{"custom, CRDs not readable", world{discovered: served}, widgets, verdict{presence: present, info: fromDiscovery}},
		{"custom, CRD watch broken", world{discovered: served, crds: crds}, widgets, verdict{presence: present, info: withPath, uid: "one"}},
		{"custom, discovery lags", world{discovered: without, crds: crds, crdsLive: true}, widgets, verdict{presence: present, info: widgetInfo, uid: "one"}},
		{"custom, not established", world{discovered: served, crds: map[schema.GroupResource]crd{gr: pending}, crdsLive: true}, widgets,
			verdict{presence: absent, reason: "its CRD is not established yet"}},
		{"custom, version not served", world{discovered: served, crds: crds, crdsLive: true}, gr.WithVersion("v1beta1"),
			verdict{presence: absent, reason: "version not served (available: v1, v1alpha1)"}},
		{"custom, just deleted", world{discovered: served, crdsLive: true, deleted: map[schema.GroupResource]time.Time{gr: now.Add(-time.Second)}}, widgets,
			verdict{presence: absent, reason: "its CRD was deleted"}},
		{"custom, an aggregated API took over", world{discovered: served, crdsLive: true, deleted: map[schema.GroupResource]time.Time{gr: now.Add(-time.Hour)}}, widgets,
			verdict{presence: present, info: fromDiscovery}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.world.resolve(c.gvr, now)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A resource that is missing once may be an API server that has just started; twice in a row it is gone. What a
// failed group served stays known for as long as the failure lasts.
func TestSnapshotSequence(t *testing.T) {
	failed := map[schema.GroupVersion]bool{widgets.GroupVersion(): true}
	presenceOf := func(s *snapshot) presence {
		w := world{discovered: s}
		return w.resolve(widgets, time.Now()).presence
	}
	s := newSnapshot(apiLists(true), nil, nil)
	for i, step := range []struct {
		widgets  bool
		failed   map[schema.GroupVersion]bool
		want     presence
		doubtful bool
	}{
		{true, nil, present, false},
		{false, nil, present, true},
		{true, nil, present, false},
		{false, failed, present, false},
		{false, failed, present, false},
		{false, failed, present, false},
		{false, nil, present, true},
		{false, nil, absent, false},
		{false, failed, unknown, false},
		{true, nil, present, false},
	} {
		s = newSnapshot(apiLists(step.widgets), step.failed, s)
		if got := presenceOf(s); got != step.want || s.doubtful() != step.doubtful {
			t.Errorf("step %d: presence %d, doubtful %v; want %d, %v", i, got, s.doubtful(), step.want, step.doubtful)
		}
	}
}

// Which version is preferred is the same by discovery and by the CRD; but the version that objects are stored in loses
// nothing, which only the CRD tells, and those of built-in resources do not either.
func TestPreferredVersion(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: readWrite}}},
		{GroupVersion: "example.com/v1beta1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: readWrite}, {Name: "old", Kind: "Old", Verbs: readWrite}}},
		{GroupVersion: "example.com/v2alpha1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: readWrite}}},
		{GroupVersion: "autoscaling/v1", APIResources: []metav1.APIResource{{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Verbs: readWrite}}},
		{GroupVersion: "autoscaling/v2", APIResources: []metav1.APIResource{{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Verbs: readWrite}}},
	}
	stored := func(version string) map[schema.GroupResource]crd {
		c := crd{resource: widgets.GroupResource(), kind: "Widget", established: true, preferred: "v1"}
		for _, name := range []string{"v1", "v1beta1", "v2alpha1"} {
			c.versions = append(c.versions, crdVersion{name: name, served: true, stored: name == version})
		}
		return map[schema.GroupResource]crd{c.resource: c}
	}
	hpas := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
	served := newSnapshot(lists, nil, nil)
	for _, c := range []struct {
		name  string
		world world
		gvr   schema.GroupVersionResource
		want  string
	}{
		{"the newest stable one", world{discovered: served}, widgets, ""},
		{"an older one", world{discovered: served}, widgets.GroupResource().WithVersion("v1beta1"), "v1"},
		{"a newer one that is not stable", world{discovered: served}, widgets.GroupResource().WithVersion("v2alpha1"), "v1"},
		{"the only one", world{discovered: served}, schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "old"}, ""},
		{"a built-in resource", world{discovered: served}, hpas, ""},
		{"by the CRD", world{discovered: served, crds: stored("v1"), crdsLive: true}, widgets.GroupResource().WithVersion("v1beta1"), "v1"},
		{"the stored one", world{discovered: served, crds: stored("v1beta1"), crdsLive: true}, widgets.GroupResource().WithVersion("v1beta1"), ""},
		{"the stored one, while the watch of CRDs is broken", world{discovered: served, crds: stored("v1beta1")}, widgets.GroupResource().WithVersion("v1beta1"), ""},
		{"the preferred one where another is stored", world{discovered: served, crds: stored("v1beta1"), crdsLive: true}, widgets, ""},
		{"what an earlier look had", world{discovered: newSnapshot(lists[1:], nil, served)}, widgets.GroupResource().WithVersion("v1beta1"), "v1"},
		{"after the newer one has gone", world{discovered: newSnapshot(lists[1:2], nil, newSnapshot(lists[1:2], nil, served))}, widgets.GroupResource().WithVersion("v1beta1"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.world.resolve(c.gvr, time.Now())
			if v.presence != present || v.info.Preferred != c.want {
				t.Errorf("%+v, want the preferred version %q", v, c.want)
			}
		})
	}
}
