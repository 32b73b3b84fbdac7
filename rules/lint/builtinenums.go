package lint

import "strings"

const (
	conditionStatus = "True False Unknown"
	protocols       = "TCP UDP SCTP"
	pullPolicies    = "Always IfNotPresent Never"
	operators       = "In NotIn Exists DoesNotExist"
)

// builtinEnums are the words that fields of built-in kinds hold, by definition
// and field: their schemas do not say. Only fields are here of which all words
// are listed in k8s.io/api v0.37; later versions may know more, so that what
// is not here counts only where it looks like a slip.
var builtinEnums = map[string]string{
	"Condition.status": conditionStatus, "DeploymentCondition.status": conditionStatus, "ReplicaSetCondition.status": conditionStatus, "StatefulSetCondition.status": conditionStatus,
	"DaemonSetCondition.status": conditionStatus, "JobCondition.status": conditionStatus, "PodCondition.status": conditionStatus, "NodeCondition.status": conditionStatus,
	"NamespaceCondition.status": conditionStatus, "PersistentVolumeClaimCondition.status": conditionStatus, "HorizontalPodAutoscalerCondition.status": conditionStatus,
	"CustomResourceDefinitionCondition.status": conditionStatus, "APIServiceCondition.status": conditionStatus, "CertificateSigningRequestCondition.status": conditionStatus,

	"ServiceSpec.type": "ClusterIP NodePort LoadBalancer ExternalName", "ServiceSpec.sessionAffinity": "None ClientIP", "ServiceSpec.externalTrafficPolicy": "Cluster Local",
	"ServiceSpec.internalTrafficPolicy": "Cluster Local", "ServicePort.protocol": protocols, "ContainerPort.protocol": protocols,
	"Container.imagePullPolicy": pullPolicies, "EphemeralContainer.imagePullPolicy": pullPolicies,
	"Container.terminationMessagePolicy": "File FallbackToLogsOnError",
	"PodSpec.restartPolicy":              "Always OnFailure Never", "PodSpec.dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
	"PodSpec.preemptionPolicy": "PreemptLowerPriority Never", "PodStatus.phase": "Pending Running Succeeded Failed Unknown", "PodStatus.qosClass": "Guaranteed Burstable BestEffort",
	"Taint.effect": "NoSchedule PreferNoSchedule NoExecute", "Toleration.effect": "NoSchedule PreferNoSchedule NoExecute",
	"TopologySpreadConstraint.whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
	"LabelSelectorRequirement.operator":          operators, "NodeSelectorRequirement.operator": operators + " Gt Lt",
	"NamespaceStatus.phase":                              "Active Terminating",
	"PersistentVolumeSpec.persistentVolumeReclaimPolicy": "Retain Delete Recycle", "PersistentVolumeSpec.volumeMode": "Block Filesystem", "PersistentVolumeClaimSpec.volumeMode": "Block Filesystem",
	"PersistentVolumeStatus.phase": "Pending Available Bound Released Failed", "PersistentVolumeClaimStatus.phase": "Pending Bound Lost",

	"DeploymentStrategy.type": "Recreate RollingUpdate", "StatefulSetUpdateStrategy.type": "RollingUpdate OnDelete", "DaemonSetUpdateStrategy.type": "RollingUpdate OnDelete",
	"StatefulSetSpec.podManagementPolicy": "OrderedReady Parallel",
	"CronJobSpec.concurrencyPolicy":       "Allow Forbid Replace", "JobSpec.completionMode": "NonIndexed Indexed",
	"PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy": "IfHealthyBudget AlwaysAllow",
	"StorageClass.reclaimPolicy":                         "Retain Delete Recycle", "StorageClass.volumeBindingMode": "Immediate WaitForFirstConsumer",
	"HTTPIngressPath.pathType":           "Exact Prefix ImplementationSpecific",
	"CustomResourceDefinitionSpec.scope": "Cluster Namespaced",
	"MutatingWebhook.failurePolicy":      "Ignore Fail", "ValidatingWebhook.failurePolicy": "Ignore Fail",
}

// builtinEnum are the words of a field by its place in the schemas of
// Kubernetes.
func builtinEnum(id string) []string {
	if !strings.HasPrefix(id, "io.k8s.") {
		return nil
	}
	field := strings.LastIndexByte(id, '.')
	definition := strings.LastIndexByte(id[:max(field, 0)], '.')
	return strings.Fields(builtinEnums[id[definition+1:]])
}
