"""The common ground of all API types: models, metadata, field types, and what a CRD says of itself.

An object is parsed once, at the edge, and then frozen. Unknown fields never fail it: an API server would
prune them with a warning, so they are kept aside (:func:`unknown_fields`) and left out of dumps. A null
counts as absent, as the API server prunes it too.

Neighbours: ``messages`` (errors in plain words), ``quantity``, ``times``; ``schema`` makes CRDs of models.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from volcano_py.crds.messages import field_error, join_path, shown, validation_messages
from volcano_py.crds.quantity import QuantityError, parse_quantity, to_units, units_per_one
from volcano_py.crds.times import DURATION_PATTERN, parse_duration_s, parse_time_s, time_text

__all__ = [
    "API_DEFAULT", "Column", "Condition", "Count", "CrdInfo", "CrdModel", "CrdObject", "DnsLabel", "DnsName",
    "Duration", "FreeForm", "Int32", "LabelSelector", "LabelSelectorRequirement", "ObjectMeta",
    "OwnerReference", "PositiveDuration", "Quantity", "ResourceList", "Rule", "Time", "unknown_fields",
    "validation_messages",
]  # fmt: skip

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1

# Marks a field whose default the API server writes into the object; other defaults are only read.
API_DEFAULT: Final[dict[str, Any]] = {"x-api-default": True}


@dataclass(frozen=True)
class Column:
    """One column of ``kubectl get``; *priority* 1 shows it with ``-o wide`` only."""

    name: str
    type: str
    json_path: str
    priority: int = 0


@dataclass(frozen=True)
class Rule:
    """A CEL rule for the API server, which says what a validator of the same model says here."""

    rule: str
    message: str


@dataclass(frozen=True)
class CrdInfo:
    """What a CustomResourceDefinition says besides its schema.

    Attributes:
        status_subresource: whether status is written through its own endpoint. No kind has a scale
            endpoint: that needs one number of replicas, which none of them has.
    """

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    cluster_scoped: bool = False
    columns: tuple[Column, ...] = ()
    status_subresource: bool = True

    @property
    def api_version(self) -> str:
        """``group/version``."""
        return f"{self.group}/{self.version}"


class CrdModel(BaseModel):
    """A part of an API object: frozen, camelCase outside, strict about JSON types.

    ``rules`` are checked by the API server (CEL); a validator of the model checks the same here.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="allow", alias_generator=to_camel, populate_by_name=True
    )
    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data

    @model_serializer(mode="wrap")
    def _as_stored(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        for key in self.model_extra or ():
            dumped.pop(key, None)
        for name, field in type(self).model_fields.items():
            if name not in self.model_fields_set and field.json_schema_extra is not API_DEFAULT:
                dumped.pop((field.alias or name) if info.by_alias else name, None)
        return dumped

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        if cls.rules:
            target = handler.resolve_ref_schema(schema)
            target["x-kubernetes-validations"] = [
                {"rule": rule.rule, "message": rule.message} for rule in cls.rules
            ]
        return schema

    def to_manifest(self) -> dict[str, Any]:
        """The object as an API server would store it: known fields that were set, and API defaults."""
        return self.model_dump(by_alias=True)


def unknown_fields(model: CrdModel) -> list[str]:
    """Paths of the fields in *model* that its kind does not have, sorted; each deserves a warning."""
    return sorted(_unknown(model, ""))


def _unknown(value: object, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, CrdModel):
        found.extend(join_path(path, key) for key in value.model_extra or ())
        for name, field in type(value).model_fields.items():
            found.extend(_unknown(getattr(value, name), join_path(path, field.alias or name)))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            found.extend(_unknown(entry, join_path(path, index)))
    elif isinstance(value, dict):
        for key, entry in value.items():
            found.extend(_unknown(entry, join_path(path, key)))
    return found


def _quantity_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f'must be a quantity such as 4, "500m" or "1Gi", not {shown(value)}')
    parse_quantity(value)
    return value if isinstance(value, str) else repr(value)


def _countable(amounts: dict[str, str]) -> dict[str, str]:
    for name, text in amounts.items():
        try:
            negative = to_units(text, units_per_one(name)) < 0
        except QuantityError as error:
            raise field_error(join_path("", name), str(error)) from None
        if negative:
            raise field_error(join_path("", name), f"must not be negative, as {text} is")
    return amounts


