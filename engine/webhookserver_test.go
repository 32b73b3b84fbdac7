package engine

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

const (
	validating = "ValidatingWebhookConfiguration"
	mutating   = "MutatingWebhookConfiguration"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// webhook is an admission webhook that a real API server calls for updates in
// the test's namespace. It judges what the engine sends; others may do anything.
type webhook struct {
	user   string
	config string // its name

	mu     sync.Mutex
	probed bool
	judge  func(*admissionRequest) answer
}

// admissionRequest is what a webhook is asked, with the objects decoded.
type admissionRequest struct {
	*admissionv1.AdmissionRequest
	object, old *unstructured.Unstructured
}

// answer is what a webhook says; the zero answer admits.
type answer struct {
	denied   *metav1.Status
	patch    []map[string]any // a JSON patch
	warnings []string
	status   int  // of HTTP, instead of an answer
	hangUp   bool // no answer at all
}

func deny(code int32, message string) answer {
	return answer{denied: &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// webhook registers one and waits until the API server calls it. What cannot be
// asked fails the request.
func (f *fixture) webhook(kind string, judge func(*admissionRequest) answer) *webhook {
	f.Helper()
	w := &webhook{user: f.user, judge: judge, config: f.ns}
	server := httptest.NewTLSServer(w)
	f.Cleanup(server.Close)
	ca, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		f.Fatal(err)
	}
	u := f.object(`
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s}
webhooks:
- name: test.example.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig: {url: %q, caBundle: %s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps, secrets]}]
`, kind, w.config, server.URL, ca, f.ns)
	u.SetNamespace("")
	configs := f.client.Resource(webhookConfigs(kind))
	if _, err := configs.Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.unregister(kind, w) }) // before the server closes
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}`)
	testcluster.Eventually(f, 15*time.Second, func() error {
		f.merge(configmaps, "probe", fmt.Sprintf(`{"data":{"at":"%d"}}`, time.Now().UnixNano()))
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.probed {
			return fmt.Errorf("the API server does not call the webhook")
		}
		return nil
	})
	return w
}

func webhookConfigs(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

func (f *fixture) unregister(kind string, w *webhook) {
	f.Helper()
	// The test's own context has ended when this is a cleanup.
	err := f.client.Resource(webhookConfigs(kind)).Delete(context.WithoutCancel(f.Context()), w.config, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Error(err)
	}
}

// judges changes what the webhook says from now on.
func (w *webhook) judges(judge func(*admissionRequest) answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

func (w *webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	says, err := w.consider(review.Request)
	switch {
	case err != nil:
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	case says.hangUp:
		panic(http.ErrAbortHandler)
	case says.status != 0:
		http.Error(out, "out of order", says.status)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: says.denied == nil, Result: says.denied, Warnings: says.warnings,
	}
	if len(says.patch) > 0 {
		review.Response.Patch, err = json.Marshal(says.patch)
		review.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	review.Request = nil
	if err == nil {
		err = json.NewEncoder(out).Encode(review)
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
	}
}

func (w *webhook) consider(request *admissionv1.AdmissionRequest) (answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.UserInfo.Username != w.user {
		w.probed = true
		return answer{}, nil
	}
	r := &admissionRequest{AdmissionRequest: request, object: &unstructured.Unstructured{}, old: &unstructured.Unstructured{}}
	if err := r.object.UnmarshalJSON(request.Object.Raw); err != nil {
		return answer{}, err
	}
	if err := r.old.UnmarshalJSON(request.OldObject.Raw); err != nil {
		return answer{}, err
	}
	return w.judge(r), nil
}

// wants reports whether a request would set a key of the data anew.
func (r *admissionRequest) wants(key string) bool {
	now, there, _ := unstructured.NestedString(r.object.Object, "data", key)
	before, was, _ := unstructured.NestedString(r.old.Object, "data", key)
	return there && (!was || now != before)
}
