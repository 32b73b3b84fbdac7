package projection

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// The tests in this file run against the real API server, with client-go's informer.

var deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")

// clientFor makes a dynamic client for Deployments that decodes with a serializer.
func clientFor(t testing.TB, s runtime.NegotiatedSerializer, wrap func(http.RoundTripper) http.RoundTripper) dynamic.Interface {
	t.Helper()
	config := dynamic.ConfigFor(testcluster.Start(t).AdminConfig())
	config.NegotiatedSerializer = s
	config.GroupVersion, config.APIPath = new(deploymentResource.GroupVersion()), "/apis"
	config.Wrap(wrap)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return dynamic.New(client)
}

// requests sees what an informer asks for, and hears what it is told.
type requests struct {
	next     http.RoundTripper
	noStream bool // refuse to begin a watch with a list

	mu      sync.Mutex
	queries []string
	heard   bytes.Buffer
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.queries = append(r.queries, request.URL.RawQuery)
	r.mu.Unlock()
	if r.noStream && strings.Contains(request.URL.RawQuery, "sendInitialEvents") {
		status := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","message":"sendInitialEvents is forbidden","code":422}`
		return &http.Response{StatusCode: http.StatusUnprocessableEntity, Request: request, ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status))}, nil
	}
	response, err := r.next.RoundTrip(request)
	if err == nil {
		response.Body = listened{response.Body, r}
	}
	return response, err
}

func (r *requests) count(in string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queries {
		if strings.Contains(q, in) {
			n++
		}
	}
	return n
}

func (r *requests) hears(s string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.heard.Bytes(), []byte(s))
}

// listened is a body that is written down.
type listened struct {
	io.ReadCloser
	r *requests
}

func (l listened) Read(out []byte) (int, error) {
	n, err := l.ReadCloser.Read(out)
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.heard.Write(out[:n])
	return n, err
}

func TestInformerOnRealServer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		noStream bool
		objects  int
	}{
		{name: "watch list", objects: 30},
		{name: "lists with pages", noStream: true, objects: 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			namespace := testcluster.Namespace(t)
			objects := testcluster.Dynamic(t).Resource(deploymentResource).Namespace(namespace)
			for i := range tt.objects {
				createDeployment(t, objects, i)
			}
			r := &requests{noStream: tt.noStream}
			p := New(builtin())
			client := clientFor(t, p.Serializer(), func(next http.RoundTripper) http.RoundTripper { r.next = next; return r })
			informer := dynamicinformer.NewFilteredDynamicInformer(client, deploymentResource, namespace, 0,
				cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, func(o *metav1.ListOptions) {
					if o.TimeoutSeconds == nil { // not a watch
						o.Limit, o.ResourceVersion = 7, "" // pages come from etcd only
					}
				}).Informer()
			if err := informer.SetTransform(p.Transform); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { informer.RunWithContext(ctx) })
			defer running.Wait()
			defer cancel()
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Fatal("not synced")
			}
			agree(t, informer.GetStore(), objects, tt.objects)
			if byStream := r.count("sendInitialEvents=true") > 0 && r.hears(metav1.InitialEventsAnnotationKey); byStream == tt.noStream {
				t.Errorf("synced by a stream: %v; asked for %q", byStream, r.queries)
			}
			if tt.noStream && r.count("continue=") < 2 {
				t.Errorf("no pages: %q", r.queries)
			}

			patch := []byte(`{"metadata":{"annotations":{"example.io/expected-replicas":"5"}},"spec":{"replicas":4}}`)
			if _, err := objects.Patch(t.Context(), "web-00003", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := objects.Delete(t.Context(), "web-00004", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			createDeployment(t, objects, 1000)
			agree(t, informer.GetStore(), objects, tt.objects)
			if r.count("sendInitialEvents") > 1 || r.count("watch=true") > 2 {
				t.Errorf("it did not go on with one watch: %q", r.queries)
			}
		})
	}
}

func createDeployment(t testing.TB, client dynamic.ResourceInterface, i int) {
	t.Helper()
	d := deployments.Manifest(i, deployments.Small)
	d.Namespace = ""
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// agree waits until a store has what the server has, projected.
func agree(t testing.TB, store cache.Store, client dynamic.ResourceInterface, count int) {
	t.Helper()
	testcluster.Eventually(t, 20*time.Second, func() error {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if stored := len(store.List()); stored != count || len(list.Items) != count {
			return fmt.Errorf("%d in the store, %d on the server, want %d", stored, len(list.Items), count)
		}
		for i := range list.Items {
			key := list.Items[i].GetNamespace() + "/" + list.Items[i].GetName()
			stored, ok, err := store.GetByKey(key)
			if err != nil || !ok {
				return fmt.Errorf("%s is not in the store, %v", key, err)
			}
			if diff := compare(project(&list.Items[i], builtin()), stored.(*Object).Unstructured().Object); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
		return nil
	})
}

// A bookmark comes about once a minute by itself; a request with a deadline gets one
// before it ends.
func TestBookmarksAndAnswersOnRealServer(t *testing.T) {
	namespace := testcluster.Namespace(t)
	p := New(builtin())
	none := func(next http.RoundTripper) http.RoundTripper { return next }
	objects := testcluster.Dynamic(t).Resource(deploymentResource).Namespace(namespace)
	createDeployment(t, objects, 1)

	w, err := clientFor(t, p.Serializer(), none).Resource(deploymentResource).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: new(int64(20)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for event := range w.ResultChan() {
		got = append(got, string(event.Type))
		if event.Type == "BOOKMARK" {
			if u := event.Object.(*unstructured.Unstructured); u.GetResourceVersion() == "" || u.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("bookmark: %v", u)
			}
			break
		}
	}
	if want := "[ADDED BOOKMARK]"; fmt.Sprint(got) != want {
		t.Errorf("events %v, want %s", got, want)
	}

	answers := clientFor(t, p.AnswerSerializer(), none).Resource(deploymentResource).Namespace(namespace)
	patched, err := answers.Patch(t.Context(), "web-00001", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := objects.Get(t.Context(), "web-00001", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(project(whole, builtin()), patched.Object); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	scale, err := answers.Patch(t.Context(), "web-00001", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas"); n != 4 || scale.GetKind() != "Scale" {
		t.Errorf("scale: %v", scale.Object)
	}
	if _, err := answers.Patch(t.Context(), "absent", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("error: %v", err)
	}
}
