"""``vcctl-py``: what people ask of a batch cluster and do to it, noun by noun.

Commands are imported when they are called, so that ``--help`` and a typo answer at once. The same program is
installed as a plugin of kubectl (``kubectl volcano-py ...``).
"""

from __future__ import annotations

from typing import ClassVar, Final

import typer

from volcano_py.cli.lazy import LazyGroup
from volcano_py.cli.vcctl.flags import top_flags

_OBJECTS, _QUESTIONS = "Objects", "Questions"
COMMANDS: Final = {
    "queue": ("volcano_py.cli.vcctl.queue:app", "Queues: who is owed what.", _OBJECTS),
    "podgroup": (
        "volcano_py.cli.vcctl.podgroup:app",
        "PodGroups: gangs, and their place in the line.",
        _OBJECTS,
    ),
    "job": ("volcano_py.cli.vcctl.job:app", "Jobs of batch.volcano.sh.", _OBJECTS),
    "pod": ("volcano_py.cli.vcctl.pod:app", "Pods by queue and job.", _OBJECTS),
    "jobflow": ("volcano_py.cli.vcctl.flows:jobflow", "Jobs that wait for each other.", _OBJECTS),
    "jobtemplate": ("volcano_py.cli.vcctl.flows:jobtemplate", "Jobs that flows are made of.", _OBJECTS),
    "explain": (
        "volcano_py.cli.vcctl.explain.command:app",
        "Why a pod, PodGroup or queue is as it is, in numbers.",
        _QUESTIONS,
    ),
    "plan": (
        "volcano_py.cli.vcctl.live_plan:app",
        "What would become of a manifest that is not submitted yet.",
        _QUESTIONS,
    ),
    "top": ("volcano_py.cli.vcctl.top:app", "What queues, nodes and cards hold.", _QUESTIONS),
    "card": ("volcano_py.cli.vcctl.card:app", "Who sits on which card of a node.", _QUESTIONS),
    "doctor": (
        "volcano_py.cli.vcctl.doctor.command:app",
        "What is wrong with the cluster, and the fix.",
        _QUESTIONS,
    ),
    "version": (
        "volcano_py.cli.vcctl.version:app",
        "Versions of this program and of the server.",
        _QUESTIONS,
    ),
}
"""Name -> (module:app, one line of help, heading)."""


class Nouns(LazyGroup):
    """The nouns and questions of ``vcctl-py``."""

    commands_by_name: ClassVar = {name: (where, line) for name, (where, line, _) in COMMANDS.items()}
    panels: ClassVar = {name: panel for name, (_, _, panel) in COMMANDS.items()}
    spellings: ClassVar = {
        "q": "queue", "queues": "queue", "pg": "podgroup", "podgroups": "podgroup", "vcjob": "job",
        "vj": "job", "jobs": "job", "po": "pod", "pods": "pod", "jf": "jobflow", "jobflows": "jobflow",
        "jt": "jobtemplate", "jobtemplates": "jobtemplate", "cards": "card",
    }  # fmt: skip


app = typer.Typer(cls=Nouns, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
app.callback(
    help="""vcctl-py: queues, gangs and jobs of a cluster, and why they are as they are.

    Short names work as in kubectl: q, pg, vj, po.

    [bold]vcctl-py queue list[/bold]

    [bold]vcctl-py explain pod worker-0 -n ml[/bold]

    [bold]vcctl-py doctor[/bold]
    """
)(top_flags)


def main() -> None:
    """Entry point of the console scripts."""
    app()


if __name__ == "__main__":
    main()
