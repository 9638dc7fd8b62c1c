"""price: the cheaper node first, by a label that says what an hour of it costs."""

from typing import ClassVar

import numpy as np

from volcano_py.crds.schedulerconfig import Arguments
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.points import Scope, Scorer
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.view import NodeView
from volcano_py.scheduler.model.classes import TaskClass
from volcano_py.scheduler.model.resources import Scores


class PricePlugin(Plugin):
    """Score nodes 0 to 100 x weight; no label counts as free, a label that is no price as dearest."""

    name: ClassVar = "price"
    ARGUMENTS: ClassVar = {
        "price.weight": "factor of the score; default 10",
        "price.label": "node label with the hourly price; default example.com/price",
    }

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.weight = arguments.get_float("price.weight", 10.0)
        self.label = arguments.get_str("price.label", "example.com/price")

    def open(self, session: Session) -> None:
        """Hang the scorer; labels are all it looks at, so its scores are kept until nodes change."""
        session.points.node_order.add(self.name, Scorer(self.name, Scope.STATIC, self.score))

    def score(self, klass: TaskClass, view: NodeView) -> Scores:
        """(n,) 100 for a free node, falling to 0 as the price goes up; 50 at a price of 1."""
        codes, values = view.state.nodes.label_codes(self.label)
        prices = np.array([_price(value) for value in values] + [0.0])
        return self.weight * 100 / (1 + prices[codes[view.rows]])


def _price(label: str) -> float:
    """The price a label states; infinite where it is no price, for somebody else wrote the label."""
    try:
        price = float(label)
    except ValueError:
        return np.inf
    return price if price >= 0 else np.inf
