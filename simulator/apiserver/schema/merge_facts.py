"""How built-in lists and maps merge: facts of the API that the client's models do not carry.

Fields are named ``Model.field`` with the model's name free of its version prefix, as kubectl explain
shows it. A list that is not named here is atomic: it is replaced whole, by every kind of patch.
"""

from __future__ import annotations

from typing import NamedTuple


class Merge(NamedTuple):
    """How one list merges.

    Attributes:
        keys: What names an item in server-side apply; empty for a set, or for a list that is atomic there.
        patch_key: What names an item in a strategic merge patch; "" where items are plain values.
        retain_keys: An item's other source fields go when a new one is set (``volumes``).
    """

    keys: tuple[str, ...]
    patch_key: str
    retain_keys: bool = False


_BY_NAME = Merge(("name",), "name")
_BY_TYPE = Merge(("type",), "type")
_BY_IP = Merge(("ip",), "ip")
_BY_UID = Merge(("uid",), "uid")
_BY_PATH = Merge(("mountPath",), "mountPath")
_BY_NAME_RETAIN = Merge(("name",), "name", retain_keys=True)


def _words(text: str) -> list[str]:
    return text.split()


def _all(merge: Merge, names: str) -> dict[str, Merge]:
    return dict.fromkeys(_words(names), merge)


LISTS: dict[str, Merge] = {
    **_all(
        _BY_NAME,
        """
        CSINodeSpec.drivers Container.env ContainerStatus.allocatedResourcesStatus
        EphemeralContainer.env MutatingWebhook.matchConditions MutatingWebhookConfiguration.webhooks
        PodSpec.containers PodSpec.ephemeralContainers PodSpec.imagePullSecrets PodSpec.initContainers
        PodSpec.schedulingGates ServiceAccount.secrets ValidatingWebhook.matchConditions
        ValidatingWebhookConfiguration.webhooks
        """,
    ),
    **_all(_BY_NAME_RETAIN, "PodSpec.volumes PodSpec.resourceClaims PodStatus.resourceClaimStatuses"),
    **_all(
        _BY_TYPE,
        """
        DaemonSetStatus.conditions DeploymentStatus.conditions HorizontalPodAutoscalerStatus.conditions
        NamespaceStatus.conditions NodeStatus.addresses NodeStatus.conditions
        PersistentVolumeClaimStatus.conditions PodDisruptionBudgetStatus.conditions PodStatus.conditions
        ReplicaSetStatus.conditions ReplicationControllerStatus.conditions ServiceStatus.conditions
        StatefulSetStatus.conditions
        """,
    ),
    **_all(
        Merge(("type",), ""),
        """
        AllocatedDeviceStatus.conditions CertificateSigningRequestStatus.conditions
        CustomResourceDefinitionStatus.conditions
        """,
    ),
    **_all(_BY_IP, "PodSpec.hostAliases PodStatus.podIPs"),
    **_all(_BY_UID, "ObjectMeta.ownerReferences ResourceClaimStatus.reservedFor"),
    **_all(_BY_PATH, "Container.volumeMounts ContainerStatus.volumeMounts EphemeralContainer.volumeMounts"),
    **_all(
        Merge(("containerPort", "protocol"), "containerPort"),
        """
        Container.ports EphemeralContainer.ports
        """,
    ),
    **_all(Merge(("devicePath",), "devicePath"), "Container.volumeDevices EphemeralContainer.volumeDevices"),
    "JSONSchemaProps.x-kubernetes-validations": Merge(("rule",), "rule"),
    "ServiceSpec.ports": Merge(("port", "protocol"), "port"),
    "PodSpec.topologySpreadConstraints": Merge(("topologyKey", "whenUnsatisfiable"), "topologyKey"),
    "ResourceRequirements.claims": Merge(("name",), ""),
    "ResourceStatus.resources": Merge(("resourceID",), ""),
    "ResourceClaimStatus.devices": Merge(("driver", "device", "pool", "shareID"), ""),
    "PodStatus.hostIPs": Merge((), "ip"),
    "JobStatus.conditions": Merge((), "type"),
}

# Lists of plain values of which each has its own owner.
SETS = frozenset(
    _words("""
        CSIDriverSpec.volumeLifecycleModes ContainerRestartRuleOnExitCodes.values Endpoint.addresses
        NodeSpec.podCIDRs NodeAllocatableResourceClaimStatus.containers ObjectMeta.finalizers
        PodFailurePolicyOnExitCodesRequirement.values UncountedTerminatedPods.failed
        UncountedTerminatedPods.succeeded
    """)
)

# Of those, the ones that a strategic merge patch adds to.
MERGED_SETS = frozenset({"NodeSpec.podCIDRs", "ObjectMeta.finalizers"})

# Structs and maps that a strategic merge patch treats specially.
STRATEGIES = {"PodDisruptionBudgetSpec.selector": "replace", "DeploymentSpec.strategy": "retainKeys"}

# Structs that have one owner, whatever field they stand in.
ATOMIC_STRUCTS = frozenset(
    _words("""
        ConfigMapKeySelector CrossVersionObjectReference EndpointAddress EndpointPort FileKeySelector
        LabelSelector LocalObjectReference NodeSelector NodeSelectorTerm ObjectFieldSelector
        ObjectReference OwnerReference ResourceFieldSelector RoleRef ScopeSelector SecretKeySelector
        SecretReference ServiceBackendPort Subject TopologySelectorTerm TypedLocalObjectReference
    """)
)

