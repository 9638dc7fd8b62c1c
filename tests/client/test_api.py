"""Requests against a server that fails, and where the server and the identity are found."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import kubernetes.aio.config.incluster_config
import pytest
import trustme
import yaml

from tests.cluster import fault_server as fs
from tests.cluster.waiting import until
from volcano_py.client import access
from volcano_py.client.api import (
    RESOURCES,
    AccessError,
    Api,
    ApiError,
    Unreachable,
    retry_wait_s,
)

PODS = RESOURCES["Pod"].path()
Body = Callable[[fs.FaultServer, Api], Awaitable[None]]


def with_api(folder: Path, body: Body, **user: Any) -> None:
    async def run() -> None:
        async with fs.fault_server() as server, await Api.connect(server.kubeconfig(folder, **user)) as api:
            await body(server, api)

    asyncio.run(run())


def test_paths() -> None:
    assert RESOURCES["Pod"].path() == "/api/v1/pods"
    assert RESOURCES["Pod"].path("a", "p", "binding") == "/api/v1/namespaces/a/pods/p/binding"
    assert RESOURCES["Node"].path("a", "n") == "/api/v1/nodes/n"
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/g"
    assert RESOURCES["PodGroup"].path("a", "g") == groups
    assert RESOURCES["Queue"].path(None, "q") == "/apis/scheduling.volcano.sh/v1beta1/queues/q"
    assert RESOURCES["Job"].api_version == "batch.volcano.sh/v1alpha1"
    assert RESOURCES["Node"].api_version == "v1"


def test_requests_carry_what_they_were_given(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        assert (api.server, api.namespace) == (server.url, "team")
        answer = await api.post("/x", {"a": "ü"}, dryRun="All", fieldManager="a b&c")
        assert answer["echo"] == '{"a":"ü"}'
        await api.patch("/x", [], kind="json")
        await api.call("PUT", "/x", body=b"raw", content_type="text/plain")
        assert server.requests[0] == ("POST", "/x", {"dryRun": "All", "fieldManager": "a b&c"})
        types = [sent.get("Content-Type") for sent in server.headers]
        assert types == ["application/json", "application/json-patch+json", "text/plain"]
        assert server.headers[0]["User-Agent"] == "volcano-py"

    with_api(tmp_path, body)


@pytest.mark.parametrize(
    ("refusal", "claim"),
    [
        (fs.Refusal(404, "NotFound"), "is_missing"),
        (fs.Refusal(409, "Conflict"), "is_conflict"),
        (fs.Refusal(409, "AlreadyExists"), "is_exists"),
        (fs.Refusal(410, "Expired"), "is_gone"),
        (fs.Refusal(429, "TooManyRequests"), "is_busy"),
        (fs.Refusal(503, body="no backend"), "is_busy"),
        (fs.Refusal(500, "InternalError"), None),
    ],
)
def test_a_refusal_says_what_it_is(tmp_path: Path, refusal: fs.Refusal, claim: str | None) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.append(refusal)
        with pytest.raises(ApiError) as caught:
            await api.get(PODS)
        error = caught.value
        claims = ("is_missing", "is_conflict", "is_exists", "is_gone", "is_busy")
        assert [name for name in claims if getattr(error, name)] == ([claim] if claim else [])
        assert (error.status, error.reason) == (refusal.status, refusal.reason)
        assert error.message == (refusal.body or "because")
        assert error.message in str(error)
        assert f"GET {PODS}" in str(error)

    with_api(tmp_path, body)


def test_the_wait_that_the_server_asks_for(tmp_path: Path) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    async def body(server: fs.FaultServer, api: Api) -> None:
        for text, low, high in [("7", 7, 7), (soon, 3000, 3600), ("later", 0, 0)]:
            server.faults.append(fs.Refusal(429, retry_after=text))
            with pytest.raises(ApiError) as caught:
                await api.get(PODS)
            wait_s = caught.value.retry_after_s
            assert low <= (wait_s or 0) <= high

    with_api(tmp_path, body)


def test_waits_grow_are_bounded_and_honour_the_server() -> None:
    def span(attempt: int, asked: float | None = None) -> tuple[float, float]:
        error = ApiError(429, "", "", retry_after_s=asked)
        waits = [retry_wait_s(attempt, error) for _ in range(300)]
        return min(waits), max(waits)

    assert span(1)[1] <= 0.1
    assert 0.2 < span(3)[1] <= 0.4
    assert span(1000)[1] <= 5.0
    assert span(1, 2.0)[0] >= 2.0
    assert span(1, 1e9)[1] <= 31.0


@pytest.mark.parametrize(
    "fault", [fs.Refusal(429), fs.Refusal(500), fs.Refusal(502), fs.Refusal(503), fs.Refusal(504), fs.Cut()]
)
def test_what_may_be_tried_again_is(tmp_path: Path, fault: fs.Fault) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.extend([fault, fault])
        assert await api.call("GET", PODS, tries=3)
        server.faults.extend([fault, fault])
        with pytest.raises((ApiError, Unreachable)):
            await api.call("GET", PODS, tries=2)
        assert not server.faults

    with_api(tmp_path, body)


def test_a_conflict_is_not_tried_again(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.extend([fs.Refusal(409, "Conflict"), fs.Refusal(409, "Conflict")])
        with pytest.raises(ApiError):
            await api.call("POST", PODS, body={}, tries=5)
        assert len(server.faults) == 1

    with_api(tmp_path, body)


def test_no_answer_is_unreachable(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.append(fs.Drop())
        with pytest.raises(Unreachable, match="POST /x"):
            await api.post("/x", {})
        await server.stop()
        with pytest.raises(Unreachable, match="POST /x"):
            await api.post("/x", {})

    with_api(tmp_path, body)


def test_an_answer_that_takes_too_long_is_unreachable(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.append(fs.Silence())
        query = {"watch": "1", "resourceVersion": "100", "timeoutSeconds": "60"}
        with pytest.raises(Unreachable):
            await api.call("GET", PODS, query=query, timeout_s=0.1)

    with_api(tmp_path, body)


def test_an_answer_that_is_no_json_is_unreachable(tmp_path: Path) -> None:
    """A gateway's page with status 200: whoever tries again after no answer tries again after that."""

    async def body(server: fs.FaultServer, api: Api) -> None:
        for text in ("<html>gateway</html>", "", '{"kind": "Li'):
            server.faults.append(fs.Noise(text))
            with pytest.raises(Unreachable, match=f"GET {PODS}: the answer is no JSON"):
                await api.get(PODS)
        assert (await api.get(PODS))["items"] == []

    with_api(tmp_path, body)


