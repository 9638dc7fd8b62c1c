"""kopf, as far as it is used: it watches the kinds and hands each event on. It writes nothing anywhere.

Handlers of raw events need no finalizers, annotations or memory of what was handled. What kopf would keep or
copy for its other kinds of handlers is switched off: at 50,000 pods that is most of its time and memory. It
says nothing when it lists a kind again, so that is seen from its requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
import kopf

from volcano_py.client.access import Access
from volcano_py.client.api import RESOURCES
from volcano_py.controllers.observed import KINDS

__all__ = ["Watch"]

Event = Callable[[str, str | None, Mapping[str, Any]], None]
_PATHS: Final = {RESOURCES[kind].path(): kind for kind in KINDS}

_PAGE: Final = 500
# The worker of an object ends so long after its last event; kopf's five seconds keep 50,000 alive at once.
_IDLE_S: Final = 0.05
_RETRIES_S: Final = (0.5, 1.0, 2.0, 4.0)


class _NoCopy(kopf.DiffBaseStorage):
    """Compares nothing: raw events are taken as they come."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        """Nothing is kept."""


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress: there are no steps that could be interrupted."""

    def fetch(self, **_: Any) -> kopf.ProgressRecord | None:
        return None

    def store(self, **_: Any) -> None:
        """Nothing is kept."""

    def purge(self, **_: Any) -> None:
        """Nothing is kept."""

    def touch(self, **_: Any) -> None:
        """Nothing is kept."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class Watch:
    """Watches of all kinds, from a list on, until cancelled or broken."""

    def __init__(
        self,
        event: Event,
        listed: Callable[[str], None],
        pod_selector: str,
        kubeconfig: str | None,
        context: str | None,
    ) -> None:
        """Set it up.

        Args:
            event: told kind, what happened, and the document.
            listed: told of each kind that is listed.
            pod_selector: a field selector.
            kubeconfig: as for :class:`Access`, and so is *context*.
            context: of the kubeconfig.
        """
        self._event, self._listed, self._pod_selector = event, listed, pod_selector
        self._kubeconfig, self._context = kubeconfig, context

    async def run(self, on_started: Callable[[], None]) -> None:
        """Watch until cancelled. Raises what kopf can't get over; what was seen must then be listed anew.

        Args:
            on_started: called when kopf has taken over the signals of the process, to take them back.
        """
        others = asyncio.all_tasks()
        tasks = await kopf.spawn_tasks(
            registry=self._registry(), settings=self._settings(), clusterwide=True, standalone=True
        )
        on_started()
        await kopf.run_tasks(tasks, ignored=others)

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.watching.chunk_size = _PAGE
        settings.queueing.idle_timeout = _IDLE_S
        settings.networking.error_backoffs = _RETRIES_S
        settings.process.ultimate_exiting_timeout = None
        settings.persistence.diffbase_storage = _NoCopy()
        settings.persistence.progress_storage = _NoProgress()
        if self._pod_selector:
            settings.watching.field_selectors["", "v1", "pods"] = self._pod_selector
        return settings

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        for kind in KINDS:
            resource = RESOURCES[kind]
            handler = kopf.on.event(
                resource.group, resource.version, resource.plural, registry=registry, id=f"see-{kind}"
            )
            handler(self._handler(kind))
        return registry

    def _handler(self, kind: str) -> Callable[..., Any]:
        async def see(event: kopf.RawEvent, **_: Any) -> None:
            self._event(kind, event["type"], event["object"])

        return see

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """The same server and identity as our own requests have; asked again when the server refuses them."""
        info = await self._connection()
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._asked)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            proxy=info.proxy_url,
            trace_configs=[trace],
        )
        return kopf.AiohttpSession(server=info.server, aiohttp_session=session)

    async def _asked(
        self, session: aiohttp.ClientSession, context: object, asked: aiohttp.TraceRequestEndParams
    ) -> None:
        """A request was answered; the first page of a list is one that begins."""
        del session, context
        kind = next((kind for path, kind in _PATHS.items() if asked.url.path.endswith(path)), None)
        if kind is not None and not asked.url.query.keys() & {"watch", "continue"}:
            self._listed(kind)

    async def _connection(self) -> kopf.ConnectionInfo:
        settings = (await Access.find(self._kubeconfig, self._context)).pool.configuration
        *scheme, token = str(settings.api_key.get("BearerToken") or "").split(" ")
        return kopf.ConnectionInfo(
            server=settings.host,
            ca_path=settings.ssl_ca_cert or None,
            insecure=not settings.verify_ssl,
            certificate_path=settings.cert_file or None,
            private_key_path=settings.key_file or None,
            scheme=" ".join(scheme) or "Bearer",
            token=token or None,
            username=settings.username or None,
            password=settings.password or None,
            proxy_url=settings.proxy or None,
        )
