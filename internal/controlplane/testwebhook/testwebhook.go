// Package testwebhook runs admission webhooks that a real API server calls: for
// updates of ConfigMaps and Secrets in one namespace, with an answer for each
// request that the test gives. Stopped, broken or slow, it is the fault of a
// test.
package testwebhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// Kind is what a webhook may do.
type Kind string

// The kinds of webhooks.
const (
	Validating Kind = "ValidatingWebhookConfiguration"
	Mutating   Kind = "MutatingWebhookConfiguration"
)

func (k Kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(string(k)) + "s"}
}

// Options say what a webhook is asked about, and what happens when it cannot be
// asked.
type Options struct {
	Kind      Kind
	Namespace string // of the objects; it also names the configuration
	User      string // whose requests it is asked about; others may do anything
	// FailurePolicy is Fail unless it says otherwise.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	Timeout       time.Duration // in whole seconds; 5 s where it is 0
}

// Webhook is a registered admission webhook. Start makes one. It is safe for
// concurrent use.
type Webhook struct {
	t       testing.TB
	client  dynamic.Interface
	options Options
	server  *httptest.Server
	release chan struct{} // closed when calls that hang may end

	mu     sync.Mutex
	probed bool
	judge  func(*Request) Answer
	calls  int
}

// Request is what a webhook is asked, with the objects decoded.
type Request struct {
	*admissionv1.AdmissionRequest
	New, Old *unstructured.Unstructured
}

// Wants reports whether a request would set a key of the data anew.
func (r *Request) Wants(key string) bool {
	now, there, _ := unstructured.NestedString(r.New.Object, "data", key)
	before, was, _ := unstructured.NestedString(r.Old.Object, "data", key)
	return there && (!was || now != before)
}

// SetBack is an answer that undoes what a request does to a key of the data. With
// the traces in managedFields too, nothing is left to store, and the version does
// not move.
func (r *Request) SetBack(key string, traces bool) Answer {
	undo := map[string]any{"op": "remove", "path": "/data/" + key}
	if old, was, _ := unstructured.NestedString(r.Old.Object, "data", key); was {
		undo = map[string]any{"op": "replace", "path": "/data/" + key, "value": old}
	}
	out := Answer{Patch: []map[string]any{undo}}
	if traces {
		fields, _, _ := unstructured.NestedFieldNoCopy(r.Old.Object, "metadata", "managedFields")
		out.Patch = append(out.Patch, map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": fields})
	}
	return out
}

// Answer is what a webhook says; the zero Answer admits.
type Answer struct {
	Denied   *metav1.Status
	Patch    []map[string]any // a JSON patch
	Warnings []string
	// Instead of all that:
	Code   int    // an HTTP status
	Body   string // a body that is no review
	HangUp bool   // no answer
	Hang   bool   // no answer until the webhook stops
}

// Deny is an answer with a code.
func Deny(code int32, message string) Answer {
	return Answer{Denied: &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// Start registers a webhook and returns when the API server calls it. It is
// unregistered when the test ends.
func Start(t testing.TB, client dynamic.Interface, options Options, judge func(*Request) Answer) *Webhook {
	t.Helper()
	w := &Webhook{t: t, client: client, options: options, judge: judge, release: make(chan struct{})}
	w.server = httptest.NewTLSServer(w)
	t.Cleanup(w.Stop)
	if _, err := client.Resource(options.Kind.resource()).Create(t.Context(), w.configuration(), metav1.CreateOptions{}); err != nil {
		t.Fatalf("register the webhook: %v", err)
	}
	t.Cleanup(w.Unregister) // before the server stops
	w.waitForCall()
	return w
}

// configuration is the object that registers the webhook.
func (w *Webhook) configuration() *unstructured.Unstructured {
	policy, timeout := w.options.FailurePolicy, w.options.Timeout
	if policy == "" {
		policy = admissionregistrationv1.Fail
	}
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	hook := map[string]any{
		"name":                    "test.example.io",
		"admissionReviewVersions": []any{"v1"},
		"sideEffects":             "None",
		"failurePolicy":           string(policy),
		"timeoutSeconds":          int64(timeout / time.Second),
		"clientConfig": map[string]any{
			"url":      w.server.URL,
			"caBundle": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})),
		},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.options.Namespace}},
		// Whoever sets the test up is not in the way of its fault.
		"matchConditions": []any{map[string]any{
			"name": "user", "expression": fmt.Sprintf("request.userInfo.username == %q || request.name == 'probe'", w.options.User),
		}},
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"configmaps", "secrets"},
		}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": string(w.options.Kind),
		"metadata": map[string]any{"name": w.options.Namespace},
		"webhooks": []any{hook},
	}}
}

// waitForCall changes a ConfigMap until the API server asks the webhook.
func (w *Webhook) waitForCall() {
	w.t.Helper()
	configmaps := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(w.options.Namespace)
	testcluster.Eventually(w.t, 30*time.Second, func() error {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"},"data":{"at":"%d"}}`, time.Now().UnixNano())
		if _, err := configmaps.Patch(w.t.Context(), "probe", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "testwebhook"}); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.probed {
			return fmt.Errorf("the API server does not call the webhook")
		}
		return nil
	})
}

// Unregister has the API server forget the webhook.
func (w *Webhook) Unregister() {
	w.t.Helper()
	// The test's own context has ended when this is a cleanup.
	err := w.client.Resource(w.options.Kind.resource()).Delete(context.WithoutCancel(w.t.Context()), w.options.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Errorf("unregister the webhook: %v", err)
	}
}

// Stop ends the server: calls are refused from now on.
func (w *Webhook) Stop() {
	w.mu.Lock()
	select {
	case <-w.release:
	default:
		close(w.release)
	}
	w.mu.Unlock()
	w.server.CloseClientConnections()
	w.server.Close()
}

// Judge changes what the webhook says from now on.
func (w *Webhook) Judge(judge func(*Request) Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

// Calls is how often it was asked about requests of the user.
func (w *Webhook) Calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// ServeHTTP implements http.Handler: it is what the API server calls.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
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
	case says.Hang:
		select {
		case <-w.release:
		case <-in.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case says.HangUp:
		panic(http.ErrAbortHandler)
	case says.Code != 0:
		http.Error(out, "out of order", says.Code)
		return
	case says.Body != "":
		fmt.Fprint(out, says.Body)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: says.Denied == nil, Result: says.Denied, Warnings: says.Warnings,
	}
	if len(says.Patch) > 0 {
		review.Response.Patch, err = json.Marshal(says.Patch)
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

func (w *Webhook) consider(request *admissionv1.AdmissionRequest) (Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.UserInfo.Username != w.options.User {
		w.probed = true
		return Answer{}, nil
	}
	w.calls++
	r := &Request{AdmissionRequest: request, New: &unstructured.Unstructured{}, Old: &unstructured.Unstructured{}}
	if err := r.New.UnmarshalJSON(request.Object.Raw); err != nil {
		return Answer{}, err
	}
	if err := r.Old.UnmarshalJSON(request.OldObject.Raw); err != nil {
		return Answer{}, err
	}
	return w.judge(r), nil
}