# Fields that have one owner although they are maps, and those of which it is said that they have many.
ATOMIC_MAPS = frozenset(
    _words("""
        PodSpec.nodeSelector ReplicationControllerSpec.selector Scheduling.nodeSelector
        ServiceSpec.selector
    """)
)
GRANULAR = frozenset(
    {"PersistentVolumeSpec.claimRef", "PersistentVolumeClaimStatus.allocatedResourceStatuses"}
)

# What a key field means when it is left out.
KEY_DEFAULTS: dict[str, dict[str, str]] = {
    name: {"protocol": "TCP"} for name in ("Container.ports", "EphemeralContainer.ports", "ServiceSpec.ports")
}

# Numbers with a suffix, which the models call plain strings.
QUANTITIES = frozenset(
    _words("""
        CSIStorageCapacity.capacity CSIStorageCapacity.maximumVolumeSize CapacityRequestPolicy.default
        CapacityRequestPolicy.validValues CapacityRequestPolicyRange.max CapacityRequestPolicyRange.min
        CapacityRequestPolicyRange.step CapacityRequirements.requests ContainerStatus.allocatedResources
        Counter.value DeviceCapacity.value DeviceRequestAllocationResult.consumedCapacity
        EmptyDirVolumeSource.sizeLimit HPAScalingRules.tolerance LimitRangeItem.default
        LimitRangeItem.defaultRequest LimitRangeItem.max LimitRangeItem.maxLimitRequestRatio
        LimitRangeItem.min MetricTarget.averageValue MetricTarget.value MetricValueStatus.averageValue
        MetricValueStatus.value NodeAllocatableResourceClaimStatus.resources
        NodeAllocatableResourceMapping.allocationMultiplier NodeStatus.allocatable NodeStatus.capacity
        Overhead.podFixed PersistentVolumeClaimStatus.allocatedResources
        PersistentVolumeClaimStatus.capacity PersistentVolumeSpec.capacity PodSpec.overhead
        PodStatus.allocatedResources ResourceFieldSelector.divisor ResourceQuotaSpec.hard
        ResourceQuotaStatus.hard ResourceQuotaStatus.used ResourceRequirements.limits
        ResourceRequirements.requests VolumeResourceRequirements.limits
        VolumeResourceRequirements.requests
    """)
)

# Numbers, or names and percentages.
INT_OR_STRING = frozenset(
    _words("""
        HTTPGetAction.port NetworkPolicyPort.port PodDisruptionBudgetSpec.maxUnavailable
        PodDisruptionBudgetSpec.minAvailable RollingUpdateDaemonSet.maxSurge
        RollingUpdateDaemonSet.maxUnavailable RollingUpdateDeployment.maxSurge
        RollingUpdateDeployment.maxUnavailable RollingUpdateStatefulSetStrategy.maxUnavailable
        ServicePort.targetPort TCPSocketAction.port
    """)
)

# Whole numbers of 64 bits; all others have 32.
INT64 = frozenset(
    _words("""
        CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds Condition.observedGeneration
        ContainerImage.sizeBytes ControllerRevision.revision CronJobSpec.startingDeadlineSeconds
        CustomResourceDefinitionCondition.observedGeneration
        CustomResourceDefinitionStatus.observedGeneration DaemonSetStatus.observedGeneration
        DeleteOptions.gracePeriodSeconds DeploymentStatus.observedGeneration DeviceAttribute.int
        DeviceAttribute.ints DeviceSubRequest.count DeviceToleration.tolerationSeconds
        ExactDeviceRequest.count HorizontalPodAutoscalerStatus.observedGeneration JSONSchemaProps.maxItems
        JSONSchemaProps.maxLength JSONSchemaProps.maxProperties JSONSchemaProps.minItems
        JSONSchemaProps.minLength JSONSchemaProps.minProperties JobSpec.activeDeadlineSeconds
        LinuxContainerUser.gid LinuxContainerUser.supplementalGroups LinuxContainerUser.uid
        ListMeta.remainingItemCount NodeSwapStatus.capacity ObjectMeta.deletionGracePeriodSeconds
        ObjectMeta.generation PodCondition.observedGeneration PodDisruptionBudgetStatus.observedGeneration
        PodSecurityContext.fsGroup PodSecurityContext.runAsGroup PodSecurityContext.runAsUser
        PodSecurityContext.supplementalGroups PodSpec.activeDeadlineSeconds
        PodSpec.terminationGracePeriodSeconds PodStatus.observedGeneration
        Probe.terminationGracePeriodSeconds ReplicaSetStatus.observedGeneration
        ReplicationControllerStatus.observedGeneration ResourcePool.generation
        ResourcePool.resourceSliceCount SecurityContext.runAsGroup SecurityContext.runAsUser
        ServiceAccountTokenProjection.expirationSeconds SleepAction.seconds
        StatefulSetStatus.observedGeneration TokenRequest.expirationSeconds
        TokenRequestSpec.expirationSeconds Toleration.tolerationSeconds
    """)
)

# Times kept to the microsecond; all others are kept to the second.
MICRO_TIMES = frozenset(
    {"Event.eventTime", "EventSeries.lastObservedTime", "LeaseSpec.renewTime", "LeaseSpec.acquireTime"}
)
