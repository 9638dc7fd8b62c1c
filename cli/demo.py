"""``volcano-py demo``: a gang, shared cards, a borrow and a reclaim on a cluster of its own, in a minute.

It starts a playground, brings in the manifests of ``examples/playground`` one after the other, and shows what
became of them from the API server's own objects and events.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule

from volcano_py.cli import demo_views as views
from volcano_py.client.api import RESOURCES, Api
from volcano_py.simulator.kubelet.nodes import CardShape, NodeShape
from volcano_py.simulator.playground.playground import Playground, PlaygroundError, Wishes
from volcano_py.simulator.workloads.owners import JOB

Document = dict[str, Any]
NODES: Final = 2
CARDS: Final = CardShape(count=4)
PATIENCE_S: Final = 120.0


def demo(
    examples: Annotated[Path, typer.Option("--examples", help="Folder with the example manifests.")] = Path(
        "examples"
    ),
    trace: Annotated[
        bool, typer.Option("--trace", help="Instead, without a server: a plan, and a production trace.")
    ] = False,
    to: Annotated[Path, typer.Option("--to", help="With --trace: folder for the pictures.")] = Path("build"),
) -> None:
    """Two teams share eight cards: what starts, what waits, who gives way for whom, and why."""
    if not (examples / "playground").is_dir():
        where = examples / "playground"
        sys.stderr.write(f"error: no folder {where}; run this in the checkout, or say --examples\n")
        raise typer.Exit(2)
    console = Console(highlight=False)
    if trace:
        from volcano_py.cli.demo_trace import show_trace  # noqa: PLC0415  # matplotlib takes its time

        show_trace(examples, to, console)
        return
    try:
        asyncio.run(_run(examples / "playground", console))
    except (PlaygroundError, NotSoError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(1) from None
    _next_steps(console)


class NotSoError(Exception):
    """What the demo waited for did not come."""


async def _run(manifests: Path, console: Console) -> None:
    """Up, the chapters, down; a signal ends it early and cleanly."""
    console.print(Rule("A cluster on this machine"))
    play = Playground(Wishes(NODES, NodeShape(cards=CARDS)), lambda line: console.print(f"  {escape(line)}"))
    work = asyncio.ensure_future(_play(play, manifests, console))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        console.print("interrupted")
        raise typer.Exit(130) from None


async def _play(play: Playground, manifests: Path, console: Console) -> None:
    await play.up()
    keeping = asyncio.ensure_future(play.watch())
    try:
        async with await Api.connect(str(play.kubeconfig)) as api:
            await Story(api, manifests, console).tell()
    finally:
        keeping.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
        finally:
            await play.down()
    console.print("the playground has stopped")


class Story:
    """The chapters, on one cluster."""

    def __init__(self, api: Api, manifests: Path, console: Console) -> None:
        self._api = api
        self._manifests = manifests
        self._console = console

    async def tell(self) -> None:
        """All of it. Raises ``NotSoError`` where something does not come about."""
        await self._chapter("Two queues, half of the cards each", "queues.yaml")
        await self._until(lambda: self._has("Queue", 4), "the queues")
        await self._gang()
        await self._slices()
        await self._borrow()
        await self._reclaim()

    async def _gang(self) -> None:
        await self._chapter("A gang: three workers start together or not at all", "gang.yaml")
        await self._until(lambda: self._runs("train", 3), "three running workers")
        self._show(views.pod_table(await self._pods("train")))
        await self._show_cards()

    async def _slices(self) -> None:
        await self._chapter("Slices: four servers share one card", "slices.yaml")
        await self._until(lambda: self._runs("chat", 4), "four running servers")
        self._show(views.pod_table(await self._pods("chat")))
        await self._show_cards()

    async def _borrow(self) -> None:
        await self._chapter("A borrow: research sweeps on every card that is idle", "borrow.yaml")
        await self._until(lambda: self._runs("sweep", 4), "four running trials")
        await self._until(self._others_have_reasons, "the reasons of the others")
        await self._show_cards()
        self._show(views.waiting_list(await self._pods("sweep")))
        await self._show_queues()

    async def _reclaim(self) -> None:
        await self._chapter("A reclaim: product wants three cards of its own", "reclaim.yaml")
        await self._until(lambda: self._runs("rank", 3), "three running rankers")
        await self._show_cards()
        await self._until(self._evictions_are_told, "events of the evictions")
        self._show(views.eviction_table(await self._evictions()))
        await self._until(self._others_have_reasons, "the reasons of those who wait again")
        self._show(views.waiting_list(await self._pods("sweep")))
        await self._show_queues()

    async def _show_cards(self) -> None:
        pods = await self._list("Pod")
        self._show(views.card_picture(pods, NODES, CARDS.count, CARDS.memory_mib))

    async def _show_queues(self) -> None:
        await self._until(self._figures_agree, "figures of the queues")
        total = NODES * CARDS.count * CARDS.memory_mib
        self._show(views.queue_table(await self._list("Queue"), total, CARDS.memory_mib))

    # -- what it is made of ---------------------------------------------------------------------

    async def _chapter(self, title: str, file: str) -> None:
        path = self._manifests / file
        self._console.print(Rule(title))
        self._console.print(f"kubectl apply -f {path}", style="dim")
        for document in yaml.safe_load_all(path.read_text()):
            await self._apply(document)

    async def _apply(self, document: Document) -> None:
        kind, meta = document["kind"], document["metadata"]
        resource = JOB if document["apiVersion"] == JOB.api_version else RESOURCES[kind]
        path = resource.path(meta.get("namespace"), meta["name"])
        await self._api.patch(path, document, kind="apply", fieldManager="volcano-py-demo", force="true")

    async def _list(self, kind: str) -> list[Document]:
        items: list[Document] = (await self._api.get(RESOURCES[kind].path()))["items"]
        return items

    async def _pods(self, prefix: str) -> list[Document]:
        return [pod for pod in await self._list("Pod") if pod["metadata"]["name"].startswith(f"{prefix}-")]

    async def _has(self, kind: str, count: int) -> bool:
        return len(await self._list(kind)) >= count

    async def _runs(self, prefix: str, count: int) -> bool:
        phases = [str(pod["status"]["phase"]) for pod in await self._pods(prefix)]
        return phases.count("Running") >= count

    async def _evictions(self) -> list[Document]:
        return [event for event in await self._list("Event") if _evicts_a_pod(event)]

    async def _evictions_are_told(self) -> bool:
        """Whether each of the three cards was given back by somebody who says so."""
        return len(await self._evictions()) >= 3

    async def _others_have_reasons(self) -> bool:
        waiting = [pod for pod in await self._pods("sweep") if not pod["spec"].get("nodeName")]
        return bool(waiting) and all(map(views.refusal_of, waiting))

    async def _figures_agree(self) -> bool:
        """Whether the queues say of cards what the pods hold; their statuses follow a little later."""
        held: Counter[str] = Counter()
        for pod in filter(views.holds_cards, await self._list("Pod")):
            # Each team's namespace is called as its queue.
            held[pod["metadata"]["namespace"]] += sum(int(mib) for _, mib, _ in views.slices_of(pod))
        queues = {queue["metadata"]["name"]: queue for queue in await self._list("Queue")}
        return all(views.card_mib(queues[name]) == amount for name, amount in held.items())

    async def _until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not await holds():
            if time.monotonic() > deadline:
                raise NotSoError(f"no {what} after {PATIENCE_S:.0f} s")
            await asyncio.sleep(0.1)

    def _show(self, body: Any) -> None:
        self._console.print(Padding(body, (0, 0, 1, 2), expand=False))


def _evicts_a_pod(event: Document) -> bool:
    return bool(event["reason"] == "Evict" and event["involvedObject"]["kind"] == "Pod")


def _next_steps(console: Console) -> None:
    console.print(Rule("Next"))
    console.print("  make playground                     such a cluster, for you and kubectl")
    console.print("  docs/first-ten-minutes.md           what to try in it")
    console.print("  .venv/bin/volcano-py demo --trace   without a server: a plan, and a trace")
    console.print("  .venv/bin/volcano-py plugins        policies and their arguments")