def watch(api: Api, idle_s: float, seconds: str = "60") -> Any:
    query = {"watch": "1", "resourceVersion": "0", "timeoutSeconds": seconds}
    return aclosing(api.lines(PODS, query, idle_timeout_s=idle_s))


def test_lines_are_whole_or_the_watch_is_unreachable(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.bookmark = False
        big = {"metadata": {"name": "p", "namespace": "a", "annotations": {"long": "x" * 700_000}}}
        for name in ("p", "q"):
            server.put(PODS, {**big, "metadata": {**big["metadata"], "name": name}})
        async with watch(api, 60, "1") as lines:
            names = [json.loads(line)["object"]["metadata"]["name"] async for line in lines]
        assert names == ["p", "q"]
        for fault in (fs.Cut(reset=False), fs.Cut(reset=True)):
            server.faults.append(fault)
            async with watch(api, 60) as lines:
                with pytest.raises(Unreachable):
                    assert [line async for line in lines] == []

    with_api(tmp_path, body)


def test_a_watch_that_is_silent_too_long_is_unreachable(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.append(fs.Silence())
        async with watch(api, 0.05) as lines:
            with pytest.raises(Unreachable):
                assert [line async for line in lines] == []

    with_api(tmp_path, body)


def test_a_watch_that_is_refused_says_so(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.faults.append(fs.Refusal(410, "Expired"))
        async with watch(api, 60) as lines:
            with pytest.raises(ApiError) as caught:
                assert [line async for line in lines] == []
        assert caught.value.is_gone

    with_api(tmp_path, body)


# -- who we are -------------------------------------------------------------------------------------


def test_a_token_in_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")

    async def body(server: fs.FaultServer, api: Api) -> None:
        server.token = "first"
        await api.get(PODS)
        token.write_text("second\n")  # as echo writes it
        server.token = "second"
        await api.get(PODS)
        assert len(server.requests) == 3  # one was refused, and sent again with the new token
        server.token = "third"  # which nobody told us
        with pytest.raises(ApiError) as caught:
            await api.get(PODS)
        assert caught.value.status == 401

    with_api(tmp_path, body, tokenFile=str(token))


def plugin(folder: Path, says: str) -> dict[str, Any]:
    """An exec plugin that counts its calls in ``calls`` and prints *says*, in which COUNT is that number."""
    script = folder / "plugin"
    script.write_text(
        f"#!{sys.executable}\n"
        "import pathlib\n"
        f"calls = pathlib.Path({str(folder / 'calls')!r})\n"
        "count = len(calls.read_text()) + 1 if calls.exists() else 1\n"
        "calls.write_text('x' * count)\n"
        f"print({says!r}.replace('COUNT', str(count)))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


def credential(**status: str) -> str:
    kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return json.dumps({**kind, "status": status})


def test_an_exec_plugin_is_asked_again_when_its_token_is_refused(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        server.token = "token-1"
        await api.get(PODS)
        server.token = "token-2"
        await asyncio.gather(*(api.get(PODS) for _ in range(3)))
        assert (tmp_path / "calls").read_text() == "xx"

    with_api(
        tmp_path,
        body,
        **plugin(tmp_path, credential(token="token-COUNT", expirationTimestamp="2099-01-01T00:00:00Z")),
    )


def test_an_exec_plugin_is_asked_again_before_its_token_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_CHECK_S", 0.0)
    past = credential(token="token-COUNT", expirationTimestamp="2001-01-01T00:00:00Z")

    async def body(server: fs.FaultServer, api: Api) -> None:
        server.token = "token-2"
        await api.get(PODS)
        assert len(server.requests) == 1

    with_api(tmp_path, body, **plugin(tmp_path, past))


def test_an_exec_plugin_without_an_end_is_not_run_for_every_request(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        for _ in range(5):
            await api.get(PODS)
        assert (tmp_path / "calls").read_text() == "x"

    with_api(tmp_path, body, **plugin(tmp_path, credential(token="t")))


def test_an_exec_plugin_that_fails_is_an_error_not_nobody(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="gave no credentials"):
        with_api(tmp_path, lambda server, api: asyncio.sleep(0), **plugin(tmp_path, "oops"))


def test_the_service_account_of_a_pod_and_its_new_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("first")
    (tmp_path / "namespace").write_text("here\n")
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    config = kubernetes.aio.config.incluster_config
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    for name, file in [("SERVICE_TOKEN_FILENAME", "token"), ("SERVICE_CERT_FILENAME", "ca.crt")]:
        monkeypatch.setattr(config, name, str(tmp_path / file))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")

    async def run() -> None:
        found = await access.Access.find(None, None)
        assert (found.namespace, found.pool.configuration.host) == ("here", "https://127.0.0.1:1")
        assert await found.headers() == {"Authorization": "bearer first"}
        (tmp_path / "token").write_text("second")
        assert await found.headers() == {"Authorization": "bearer first"}
        assert await found.refused(found.edition)
        assert await found.headers() == {"Authorization": "bearer second"}
        with pytest.raises(AccessError, match="no contexts"):
            await access.Access.find(None, "other")

    asyncio.run(run())


def config_of(**changes: Any) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        **changes,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no whole kubeconfig"),
        ("just text", "no whole kubeconfig"),
        ("a: [", "line 1"),
        (yaml.safe_dump(config_of(users=[])), "no whole kubeconfig"),
        (yaml.safe_dump(config_of(contexts=[])), "c in"),
        (yaml.safe_dump({**config_of(), "current-context": "gone"}), "gone"),
        (
            yaml.safe_dump(config_of(users=[{"name": "u", "user": {"client-certificate": "no.pem"}}])),
            "no.pem",
        ),
        (
            yaml.safe_dump(
                config_of(
                    users=[
                        {"name": "u", "user": {"client-certificate-data": "eA==", "client-key-data": "eA=="}}
                    ]
                )
            ),
            "certificates",
        ),
    ],
    ids=[
        "empty",
        "text",
        "no yaml",
        "no user",
        "no contexts",
        "no such context",
        "no certificate file",
        "no certificate",
    ],
)
def test_a_broken_kubeconfig_is_named_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(AccessError) as caught:
        asyncio.run(access.Access.find(str(path), None))
    assert said in str(caught.value)
    assert str(path) in str(caught.value) or said == "certificates"


def test_a_missing_kubeconfig_is_named_with_what_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(AccessError, match="--kubeconfig"):
        asyncio.run(access.Access.find(missing, None))
    monkeypatch.setenv("KUBECONFIG", missing)
    with pytest.raises(AccessError, match="KUBECONFIG"):
        asyncio.run(access.Access.find(None, None))
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(AccessError) as caught:
        asyncio.run(access.Access.find(None, None))
    for looked_for in ("--kubeconfig", "KUBECONFIG", "service account", "~/.kube/config"):
        assert looked_for in str(caught.value)


def test_an_address_of_its_own_goes_before_that_of_the_kubeconfig(tmp_path: Path) -> None:
    async def run() -> None:
        async with fs.fault_server() as server, fs.fault_server() as other:
            config = server.kubeconfig(tmp_path)
            async with await Api.connect(config, server=other.url) as api:
                assert api.server == other.url
                await api.get("/x")
            with pytest.raises(AccessError, match="is no address of a server"):
                await Api.connect(config, server="10.0.0.1")

    asyncio.run(run())


def test_a_proxy_of_the_environment_is_used_save_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inner.example")
    assert access._proxy_of("https://api.example:6443") == "http://proxy:3128"
    assert access._proxy_of("https://inner.example") is None
    assert access._proxy_of("https://127.0.0.1:6443") is None


def test_requests_beside_each_other_share_open_connections(tmp_path: Path) -> None:
    async def body(server: fs.FaultServer, api: Api) -> None:
        for _ in range(3):
            await asyncio.gather(*(api.get(PODS) for _ in range(8)))
        pool = api.access.pool.open().connector
        assert pool is not None
        await until(lambda: not pool._acquired, "all connections are given back")
        assert sum(len(kept) for kept in pool._conns.values()) == 8

    with_api(tmp_path, body)
