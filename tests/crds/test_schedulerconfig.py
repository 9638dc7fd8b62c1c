"""A configuration is read whole or refused with every fault named."""

import pytest

from volcano_py.crds.schedulerconfig import (
    DEFAULT_CONFIG,
    FLAGS,
    SCENARIO_CONFIG,
    Arguments,
    ConfigError,
    load_scheduler_config,
    parse_scheduler_config,
)

PLUGINS = ["binpack", "capacity", "gang", "priority"]
ACTIONS = ["allocate", "backfill", "enqueue"]


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_scheduler_config(text, PLUGINS, ACTIONS)
    return caught.value.messages


def test_default() -> None:
    config = load_scheduler_config(DEFAULT_CONFIG)
    assert config.actions == ("enqueue", "allocate", "preempt", "reclaim", "backfill")
    assert [[plugin.name for plugin in tier.plugins] for tier in config.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack", "deviceshare"],
    ]
    drf = config.plugin("drf")
    assert drf is not None
    assert not drf.enabled("enablePreemptable")
    assert drf.enabled("enableReclaimable")


def test_scenario_default() -> None:
    config = load_scheduler_config(SCENARIO_CONFIG)
    assert config.actions == ("enqueue", "allocate", "backfill")
    assert [plugin.name for plugin in config.plugins] == [
        "priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder",
    ]  # fmt: skip


def test_unset_flags_are_on_but_two() -> None:
    config = parse_scheduler_config({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]})
    gang = config.plugin("gang")
    assert gang is not None
    assert {flag for flag in FLAGS if not gang.enabled(flag)} == {"enableHierarchy", "enabledClusterOrder"}


def test_everything_the_format_has() -> None:
    config = load_scheduler_config(
        """
        actions: "enqueue,allocate , backfill"
        tiers:
        - plugins:
          - name: gang
            enableJobOrder: "false"
            enabledOverused: no
          - name: binpack
            arguments: {binpack.weight: 10, binpack.resources: "nvidia.com/gpu, cpu"}
        configurations:
        - name: allocate
          arguments: {predicateErrorCacheEnable: "false"}
        metrics: {type: prometheus, address: "http://p:9090", interval: 30s, tls.insecureSkipVerify: true}
        """,
        PLUGINS,
        ACTIONS,
    )
    gang, binpack = config.plugins
    assert config.actions == ("enqueue", "allocate", "backfill")
    assert not gang.enabled("enableJobOrder")
    assert not gang.enabled("enabledOverused")
    assert binpack.arguments.get_int("binpack.weight", 1) == 10
    assert binpack.arguments.get_list("binpack.resources", []) == ["nvidia.com/gpu", "cpu"]
    assert not config.action_arguments("allocate").get_bool("predicateErrorCacheEnable", True)
    assert len(config.action_arguments("backfill")) == 0
    assert config.metrics["tls.insecureSkipVerify"] == "true"
    assert config.plugin("capacity") is None


