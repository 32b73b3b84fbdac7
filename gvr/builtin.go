package gvr

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinTable is what Kubernetes 1.37 serves without CRDs: all kinds that are stored, in whatever version. A test
// compares it with what the real API server says about itself.
//
// Columns: kind, resource, scope (C cluster, N namespaced), subresources that rules can patch. A line in brackets
// starts a group; [core] is the group "".
const builtinTable = `
[core]
ComponentStatus                   componentstatuses                  C
ConfigMap                         configmaps                         N
Endpoints                         endpoints                          N
Event                             events                             N
LimitRange                        limitranges                        N
Namespace                         namespaces                         C  status
Node                              nodes                              C  status
PersistentVolume                  persistentvolumes                  C  status
PersistentVolumeClaim             persistentvolumeclaims             N  status
Pod                               pods                               N  status
PodTemplate                       podtemplates                       N
ReplicationController             replicationcontrollers             N  status scale
ResourceQuota                     resourcequotas                     N  status
Secret                            secrets                            N
Service                           services                           N  status
ServiceAccount                    serviceaccounts                    N

[admissionregistration.k8s.io]
MutatingAdmissionPolicy           mutatingadmissionpolicies          C
MutatingAdmissionPolicyBinding    mutatingadmissionpolicybindings    C
MutatingWebhookConfiguration      mutatingwebhookconfigurations      C
ValidatingAdmissionPolicy         validatingadmissionpolicies        C  status
ValidatingAdmissionPolicyBinding  validatingadmissionpolicybindings  C
ValidatingWebhookConfiguration    validatingwebhookconfigurations    C

[apiextensions.k8s.io]
CustomResourceDefinition          customresourcedefinitions          C  status

[apiregistration.k8s.io]
APIService                        apiservices                        C  status

[apps]
ControllerRevision                controllerrevisions                N
DaemonSet                         daemonsets                         N  status
Deployment                        deployments                        N  status scale
ReplicaSet                        replicasets                        N  status scale
StatefulSet                       statefulsets                       N  status scale

[autoscaling]
HorizontalPodAutoscaler           horizontalpodautoscalers           N  status

[batch]
CronJob                           cronjobs                           N  status
Job                               jobs                               N  status

[certificates.k8s.io]
CertificateSigningRequest         certificatesigningrequests         C  status
ClusterTrustBundle                clustertrustbundles                C
PodCertificateRequest             podcertificaterequests             N  status

[coordination.k8s.io]
Lease                             leases                             N
LeaseCandidate                    leasecandidates                    N

[discovery.k8s.io]
EndpointSlice                     endpointslices                     N

[events.k8s.io]
Event                             events                             N

[flowcontrol.apiserver.k8s.io]
FlowSchema                        flowschemas                        C  status
PriorityLevelConfiguration        prioritylevelconfigurations        C  status

[internal.apiserver.k8s.io]
StorageVersion                    storageversions                    C  status

[lifecycle.k8s.io]
Eviction                          evictions                          N  status
EvictionRequest                   evictionrequests                   N  status

[networking.k8s.io]
IPAddress                         ipaddresses                        C
Ingress                           ingresses                          N  status
IngressClass                      ingressclasses                     C
NetworkPolicy                     networkpolicies                    N
ServiceCIDR                       servicecidrs                       C  status

[node.k8s.io]
RuntimeClass                      runtimeclasses                     C

[policy]
PodDisruptionBudget               poddisruptionbudgets               N  status

[rbac.authorization.k8s.io]
ClusterRole                       clusterroles                       C
ClusterRoleBinding                clusterrolebindings                C
Role                              roles                              N
RoleBinding                       rolebindings                       N

[resource.k8s.io]
DeviceClass                       deviceclasses                      C
DeviceTaintRule                   devicetaintrules                   C  status
ResourceClaim                     resourceclaims                     N  status
ResourceClaimTemplate             resourceclaimtemplates             N
ResourcePoolStatusRequest         resourcepoolstatusrequests         C  status
ResourceSlice                     resourceslices                     C

[scheduling.k8s.io]
CompositePodGroup                 compositepodgroups                 N  status
PodGroup                          podgroups                          N  status
PriorityClass                     priorityclasses                    C
Workload                          workloads                          N

[storage.k8s.io]
CSIDriver                         csidrivers                         C
CSINode                           csinodes                           C  status
CSIStorageCapacity                csistoragecapacities               N
StorageClass                      storageclasses                     C
VolumeAttachment                  volumeattachments                  C  status
VolumeAttributesClass             volumeattributesclasses            C

[storagemigration.k8s.io]
StorageVersionMigration           storageversionmigrations           C  status
`

type builtin struct {
	resource            string
	namespaced          bool
	hasStatus, hasScale bool
}

var builtinKinds = parseBuiltinTable(builtinTable)

// parseBuiltinTable panics on a malformed line: the table is part of the program.
func parseBuiltinTable(table string) map[schema.GroupKind]builtin {
	kinds := map[schema.GroupKind]builtin{}
	group := ""
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case len(fields) == 1:
			group = strings.Trim(fields[0], "[]")
			if group == "core" {
				group = ""
			}
		case len(fields) >= 3 && (fields[2] == "C" || fields[2] == "N"):
			kinds[schema.GroupKind{Group: group, Kind: fields[0]}] = builtin{
				resource:   fields[1],
				namespaced: fields[2] == "N",
				hasStatus:  slices.Contains(fields[3:], "status"),
				hasScale:   slices.Contains(fields[3:], "scale"),
			}
		default:
			panic(fmt.Sprintf("gvr: malformed line in builtinTable: %q", line))
		}
	}
	return kinds
}

// builtinReplicasPath is where the four scalable built-in resources keep their replicas; nil for all others.
func builtinReplicasPath(gr schema.GroupResource) []string {
	switch gr {
	case schema.GroupResource{Group: "apps", Resource: "deployments"},
		schema.GroupResource{Group: "apps", Resource: "replicasets"},
		schema.GroupResource{Group: "apps", Resource: "statefulsets"},
		schema.GroupResource{Resource: "replicationcontrollers"}:
		return []string{"spec", "replicas"}
	default:
		return nil
	}
}
