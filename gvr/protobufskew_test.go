package gvr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// newerServer makes of a server one that has a field more in ConfigMaps of one name.
type newerServer struct{ name string }

// modify rewrites a stream of events. Lists are not sent where there are streams.
func (s newerServer) modify(resp *http.Response) {
	body := resp.Body
	reader, writer := io.Pipe()
	resp.Body = rewritten{reader, body}
	go func() {
		_ = writer.CloseWithError(s.rewrite(writer, body))
	}()
}

// rewritten is a body of which something else is read.
type rewritten struct {
	*io.PipeReader
	body io.Closer
}

func (r rewritten) Close() error { return errors.Join(r.PipeReader.Close(), r.body.Close()) }

func (s newerServer) rewrite(out io.Writer, in io.Reader) error {
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		data := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(in, data); err != nil {
			return err
		}
		var event metav1.WatchEvent
		var object kruntime.Unknown
		if err := errors.Join(event.Unmarshal(data), object.Unmarshal(event.Object.Raw[4:])); err != nil {
			return err
		}
		var configMap corev1.ConfigMap
		if err := configMap.Unmarshal(object.Raw); err != nil {
			return err
		}
		if configMap.Name == s.name {
			object.Raw = append(object.Raw, 0xc2, 0x3e, 1, 'x') // field 1000
		}
		raw, err := object.Marshal()
		if err != nil {
			return err
		}
		event.Object.Raw = append([]byte("k8s\x00"), raw...)
		if data, err = event.Marshal(); err != nil {
			return err
		}
		if _, err := out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)); err != nil {
			return err
		}
	}
}

// events are what a handler is told, by name.
type events struct {
	mu   sync.Mutex
	seen map[string][]string
}

func (e *events) note(what string, obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	o := obj.(*projection.Object)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[o.Name()] = append(e.seen[o.Name()], what)
}

func (e *events) handler(schema.GroupVersionResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.note("add", obj) },
		UpdateFunc: func(_, obj any) { e.note("update", obj) },
		DeleteFunc: func(obj any) { e.note("delete", obj) },
	}
}

// A server whose objects have fields that the Go types lack is read as JSON as soon as
// such an object is seen and wanted as a whole: without an event lost or invented, and
// without asking again and again.
func TestAFieldOfANewerServer(t *testing.T) {
	testcluster.RequireVersion(t, "1.35", "a server of which protobuf is read")
	namespace := testcluster.Namespace(t)
	client := testcluster.Dynamic(t).Resource(configmaps).Namespace(namespace)
	newConfigMap := func(name string) { create(t, configmaps, namespace, configMapNamed(name)) }
	patch := func(name, value string) {
		t.Helper()
		if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"a":"`+value+`"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	newConfigMap("stays")
	newConfigMap("goes")
	newConfigMap("changes")

	server := newerServer{name: "future"}
	s := &traffic{modify: server.modify}
	e := &events{seen: map[string][]string{}}
	config := s.config(t)
	m, logs, _ := run(t, Options{Config: config, Namespaces: []string{namespace}, Handler: e.handler}, configmaps)
	eventually(t, 20*time.Second, m, configmaps, Synced, "")
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	if got := s.at(path); !slices.Equal(got, []string{"WATCH protobuf"}) {
		t.Fatalf("%q", got)
	}

	newConfigMap("future") // the stream ends here
	remove(t, configmaps, namespace, "goes")
	patch("changes", "1")
	patch("future", "1")
	newConfigMap("comes")
	testcluster.Eventually(t, 60*time.Second, func() error {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		want := map[string]any{}
		for i := range list.Items {
			o := &list.Items[i]
			unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
			want[o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
		if diff := cmp.Diff(want, byName(m.List(configmaps))); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	patch("stays", "2") // and it goes on
	testcluster.Eventually(t, 20*time.Second, func() error {
		if o, _ := m.Get(configmaps, namespace, "stays"); o == nil || o.Object["data"] == nil {
			return fmt.Errorf("%v", o)
		}
		return nil
	})
	if got, want := s.at(path), []string{"WATCH protobuf", "WATCH json"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	e.mu.Lock()
	for name, want := range map[string]struct{ first, last string }{
		"goes": {"add", "delete"}, "stays": {"add", "update"}, "changes": {"add", "update"}, "comes": {"add", ""}, "future": {"add", ""},
	} {
		got := e.seen[name]
		deletions := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != "delete" }))
		if len(got) == 0 || got[0] != want.first || want.last != "" && got[len(got)-1] != want.last || (want.last == "delete") != (deletions == 1) ||
			slices.Contains(got[1:], "add") {
			t.Errorf("events of %s: %q", name, got)
		}
	}
	e.mu.Unlock()
	if n := len(logs.matching("as JSON from now on")); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	if got := stateOf(m, configmaps).State; got != Synced {
		t.Errorf("state %s", got)
	}

	// One that begins with such an object does as well.
	again := &traffic{modify: server.modify}
	m, _, _ = run(t, Options{Config: again.config(t), Namespaces: []string{namespace}}, configmaps)
	eventually(t, 20*time.Second, m, configmaps, Synced, "")
	if _, ok := m.Get(configmaps, namespace, "future"); !ok {
		t.Error("it is not in the store")
	}
	testcluster.Eventually(t, 20*time.Second, func() error {
		if got, want := again.at(path), []string{"WATCH protobuf", "LIST json", "WATCH json"}; !slices.Equal(got, want) {
			return fmt.Errorf("requests %q, want %q", got, want)
		}
		return nil
	})
}

// A server that does not know protobuf is asked for JSON.
func TestAServerWithoutProtobuf(t *testing.T) {
	for _, code := range []int{http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusOK} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			accepted := make(chan string, 100)
			s := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: func(w http.ResponseWriter, r *http.Request) {
				accepted <- r.Header.Get("Accept")
				if code != http.StatusOK && strings.Contains(r.Header.Get("Accept"), "protobuf") {
					writeStatus(w, int32(code), metav1.StatusReasonNotAcceptable)
					return
				}
				healthy("a")(w, r)
			}})
			m, _, _ := run(t, Options{Config: s.config()}, configmaps)
			eventually(t, 20*time.Second, m, configmaps, Synced, "")
			if first := <-accepted; first != projection.AcceptProtobuf {
				t.Errorf("asked for %q", first)
			}
			if code != http.StatusOK {
				for len(accepted) > 0 {
					if next := <-accepted; next != "application/json" {
						t.Errorf("asked for %q again", next)
					}
				}
			}
		})
	}
}
