"""Numatopology: the NUMA nodes of one machine and what is free on them; it has the machine's name."""

from typing import ClassVar, Literal

from pydantic import Field

from volcano_py.crds.base import API_DEFAULT, CrdInfo, CrdModel, CrdObject

__all__ = [
    "ContainerAllocation", "CpuPlace", "NumaResource", "NumatopoSpec", "Numatopology", "PodAllocation",
]  # fmt: skip


class NumaResource(CrdModel):
    """One resource of the machine."""

    allocatable: str = Field(default="", description="What is free, as a set such as 0-3,8; cpu: ids.")
    capacity: int = Field(default=0, description="How much there is.")


class CpuPlace(CrdModel):
    """Where one CPU is."""

    numa: int = Field(default=0, ge=0, description="Its NUMA node.")
    socket: int = Field(default=0, ge=0, description="Its socket.")
    core: int = Field(default=0, ge=0, description="Its core.")


class ContainerAllocation(CrdModel):
    """What one container holds."""

    name: str = Field(default="", description="Name of the container.")
    allocations: dict[str, str] = Field(
        default_factory=dict, description="Resource to amount; for cpu the set of its CPUs."
    )


class PodAllocation(CrdModel):
    """What one pod holds."""

    uid: str = Field(default="", description="UID of the pod.")
    name: str = Field(default="", description="Its name.")
    namespace: str = Field(default="", description="Its namespace.")
    container_allocations: list[ContainerAllocation] = Field(
        default_factory=list, description="Container by container."
    )


class NumatopoSpec(CrdModel):
    """What the node agent found; there is no status."""

    policies: dict[str, str] = Field(
        default_factory=dict, description="Kubelet policies: CPUManagerPolicy, TopologyManagerPolicy."
    )
    res_reserved: dict[str, str] = Field(
        default_factory=dict, description="What the machine keeps for itself, by resource."
    )
    numares: dict[str, NumaResource] = Field(default_factory=dict, description="Resources by name.")
    cpu_detail: dict[str, CpuPlace] = Field(default_factory=dict, description="CPUs by id.")
    pod_allocations: list[PodAllocation] = Field(default_factory=list, description="What pods hold.")


class Numatopology(CrdObject):
    """The NUMA nodes of one machine."""

    info: ClassVar = CrdInfo(
        group="nodeinfo.volcano.sh",
        version="v1alpha1",
        kind="Numatopology",
        plural="numatopologies",
        short_names=("numatopo",),
        cluster_scoped=True,
        status_subresource=False,
    )

    api_version: Literal["nodeinfo.volcano.sh/v1alpha1"] = Field(
        default="nodeinfo.volcano.sh/v1alpha1", json_schema_extra=API_DEFAULT
    )
    kind: Literal["Numatopology"] = Field(default="Numatopology", json_schema_extra=API_DEFAULT)
    spec: NumatopoSpec = Field(default_factory=NumatopoSpec, description="What the node agent found.")
