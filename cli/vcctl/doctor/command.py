"""``vcctl-py doctor``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from volcano_py.cli.lazy import NearMissGroup
from volcano_py.cli.vcctl.cluster import FAILED, USAGE, Cluster, CommandError, run
from volcano_py.cli.vcctl.doctor.checks import CHECKS, findings
from volcano_py.cli.vcctl.doctor.finding import Finding
from volcano_py.cli.vcctl.doctor.gather import gather
from volcano_py.cli.vcctl.flags import CONNECTION, ONE, Flags, with_flags
from volcano_py.cli.vcctl.live_config import SchedulerConf
from volcano_py.cli.vcctl.tables import counted, out, print_data, say
from volcano_py.crds.messages import did_you_mean


def doctor(
    flags: Flags,
    scheduler_conf: SchedulerConf = None,
    check: Annotated[
        list[str] | None, typer.Option("--check", metavar="NAME", help="Only this check; repeatable.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say which checks there are.")] = False,
) -> None:
    """Find what breaks batch clusters: each finding with its object, the evidence and the fix.

    Nothing is changed. Exit status is 1 if something can't work as it is.

    vcctl-py doctor

    vcctl-py doctor --check gangs --check crds -o json
    """
    if listed:
        for name, (line, _) in CHECKS.items():
            say(f"{name:<16} {line}")
        return

    async def work(cluster: Cluster) -> None:
        names = _known(check or list(CHECKS))
        evidence = await gather(cluster, scheduler_conf)
        found = list(findings(evidence, names))
        errors = sum(one.severity == "error" for one in found)
        summary = {"checks": names, "findings": [one.data() for one in found], "errors": errors}
        if not print_data(flags, summary):
            _tell(found, len(names))
        if errors:
            raise typer.Exit(FAILED)

    run(flags, work)


def _known(names: list[str]) -> list[str]:
    for name in names:
        if name not in CHECKS:
            raise CommandError(
                f"there is no check {name}{did_you_mean(name, CHECKS)}", "see vcctl-py doctor --list", USAGE
            )
    return names


def _tell(found: list[Finding], checks: int) -> None:
    console = out()
    for one in sorted(found, key=lambda one: one.severity):
        style = "bold red" if one.severity == "error" else "bold yellow"
        console.print(Text.assemble((one.severity, style), f" [{one.check}] ", (one.object, "bold")))
        console.print(Text(f"  {one.evidence}"))
        console.print(Text.assemble("  fix: ", (one.fix, "cyan")))
    errors = sum(one.severity == "error" for one in found)
    warnings = len(found) - errors
    if found:
        told = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        console.print(f"{told} from {counted(checks, 'check')}")
    else:
        console.print(Text(f"Nothing found by {counted(checks, 'check')}.", "green"))


app = typer.Typer(cls=NearMissGroup)
app.command("doctor")(with_flags(doctor, (*ONE, *CONNECTION)))
