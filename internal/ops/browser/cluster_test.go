package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/statuspage"
	"github.com/rectifier-dev/rectifier/rules"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }

// The resources of the tests' objects, by kind.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":                {Version: "v1", Resource: "configmaps"},
	"Namespace":                {Version: "v1", Resource: "namespaces"},
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"Service":                  {Version: "v1", Resource: "services"},
	"Deployment":               {Group: "apps", Version: "v1", Resource: "deployments"},
	"CronJob":                  {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"Database":                 {Group: "db.example.com", Version: "v1", Resource: "databases"},
	"ClusterRole":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":       {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// stage is an engine on the API server, with its status page.
type stage struct {
	*testing.T
	cp     *controlplane.ControlPlane
	client dynamic.Interface // the administrator's
	engine *engine.Engine
	url    string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{T: t, cp: testcluster.Start(t), client: testcluster.Dynamic(t)}
}

// apply creates the objects of a file in testdata, or changes them, as the administrator.
func (s *stage) apply(file string) {
	s.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		s.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			s.Fatal(err)
		}
		s.create(&unstructured.Unstructured{Object: object})
	}
}

func (s *stage) create(u *unstructured.Unstructured) {
	s.Helper()
	resource, ok := resources[u.GetKind()]
	if !ok {
		s.Fatalf("no resource is known for kind %q", u.GetKind())
	}
	// A CRD that was made a moment ago is not served yet.
	testcluster.Eventually(s, 20*time.Second, func() error {
		_, err := s.client.Resource(resource).Namespace(u.GetNamespace()).Create(s.Context(), u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// write changes an object as somebody else does, by a merge patch.
func (s *stage) write(manager, kind, namespace, name, patch string) error {
	_, err := s.client.Resource(resources[kind]).Namespace(namespace).Patch(s.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: manager})
	return err
}

func (s *stage) mustWrite(manager, kind, namespace, name, patch string) {
	s.Helper()
	if err := s.write(manager, kind, namespace, name, patch); err != nil {
		s.Fatal(err)
	}
}

// run starts an engine with the rules of a file in testdata, and serves its page,
// until the test ends.
func (s *stage) run(config *rest.Config, opts engine.Options, file string) {
	s.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		s.Fatal(err)
	}
	opts.Rules, opts.Problems = rules.Load(rules.Source{Name: "/etc/rectifier/rules/" + file, Data: text})
	opts.Config = config
	if s.engine, err = engine.New(opts); err != nil {
		s.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(s)
	ctx = klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), "engine"))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.engine.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the engine ended with: %v", err)
		}
	})
	server := httptest.NewServer(statuspage.Handler("v0.6.0", s.engine.Status))
	s.Cleanup(server.Close)
	s.url = server.URL
}

// admin is a config with which everything may be done.
func (s *stage) admin(user string) *rest.Config { return s.user(user, "system:masters") }

func (s *stage) user(user string, groups ...string) *rest.Config {
	s.Helper()
	config, err := s.cp.User(user, groups...)
	if err != nil {
		s.Fatal(err)
	}
	return config
}

// eventually waits until the engine's status is as is wanted.
func (s *stage) eventually(what string, so func(engine.Status) bool) {
	s.Helper()
	testcluster.Eventually(s, 60*time.Second, func() error {
		if status := s.engine.Status(); !so(status) {
			return fmt.Errorf("not so: %s; the status is %+v", what, status)
		}
		return nil
	})
}
