"""One API server for the time of a command, and what a command says when something goes wrong."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import typer

from volcano_py.cli.vcctl.flags import Flags
from volcano_py.client.access import AccessError
from volcano_py.client.api import Api, ApiError, Unreachable, retry_wait_s
from volcano_py.client.resources import RESOURCES, Resource
from volcano_py.crds.messages import did_you_mean

Document = dict[str, Any]

FAILED: Final = 1
USAGE: Final = 2
PAGE: Final = 500
"""Objects asked for at once."""
READ_S: Final = 120.0
"""How long one page of a list may take."""
BUSY_TRIES: Final = 6
"""How often a busy server is asked: one whose CRDs are new is busy for a second or two."""
AGENT: Final = "vcctl-py"
STRICT: Final = "Strict"


class CommandError(Exception):
    """What was asked can't be done; *hint* says what to do next, *code* is the exit status."""

    def __init__(self, message: str, hint: str = "", code: int = FAILED) -> None:
        super().__init__(message)
        self.hint, self.code = hint, code


class Cluster:
    """The server of one command.

    Attributes:
        api: the open connection.
        namespace: the one that was named, else that of the context.
        flags: as the command was called.
    """

    def __init__(self, api: Api, flags: Flags) -> None:
        self.api, self.flags = api, flags
        self.namespace = flags.namespace or api.namespace

    @property
    def listed(self) -> str | None:
        """The namespace that lists look at; None for all."""
        return None if self.flags.all_namespaces else self.namespace

    async def every(self, kind: str, namespace: str | None = None, **query: str) -> list[Document]:
        """All objects of *kind*, each saying what it is. Raises ``CommandError`` where it is not served."""
        resource = RESOURCES[kind]
        found: list[Document] = []
        more = ""
        while True:
            page = {"limit": str(PAGE), **query, **({"continue": more} if more else {})}
            answer = await self._list(resource, namespace, page)
            head = {"apiVersion": resource.api_version, "kind": kind}
            found += [{**head, **item} for item in answer.get("items") or []]
            more = (answer.get("metadata") or {}).get("continue") or ""
            if not more:
                return found

    async def get(self, kind: str, name: str) -> Document:
        """One object. Raises ``CommandError`` where there is none, with the name it may have been."""
        resource = RESOURCES[kind]
        space = self.namespace if resource.namespaced else None
        try:
            found = await self.read(resource.path(space, name))
        except ApiError as error:
            if error.is_missing:
                raise await self._missing(kind, name) from error
            raise
        return {"apiVersion": resource.api_version, "kind": kind, **found}

    async def find(self, kind: str, name: str, namespace: str | None = None) -> Document | None:
        """One object, or None where there is none."""
        resource = RESOURCES[kind]
        try:
            found: Document = await self.read(
                resource.path((namespace or self.namespace) if resource.namespaced else None, name)
            )
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return found

    async def read(self, path: str, **query: str) -> Any:
        """What is at *path*; a server that is busy for a moment is asked again."""
        return msgspec.json.decode(await self.read_raw(path, **query))

    async def read_raw(self, path: str, **query: str) -> bytes:
        """As ``read``, undecoded."""
        for attempt in range(1, BUSY_TRIES):
            try:
                return await self.api.call("GET", path, query=query, timeout_s=READ_S)
            except ApiError as error:
                if not error.is_busy:
                    raise
                await asyncio.sleep(retry_wait_s(attempt, error))
        return await self.api.call("GET", path, query=query, timeout_s=READ_S)

    async def create(self, kind: str, body: Document) -> Document:
        """Make an object; a field that the server does not know is refused, not dropped."""
        resource = RESOURCES[kind]
        space = body["metadata"].get("namespace") or self.namespace
        path = resource.path(space if resource.namespaced else None)
        made: Document = await self.api.post(path, body, fieldValidation=STRICT)
        return made

    async def change(self, kind: str, name: str, patch: Document) -> Document:
        """Merge *patch* into an object; a field that the server does not know is refused, not dropped."""
        resource = RESOURCES[kind]
        space = self.namespace if resource.namespaced else None
        path = resource.path(space, name)
        changed: Document = await self.api.patch(path, patch, fieldValidation=STRICT)
        return changed

    async def remove(self, kind: str, name: str, body: Document | None = None) -> None:
        """Delete an object; *body* holds the options, such as preconditions."""
        resource = RESOURCES[kind]
        space = self.namespace if resource.namespaced else None
        await self.api.delete(resource.path(space, name), body)

    async def _list(self, resource: Resource, namespace: str | None, query: Mapping[str, str]) -> Any:
        try:
            return await self.read(resource.path(namespace), **query)
        except ApiError as error:
            if error.is_missing:
                raise CommandError(
                    f"the server has no {resource.plural}.{resource.group or 'core'}",
                    "install the CRDs first: kubectl apply -f crds/yaml"
                    if "volcano" in resource.group
                    else "",
                ) from error
            raise

    async def _missing(self, kind: str, name: str) -> CommandError:
        resource = RESOURCES[kind]
        space = self.namespace if resource.namespaced else None
        known = [item["metadata"]["name"] for item in await self.every(kind, space)]
        where = f" in namespace {space}" if space else ""
        return CommandError(f"{kind} {name} does not exist{where}{did_you_mean(name, known)}", _listed(known))


def _listed(known: list[str]) -> str:
    if not known:
        return "there is none"
    if len(known) == 1:
        return f"there is {known[0]}"
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    return f"there are {', '.join(sorted(known)[:8])}{more}"


def run(flags: Flags, work: Callable[[Cluster], Awaitable[None]]) -> None:
    """Do *work* on the cluster that *flags* name; errors end the command with a sentence and a status."""
    try:
        asyncio.run(_connected(flags, work))
    except CommandError as refused:
        fail(str(refused), refused.hint, refused.code)
    except AccessError as error:
        fail(str(error), code=USAGE)
    except Unreachable as error:
        fail(
            f"the API server doesn't answer: {error}",
            "check --kubeconfig and --context, or the server itself",
        )
    except ApiError as error:
        fail(f"the API server refused: {error.message or error.reason}", _advice(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(message: str, hint: str = "", code: int = FAILED) -> None:
    """End the command: what went wrong, and what to do next."""
    sys.stderr.write(f"error: {message}\n" + (f"  {hint}\n" if hint else ""))
    raise typer.Exit(code)


async def _connected(flags: Flags, work: Callable[[Cluster], Awaitable[None]]) -> None:
    api = await Api.connect(flags.kubeconfig, flags.context, agent=AGENT)
    if flags.master:
        api.server = flags.master.rstrip("/")
    try:
        await work(Cluster(api, flags))
    finally:
        await api.close()


def _advice(error: ApiError) -> str:
    if "unknown field" in error.message:
        return "where that is no mistake, the server's CRD is older: `vcctl-py doctor --check crds`"
    if error.status == 401:
        return "your credentials are not valid (any more): log in again"
    if error.status == 403:
        return "you lack a right; `vcctl-py doctor` shows which rights the components need"
    if error.is_conflict:
        return "somebody else changed the object meanwhile: try again"
    if error.is_busy:
        return "the server is busy: try again in a moment"
    return ""
