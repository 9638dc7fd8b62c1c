"""binpack: the fuller a node would be in what the pod asks, the better.

Score = weight x 100 x sum of w x (used + asked) / allocatable over the resources that have a weight w and
are asked, divided by the sum of their weights; 0 where any of them would not fit. Resources that are not
listed don't count, cards included: ``binpack.resources: nvidia.com/gpu`` makes them count.

Source of the formula: Volcano's binpack plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.model.kept import kept

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session
    from volcano_py.scheduler.framework.view import NodeView
    from volcano_py.scheduler.model.classes import TaskClass
    from volcano_py.scheduler.model.resources import Scores

_RESOURCES: Final = "binpack.resources"


class BinpackPlugin(Plugin):
    """Fill nodes before opening new ones."""

    name = "binpack"
    ARGUMENTS: ClassVar = {
        "binpack.weight": "factor of the whole score; 1",
        "binpack.cpu": "weight of cpu; 1",
        "binpack.memory": "weight of memory; 1",
        _RESOURCES: "further resources that count, with commas between them; none",
        f"{_RESOURCES}.*": "weight of one of the further resources; 1",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.weight = arguments.get_int("binpack.weight", 1)
        self.weights = {
            "cpu": arguments.get_int("binpack.cpu", 1),
            "memory": arguments.get_int("binpack.memory", 1),
        }
        for name in arguments.get_list(_RESOURCES, []):
            self.weights[name] = arguments.get_int(f"{_RESOURCES}.{name}", 1)
        self._check(arguments)
        self.scorer = Scorer("binpack", Scope.AMOUNTS, self.score, self.applies)

    def open(self, session: Session) -> None:
        """Hang the score."""
        if self.weight:
            session.points.node_order.add(self.name, self.scorer)

    def score(self, klass: TaskClass, view: NodeView) -> Scores:
        """(n,) how full the nodes of *view* would be."""
        columns = view.state.vocabulary.columns
        counted = self._counted(klass)
        total = np.zeros(len(view.rows))
        fits = np.ones(len(view.rows), np.bool_)
        with np.errstate(divide="ignore"):  # a node without the resource does not fit
            for name, asked, weight in counted:
                size = view.allocatable[:, columns[name]]
                filled = view.used[:, columns[name]] + asked
                fits &= filled <= size
                full = filled / size
                total += full if weight == 1 else full * weight
        total *= self.weight * 100.0 / sum(weight for _, _, weight in counted)
        if not fits.all():
            total[~fits] = 0.0
        return total

    def applies(self, klass: TaskClass) -> bool:
        """Whether the class asks for anything that counts."""
        return bool(self._counted(klass))

    def _counted(self, klass: TaskClass) -> list[tuple[str, int, int]]:
        """Name, amount asked and weight of each resource that counts for *klass*."""

        def compute() -> list[tuple[str, int, int]]:
            asked = dict(klass.signature.request)
            weights = self.weights.items()
            return [(name, asked[name], weight) for name, weight in weights if weight and asked.get(name)]

        return kept(klass.memo, self.name, self, compute)

    def _check(self, arguments: Arguments) -> None:
        """Weights must not be negative, and only listed resources may have one."""
        for key, value in (("binpack.weight", self.weight), *self.weights.items()):
            if value < 0:
                raise ConfigError(
                    f"{arguments.owner}: the weight of {key!r} must not be negative, as {value} is"
                )
        for key in arguments:
            name = key.removeprefix(f"{_RESOURCES}.")
            if name != key and name not in self.weights:
                raise ConfigError(
                    f"{arguments.owner}: argument {key!r} weighs a resource that {_RESOURCES!r} does not list"
                )