def _time(text: str) -> str:
    parse_time_s(text)
    return text


def _duration(text: str) -> str:
    parse_duration_s(text)
    return text


def _not_negative(text: str) -> str:
    if parse_duration_s(text) < 0:
        raise ValueError(f"must not be negative, as {text} is")
    return text


_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
)

Int32 = Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX)]
Count = Annotated[int, Field(ge=0, le=INT32_MAX)]
# Patterns of names are the API server's to check; here only their length is.
DnsName = Annotated[
    str,
    Field(max_length=253),
    WithJsonSchema({"type": "string", "maxLength": 253, "pattern": rf"^{_DNS_LABEL}(\.{_DNS_LABEL})*$"}),
]
DnsLabel = Annotated[
    str,
    Field(max_length=63),
    WithJsonSchema({"type": "string", "maxLength": 63, "pattern": f"^{_DNS_LABEL}$"}),
]
Quantity = Annotated[
    str,
    BeforeValidator(_quantity_text),
    WithJsonSchema({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": _QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    }),
]  # fmt: skip
# Resource name to quantity as written; each is countable in base units and not negative.
ResourceList = Annotated[dict[str, Quantity], AfterValidator(_countable)]
Time = Annotated[
    str,
    BeforeValidator(time_text),
    AfterValidator(_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Duration = Annotated[str, AfterValidator(_duration), WithJsonSchema({"type": "string"})]
PositiveDuration = Annotated[
    str, AfterValidator(_not_negative), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN})
]
# Somebody else's type (pod templates, claims), carried through as it is.
FreeForm = dict[str, Any]


class OwnerReference(CrdModel):
    """Which object owns this one."""

    api_version: str = Field(default="", description="API version of the owner.")
    kind: str = Field(default="", description="Kind of the owner.")
    name: str = Field(default="", description="Name of the owner.")
    uid: str = Field(default="", description="UID of the owner.")
    controller: bool | None = Field(default=None, description="Whether the owner is the managing controller.")
    block_owner_deletion: bool | None = Field(
        default=None, description="Whether the owner stays until this object is gone (foreground deletion)."
    )


class ObjectMeta(CrdModel):
    """Kubernetes' object metadata, as far as anybody here reads it; the rest is carried along."""

    name: str = Field(default="", max_length=253)
    generate_name: str = Field(default="", max_length=253)
    namespace: str = Field(default="", max_length=253)
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: list[OwnerReference] = Field(default_factory=list)
    finalizers: list[str] = Field(default_factory=list)
    self_link: str = ""
    managed_fields: list[FreeForm] = Field(default_factory=list)

    @property
    def created(self) -> float:
        """Creation time in seconds since the epoch; 0 where the object has none."""
        return parse_time_s(self.creation_timestamp) if self.creation_timestamp else 0.0


class LabelSelectorRequirement(CrdModel):
    """One expression of a label selector."""

    key: str = Field(description="Label key.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="How values are compared.")
    values: list[str] = Field(default_factory=list, description="Values of In and NotIn, else empty.")


class LabelSelector(CrdModel):
    """Labels that must match: all of matchLabels and all of matchExpressions; empty matches all."""

    match_labels: dict[str, str] = Field(default_factory=dict, description="Labels with their exact values.")
    match_expressions: list[LabelSelectorRequirement] = Field(
        default_factory=list, description="Expressions over labels."
    )


class Condition(CrdModel):
    """Kubernetes' standard condition."""

    type: str = Field(description="What it is about, in CamelCase.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec it was judged by."
    )
    last_transition_time: Time | None = Field(default=None, description="When status last changed.")
    reason: str = Field(default="", description="Why, in one CamelCase word.")
    message: str = Field(default="", description="Why, for people.")


class CrdObject(CrdModel):
    """A whole API object. Its kind is fixed by the subclass, its name is required."""

    info: ClassVar[CrdInfo]

    api_version: str
    kind: str
    metadata: ObjectMeta = ObjectMeta()

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if not self.metadata.name and not self.metadata.generate_name:
            raise field_error("metadata.name", "is required")
        return self
