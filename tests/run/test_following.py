"""What of the server the engine reads, by its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config, parse_scheduler_config
from volcano_py.scheduler.run.following import device_config


def configured(*plugins: dict[str, Any]) -> str:
    return device_config(
        parse_scheduler_config({"actions": "allocate", "tiers": [{"plugins": list(plugins)}]})
    )


def test_the_default_configuration_follows_volcanos_configmap() -> None:
    assert device_config(load_scheduler_config(DEFAULT_CONFIG)) == "kube-system/volcano-vgpu-device-config"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "kube-system/volcano-vgpu-device-config"),
        ({"deviceshare.KnownGeometriesCMName": "hami-scheduler-device"}, "kube-system/hami-scheduler-device"),
        ({"deviceshare.KnownGeometriesCMNamespace": "ml"}, "ml/volcano-vgpu-device-config"),
    ],
)
def test_the_arguments_name_it(arguments: dict[str, str], name: str) -> None:
    assert configured({"name": "gang"}, {"name": "deviceshare", "arguments": arguments}) == name


def test_without_cards_there_is_none() -> None:
    assert configured({"name": "gang"}) == ""
