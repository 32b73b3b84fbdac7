package lint

import "k8s.io/apimachinery/pkg/runtime/schema"

// fixedField is a field, with all below it, that the API server refuses to
// change on an existing object.
type fixedField struct {
	path   string
	except []string // what can be changed nevertheless
	reason string
}

func fixed(reason string, paths ...string) []fixedField {
	var out []fixedField
	for _, path := range paths {
		out = append(out, fixedField{path: path, reason: reason})
	}
	return out
}

const (
	selects     = "it tells which pods belong to the object, and the server refuses another one"
	refused     = "the server refuses another value"
	ofPods      = "of a pod that exists only images, activeDeadlineSeconds, and more tolerations can be changed; change what made the pod"
	podsAreMade = "the pods of a Job are made once: the server refuses another template; a Job has to be made again"
)

// immutableFields are what the validation of Kubernetes 1.37 refuses
// (pkg/apis/*/validation, ValidateXUpdate). What can be changed under some
// circumstances, such as a Job's template while it is suspended, is here only
// where those are rare.
var immutableFields = map[schema.GroupResource][]fixedField{
	{Group: "apps", Resource: "deployments"}:         fixed(selects, "spec.selector"),
	{Group: "apps", Resource: "replicasets"}:         fixed(selects, "spec.selector"),
	{Group: "apps", Resource: "daemonsets"}:          fixed(selects, "spec.selector"),
	{Group: "apps", Resource: "statefulsets"}:        append(fixed(selects, "spec.selector"), fixed(refused, "spec.volumeClaimTemplates", "spec.serviceName", "spec.podManagementPolicy")...),
	{Group: "apps", Resource: "controllerrevisions"}: fixed(refused, "data"),
	{Group: "batch", Resource: "jobs"}: append(append(fixed(selects, "spec.selector"),
		fixedField{path: "spec.template", reason: podsAreMade}),
		fixed(refused, "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy", "spec.successPolicy")...),
	{Resource: "pods"}: {{
		path: "spec", reason: ofPods,
		except: []string{"spec.containers.*.image", "spec.containers.*.name", "spec.initContainers.*.image", "spec.initContainers.*.name", "spec.activeDeadlineSeconds", "spec.tolerations", "spec.schedulingGates"},
	}},
	{Resource: "services"}: fixed("it is set when the Service is made, and the server refuses another one", "spec.clusterIP", "spec.clusterIPs.0", "spec.ipFamilies.0"),
	{Resource: "persistentvolumeclaims"}: {{
		path: "spec", reason: "the spec of a claim is immutable but for resources.requests and volumeAttributesClassName",
		except: []string{"spec.resources.requests", "spec.volumeAttributesClassName"},
	}},
	{Resource: "persistentvolumes"}: fixed("where a volume is does not change", "spec.volumeMode", "spec.csi.driver", "spec.csi.volumeHandle", "spec.nfs", "spec.hostPath", "spec.local", "spec.iscsi", "spec.fc"),
	{Resource: "secrets"}:           fixed("the server refuses another type: make another Secret", "type"),
	{Group: "storage.k8s.io", Resource: "storageclasses"}: fixed("the server refuses another value: make another StorageClass",
		"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:               fixed(refused, "spec"),
	{Group: "storage.k8s.io", Resource: "csidrivers"}:                      fixed(refused, "spec.attachRequired", "spec.volumeLifecycleModes"),
	{Group: "networking.k8s.io", Resource: "ingressclasses"}:               fixed(refused, "spec.controller"),
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:         fixed("the server refuses another role: make another binding", "roleRef"),
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:  fixed("the server refuses another role: make another binding", "roleRef"),
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:              fixed("the server refuses another value: make another PriorityClass", "value", "preemptionPolicy"),
	{Group: "node.k8s.io", Resource: "runtimeclasses"}:                     fixed(refused, "handler"),
	{Group: "discovery.k8s.io", Resource: "endpointslices"}:                fixed(refused, "addressType"),
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: fixed("the server keeps what is there", "spec"),
}