def test_all_faults_at_once_each_with_key_value_and_known_names() -> None:
    messages = faults(
        """
        actions: "enqueue, alocate"
        teirs: []
        tiers:
        - plugins:
          - name: gagn
          - {name: gang, enableOverused: true, enableJobOrder: maybe}
          - {name: binpack, arguments: 3}
          - {arguments: {}}
        - plugins: gang
        configurations: [{name: reclaim}]
        metrics: {type: promtheus}
        """
    )
    expected = [
        'teirs: unknown key (its value is a list) (did you mean "tiers"?); known are actions, tiers,',
        'actions: unknown action "alocate" (did you mean "allocate"?); known are allocate, backfill, enqueue',
        'tiers[0].plugins[0].name: unknown plugin "gagn" (did you mean "gang"?); known are binpack,',
        'tiers[0].plugins[1].enableOverused: unknown key (its value is true) (did you mean "enabledOve',
        'tiers[0].plugins[1].enableJobOrder: must be true or false, not "maybe"',
        "tiers[0].plugins[2].arguments: must be a mapping, not 3",
        "tiers[0].plugins[3].name: must be the name of the plugin, not null",
        'tiers[1].plugins: must be a list, not "gang"',
        'configurations[0].name: unknown action "reclaim"; known are allocate, backfill, enqueue',
        'metrics.type: unknown "promtheus" (did you mean "prometheus"?); known are prometheus,',
    ]
    assert len(messages) == len(expected)
    for message, beginning in zip(messages, expected, strict=True):
        assert message.startswith(beginning)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the configuration: must be a mapping, not null"),
        ("- a", "the configuration: must be a mapping, not a list"),
        ("tiers: []", 'actions: is required: names with commas, such as "enqueue, allocate, backfill"'),
        ("actions: [allocate]", "not a list"),
        ("actions: allocate\n1: x", "1: unknown key"),
        ("actions: 'a", "the configuration is not YAML"),
        ("actions: 2001-13-45", "the configuration is not YAML"),
        ("actions: 0x_", "the configuration is not YAML"),
        ("[" * 5000, "nested too deep"),
        (
            "{actions: allocate, tiers: [{plugins: [{name: gang}]}, {plugins: [{name: gang}]}]}",
            'tiers: plugin "gang" is named twice',
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert any(message in fault for fault in faults(text))


def test_an_action_may_be_named_twice() -> None:
    config = load_scheduler_config("actions: allocate, backfill, allocate", PLUGINS, ACTIONS)
    assert config.actions == ("allocate", "backfill", "allocate")


ARGUMENTS = Arguments(
    "plugin p",
    {"int": 3, "float": 1.5, "flag": True, "words": ["a", "b"], "text": "x", "digits": "3",
     "no": "False", "nan": float("nan")},
)  # fmt: skip


def test_arguments_by_type() -> None:
    assert ARGUMENTS.get_int("int", 0) == 3
    assert ARGUMENTS.get_float("int", 0) == 3.0
    assert ARGUMENTS.get_float("float", 0) == 1.5
    assert ARGUMENTS.get_bool("flag", False) is True
    assert ARGUMENTS.get_bool("no", True) is False
    assert ARGUMENTS.get_str("text", "") == "x"
    assert ARGUMENTS.get_list("words", []) == ["a", "b"]
    assert dict(ARGUMENTS)["digits"] == "3"


def test_absent_arguments_have_their_default() -> None:
    empty = Arguments("plugin p")
    assert empty.get_int("k", 7) == 7
    assert empty.get_float("k", 7.5) == 7.5
    assert empty.get_bool("k", True) is True
    assert empty.get_str("k", "d") == "d"
    assert empty.get_list("k", ["d"]) == ["d"]


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        ("int", "digits", 'plugin p: argument "digits" must be a whole number, not "3" (drop the quotes)'),
        ("int", "flag", "must be a whole number, not true"),
        ("int", "float", "must be a whole number, not 1.5"),
        ("float", "digits", "(drop the quotes)"),
        ("float", "text", 'must be a number, not "x"'),
        ("float", "nan", "must be a number, not nan"),
        ("float", "flag", "must be a number, not true"),
        ("bool", "int", "must be true or false, not 3"),
        ("bool", "text", "must be true or false"),
        ("str", "int", "must be a text, not 3"),
        ("list", "int", "must be a list of texts, not 3"),
    ],
)
def test_arguments_of_another_type(kind: str, key: str, message: str) -> None:
    defaults = {"int": 0, "float": 0.0, "bool": False, "str": "", "list": []}
    with pytest.raises(ConfigError) as caught:
        getattr(ARGUMENTS, f"get_{kind}")(key, defaults[kind])
    assert message in str(caught.value)


def test_unknown_arguments() -> None:
    arguments = Arguments(
        "plugin binpack", {"binpack.wieght": 3, "binpack.resources.gpu": 1, "binpack.cpu": 1}
    )
    assert arguments.unknown(["binpack.weight", "binpack.cpu", "binpack.resources.*"]) == [
        'plugin binpack: unknown argument "binpack.wieght" (its value is 3) '
        '(did you mean "binpack.weight"?); '
        "it knows binpack.weight, binpack.cpu, binpack.resources.*"
    ]
