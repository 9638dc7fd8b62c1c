"""Transcripts that both servers must answer alike, by name."""

from __future__ import annotations

from tests.apiserver.scripts_kinds import CUSTOM, REST, WORKLOADS
from tests.apiserver.scripts_objects import OWNED, PATCHES, PLAIN, REPLACED
from tests.apiserver.scripts_pods import APPLIED, APPLIED_PODS, POD_LIFE, STRATEGIC_MERGES

SCRIPTS = {
    "plain": PLAIN,
    "patches": PATCHES,
    "owned": OWNED,
    "replaced": REPLACED,
    "pod-life": POD_LIFE,
    "applied": APPLIED,
    "applied-pods": APPLIED_PODS,
    "strategic": STRATEGIC_MERGES,
    "workloads": WORKLOADS,
    "rest": REST,
    "custom": CUSTOM,
}
