package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

// crdTimeout is how long the API server may take to serve a new CRD.
const crdTimeout = 30 * time.Second

// cluster is the administrator's view of the API server. Its requests are
// another user's than Rectifier's and are not counted.
type cluster struct {
	objects        dynamic.Interface
	kubernetes     kubernetes.Interface
	created        map[string]map[string]any // what each item became, by title
	initiallyWrong int                       // requests that put right what was created wrong
}

func newCluster(plane *controlplane.ControlPlane) (*cluster, error) {
	config := plane.AdminConfig()
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{objects: objects, kubernetes: clientset, created: map[string]map[string]any{}}, nil
}

// installCRD creates the CRD of the example, and waits until it is served.
func (c *cluster) installCRD(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(root, "examples", "minimum-backup-retention", "crd.yaml"))
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := c.objects.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the CRD: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, poll, crdTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = c.objects.Resource(backups).List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w (%w)", crd.GetName(), err, last)
	}
	return nil
}

func (c *cluster) createItems(ctx context.Context) error {
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	if _, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	for _, it := range items {
		created, err := c.objects.Resource(it.resource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: it.object}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create %s: %w", it.title(), err)
		}
		c.created[it.title()] = created.Object
	}
	findings, err := c.inspect(ctx)
	c.initiallyWrong = countRequests(wrong(findings))
	return err
}

// grant allows a user what Rectifier needs for the rules of the show.
func (c *cluster) grant(ctx context.Context, user string) error {
	name := metav1.ObjectMeta{Name: user}
	watch := []string{"list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: append(watch, "patch")},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"example.io"}, Resources: []string{"backups"}, Verbs: append(watch, "patch")},
		{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: watch},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: watch},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: watch},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}}
	if _, err := c.kubernetes.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ClusterRole: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := c.kubernetes.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ClusterRoleBinding: %w", err)
	}
	return nil
}
