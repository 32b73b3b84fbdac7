// Package deployments makes Deployments as clusters have them, for tests and
// benchmarks: with managedFields, the annotation of kubectl apply, env, probes,
// resources and a status. They are deterministic, and each differs from all others
// in name, uid, labels and annotations.
package deployments

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Size says how large a Deployment is, as compact JSON with all that the server adds.
type Size int

const (
	Small Size = iota // about 3.5 KB: one container
	Large             // about 16 KB: four containers with many variables
)

// ExpectedReplicas is the annotation that the built-in rule reads. It holds "3" on
// all Deployments, and spec.replicas is 3: none needs a fix.
const ExpectedReplicas = "example.io/expected-replicas"

const (
	namespaces  = 20
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Manifest returns the i-th Deployment as somebody applies it: without all that the
// server sets, so that it can be created.
func Manifest(i int, size Size) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/name":     "web",
		"app.kubernetes.io/instance": fmt.Sprintf("web-%05d", i),
		"team":                       fmt.Sprintf("team-%d", i%37),
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", i), Namespace: fmt.Sprintf("shop-%02d", i%namespaces), Labels: labels,
			Annotations: map[string]string{ExpectedReplicas: "3", "example.io/owner": fmt.Sprintf("team-%d-on-call-%05d", i%37, i)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/instance": labels["app.kubernetes.io/instance"]}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(i, size)},
		},
	}
}

// Make returns the i-th Deployment as the server returns it. Its resourceVersion is
// 100000 + i.
func Make(i int, size Size) *appsv1.Deployment {
	d := Manifest(i, size)
	d.Annotations[lastApplied] = string(mustJSON(Manifest(i, size))) + "\n"
	d.Annotations["deployment.kubernetes.io/revision"] = "7"
	d.UID = uid(i)
	d.ResourceVersion = fmt.Sprint(100000 + i)
	d.Generation = 3
	d.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(i) * time.Second))
	setDefaults(&d.Spec)
	d.Status = status(d)
	d.ManagedFields = managedFields(d)
	return d
}

// JSON is Make as the server sends it: compact, without a line feed.
func JSON(i int, size Size) []byte { return mustJSON(Make(i, size)) }

// setDefaults sets what the server does.
func setDefaults(spec *appsv1.DeploymentSpec) {
	spec.RevisionHistoryLimit, spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
	spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromString("25%")),
	}}
	pods := &spec.Template.Spec
	pods.DNSPolicy, pods.RestartPolicy, pods.SchedulerName = corev1.DNSClusterFirst, corev1.RestartPolicyAlways, "default-scheduler"
	pods.TerminationGracePeriodSeconds = new(int64(30))
	for i := range pods.Containers {
		c := &pods.Containers[i]
		c.ImagePullPolicy, c.Ports[0].Protocol = corev1.PullIfNotPresent, corev1.ProtocolTCP
		c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
	}
}

func podSpec(i int, size Size) corev1.PodSpec {
	containers, variables := 1, 1
	if size == Large {
		containers, variables = 4, 13
	}
	var spec corev1.PodSpec
	for c := range containers {
		container := corev1.Container{
			Name: fmt.Sprintf("app-%d", c), Image: fmt.Sprintf("registry.example.io/shop/web:1.%d.%d", c, i%50),
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + c)}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
		}
		for v := range variables {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("APP_SETTING_%d", v), Value: fmt.Sprintf("value-%d-of-%05d", v, i)})
		}
		if size == Large {
			container.ReadinessProbe = &corev1.Probe{
				ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready?deep=true&verbose=<no>", Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
				TimeoutSeconds:   1,
				PeriodSeconds:    10,
				SuccessThreshold: 1,
				FailureThreshold: 3,
			}
		}
		spec.Containers = append(spec.Containers, container)
	}
	return spec
}

func status(d *appsv1.Deployment) appsv1.DeploymentStatus {
	condition := func(kind appsv1.DeploymentConditionType, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
			LastUpdateTime: d.CreationTimestamp, LastTransitionTime: d.CreationTimestamp}
	}
	return appsv1.DeploymentStatus{
		ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability."),
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name+"-7c5ddbdf54")),
		},
	}
}

// managedFields are one entry of whoever applies, with the fields of the spec, and
// one of the controller that writes the status.
func managedFields(d *appsv1.Deployment) []metav1.ManagedFieldsEntry {
	entry := func(manager, subresource string, fields any) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1",
			Time: &d.CreationTimestamp, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(mustJSON(fields))), Subresource: subresource}
	}
	containers := map[string]any{}
	for _, c := range d.Spec.Template.Spec.Containers {
		containers[fmt.Sprintf(`k:{"name":%q}`, c.Name)] = owned(c.Env)
	}
	annotations := map[string]any{".": map[string]any{}}
	for name := range d.Annotations {
		annotations["f:"+name] = map[string]any{}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kubectl-client-side-apply", "", map[string]any{
			"f:metadata": map[string]any{"f:annotations": annotations},
			"f:spec":     map[string]any{"f:replicas": map[string]any{}, "f:template": map[string]any{"f:spec": map[string]any{"f:containers": containers}}},
		}),
		entry("kube-controller-manager", "status", map[string]any{
			"f:status": map[string]any{"f:conditions": map[string]any{".": map[string]any{}}, "f:replicas": map[string]any{}, "f:readyReplicas": map[string]any{}},
		}),
	}
}

// owned is what of a container is owned.
func owned(env []corev1.EnvVar) map[string]any {
	none := map[string]any{}
	variables := map[string]any{".": none}
	for _, v := range env {
		variables[fmt.Sprintf(`k:{"name":%q}`, v.Name)] = map[string]any{".": none, "f:name": none, "f:value": none}
	}
	return map[string]any{".": none, "f:image": none, "f:name": none, "f:resources": none, "f:env": variables}
}

// uid is a version 4 UUID that belongs to a number.
func uid(i int) types.UID {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	a, b := r.Uint64(), r.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all of it has a JSON form
	}
	return b
}
