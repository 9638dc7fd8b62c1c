"""The order in which a manifest lists its wishes has no meaning: any order is one value."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.model.kube.manifests import asking, pod
from volcano_py.scheduler.model.kube.podspec import pod_constraints

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spread(key: str, selector: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}


words = st.sampled_from(["a", "b", "c"])
selectors = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(words, words, max_size=2),
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {"key": words, "operator": st.just("In"), "values": st.lists(words, min_size=1)}
            ),
            max_size=2,
        ),
    },
)
pod_terms = st.fixed_dictionaries(
    {"topologyKey": words, "labelSelector": selectors},
    optional={
        "namespaces": st.lists(words, max_size=2),
        "namespaceSelector": selectors,
        "matchLabelKeys": st.lists(words, max_size=2),
        "mismatchLabelKeys": st.lists(words, max_size=2),
    },
)
weighted_terms = st.fixed_dictionaries({"weight": st.integers(1, 3), "podAffinityTerm": pod_terms})
sides = st.fixed_dictionaries(
    {REQUIRED: st.lists(pod_terms, max_size=3), PREFERRED: st.lists(weighted_terms, max_size=3)}
)
node_terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            st.fixed_dictionaries({"key": words, "operator": st.just("Exists")}), max_size=2
        )
    }
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(words, words),
        "tolerations": st.lists(
            st.fixed_dictionaries({"key": words, "operator": st.sampled_from(["Equal", "Exists"])}),
            max_size=3,
        ),
        "affinity": st.fixed_dictionaries(
            {},
            optional={
                "podAffinity": sides,
                "podAntiAffinity": sides,
                "nodeAffinity": st.fixed_dictionaries(
                    {
                        REQUIRED: st.fixed_dictionaries(
                            {"nodeSelectorTerms": st.lists(node_terms, max_size=3)}
                        ),
                        PREFERRED: st.lists(
                            st.fixed_dictionaries({"weight": st.integers(1, 3), "preference": node_terms}),
                            max_size=3,
                        ),
                    }
                ),
            },
        ),
        "topologySpreadConstraints": st.lists(
            st.builds(spread, words, selectors),
            max_size=3,
        ),
        "volumes": st.lists(
            st.builds(
                lambda name, mode: {
                    "name": name,
                    "persistentVolumeClaim": {"claimName": name, "readOnly": mode},
                },
                words,
                st.booleans(),
            ),
            max_size=3,
        ),
    },
)


def reordered(value: Any, random: Any) -> Any:
    """*value* with every list and map in another order; none in these specs has a meaning."""
    if isinstance(value, dict):
        items = [(key, reordered(item, random)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        items = [reordered(item, random) for item in value]
        random.shuffle(items)
        return items
    return value


@given(specs, st.dictionaries(words, words), st.randoms(use_true_random=False))
def test_order_has_no_meaning(spec: dict[str, Any], labels: dict[str, str], random: Any) -> None:
    one = pod_constraints(pod(asking(cpu=1), labels=labels, **copy.deepcopy(spec)))
    two = pod_constraints(pod(asking(cpu=9), labels=labels, name="q", **reordered(spec, random)))
    assert one == two
    assert hash(one) == hash(two)
    assert one is two
