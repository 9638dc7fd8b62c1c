"""Which of several API versions comes first."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"v(?P<major>\d+)(?:(?P<level>alpha|beta)(?P<minor>\d+))?")
_LEVELS = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, str]:
    """A sort key, most preferred first: v2, v1, v1beta2, v1beta1, v1alpha1, then other names by alphabet.

    Source: "Version priority" in the Kubernetes documentation of custom resources.
    """
    match = _SHAPE.fullmatch(version)
    if match is None:
        return 9, 0, 0, version
    return _LEVELS[match["level"]], -int(match["major"]), -int(match["minor"] or 0), ""
