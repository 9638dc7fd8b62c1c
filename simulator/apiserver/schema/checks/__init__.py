"""What the real server asks of built-in kinds, as far as schedulers and their users meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from volcano_py.simulator.apiserver.schema.kinds import Cause, Document

# Takes the new object, what is stored (None on create) and the subresource ("" for none).
Check = Callable[[Document, Document | None, str], Iterable[Cause]]

CHECKS: dict[tuple[str, str], Check] = {}
