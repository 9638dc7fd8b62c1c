"""Fields of built-in kinds that hold one of a few words, which the client's models do not carry.

``kubectl explain`` shows them. What refuses other words are the checks.
"""

from __future__ import annotations

# The words, and the fields that hold one of them, or a list of them.
_TABLE = """
SCTP TCP UDP | ContainerPort.protocol EndpointPort.protocol NetworkPolicyPort.protocol PortStatus.protocol
             | ServicePort.protocol IngressPortStatus.protocol
Fail Ignore | MutatingWebhook.failurePolicy ValidatingWebhook.failurePolicy
Equivalent Exact | MutatingWebhook.matchPolicy ValidatingWebhook.matchPolicy
None NoneOnDryRun Some Unknown | MutatingWebhook.sideEffects ValidatingWebhook.sideEffects
IfNeeded Never | MutatingWebhook.reinvocationPolicy
* CONNECT CREATE DELETE UPDATE | RuleWithOperations.operations
* Cluster Namespaced | RuleWithOperations.scope
Always IfNotPresent Never | Container.imagePullPolicy EphemeralContainer.imagePullPolicy
             | ImageVolumeSource.pullPolicy
FallbackToLogsOnError File | Container.terminationMessagePolicy EphemeralContainer.terminationMessagePolicy
ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod | PersistentVolumeClaimSpec.accessModes
             | PersistentVolumeClaimStatus.accessModes PersistentVolumeSpec.accessModes
Block Filesystem | PersistentVolumeClaimSpec.volumeMode PersistentVolumeSpec.volumeMode
Delete Recycle Retain | PersistentVolumeSpec.persistentVolumeReclaimPolicy StorageClass.reclaimPolicy
Bound Lost Pending | PersistentVolumeClaimStatus.phase
Available Bound Failed Pending Released | PersistentVolumeStatus.phase
Immediate WaitForFirstConsumer | StorageClass.volumeBindingMode
Localhost RuntimeDefault Unconfined | AppArmorProfile.type SeccompProfile.type
Default Unmasked | SecurityContext.procMount
Always OnRootMismatch | PodSecurityContext.fsGroupChangePolicy
Merge Strict | PodSecurityContext.supplementalGroupsPolicy
HTTP HTTPS | HTTPGetAction.scheme
Bidirectional HostToContainer None | VolumeMount.mountPropagation
ClusterFirst ClusterFirstWithHostNet Default None | PodSpec.dnsPolicy
Always Never OnFailure | PodSpec.restartPolicy
Never PreemptLowerPriority | PodSpec.preemptionPolicy PriorityClass.preemptionPolicy
Failed Pending Running Succeeded Unknown | PodStatus.phase
BestEffort Burstable Guaranteed | PodStatus.qosClass
DoesNotExist Exists Gt In Lt NotIn | NodeSelectorRequirement.operator
DoesNotExist Exists In NotIn | ScopedResourceSelectorRequirement.operator
NoExecute NoSchedule PreferNoSchedule | Taint.effect Toleration.effect
Equal Exists Gt Lt | Toleration.operator
DoNotSchedule ScheduleAnyway | TopologySpreadConstraint.whenUnsatisfiable
Honor Ignore | TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy
Active Terminating | NamespaceStatus.phase
Pending Running Terminated | NodeStatus.phase
Cluster Local | ServiceSpec.externalTrafficPolicy ServiceSpec.internalTrafficPolicy
PreferDualStack RequireDualStack SingleStack | ServiceSpec.ipFamilyPolicy
ClientIP None | ServiceSpec.sessionAffinity
ClusterIP ExternalName LoadBalancer NodePort | ServiceSpec.type
AlwaysAllow IfHealthyBudget | PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy
Exact ImplementationSpecific Prefix | HTTPIngressPath.pathType
Egress Ingress | NetworkPolicySpec.policyTypes
FQDN IPv4 IPv6 | EndpointSlice.addressType
Allow Forbid Replace | CronJobSpec.concurrencyPolicy
Indexed NonIndexed | JobSpec.completionMode
Failed TerminatingOrFailed | JobSpec.podReplacementPolicy
In NotIn | PodFailurePolicyOnExitCodesRequirement.operator
Count FailIndex FailJob Ignore | PodFailurePolicyRule.action
OnDelete RollingUpdate | DaemonSetUpdateStrategy.type StatefulSetUpdateStrategy.type
Recreate RollingUpdate | DeploymentStrategy.type
OrderedReady Parallel | StatefulSetSpec.podManagementPolicy
FieldValueDuplicate FieldValueForbidden FieldValueInvalid FieldValueRequired | ValidationRule.reason
FromClaim FromClass | DeviceAllocationConfiguration.source
All ExactCount | DeviceSubRequest.allocationMode ExactDeviceRequest.allocationMode
NoExecute NoSchedule None | DeviceTaint.effect DeviceToleration.effect
Equal Exists | DeviceToleration.operator
"""


def _read(table: str) -> dict[str, list[str]]:
    choices: dict[str, list[str]] = {}
    words: list[str] = []
    for line in table.strip().splitlines():
        left, bar, right = line.partition("|")
        words = left.split() or words
        choices.update(dict.fromkeys(right.split() if bar else (), words))
    return choices


_SCOPES = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
]
CHOICES = {
    **_read(_TABLE),
    "ResourceQuotaSpec.scopes": _SCOPES,
    "ScopedResourceSelectorRequirement.scopeName": _SCOPES,
}
