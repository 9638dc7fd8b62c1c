"""The server as a process and in a process: who may come in, restarts, kills, slow clients, logs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.apiserver.builders import config_map, pod
from tests.apiserver.cases_watch import events, told
from tests.apiserver.spaces import WAIT_S
from tests.e2e.servers import EmbeddedServer as Process
from volcano_py.client.api import Api
from volcano_py.client.errors import ApiError, Unreachable
from volcano_py.simulator.apiserver.serving import EmbeddedServer
from volcano_py.simulator.apiserver.status import Document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@contextlib.asynccontextmanager
async def client(server: EmbeddedServer, folder: Path) -> AsyncIterator[Api]:
    config = folder / "config"
    server.write_kubeconfig(config)
    async with await Api.connect(str(config)) as api:
        yield api


def test_only_the_token_opens_the_server(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as server:
            config = tmp_path / "config"
            config.write_text(server.kubeconfig.replace(server.token, "guessed"))
            async with await Api.connect(str(config)) as stranger:
                with pytest.raises(ApiError) as caught:
                    await stranger.get(MAPS)
                assert (caught.value.status, caught.value.reason) == (401, "Unauthorized")
                assert await stranger.call("GET", "/readyz") == b"ok"

    asyncio.run(case())


def test_kubeconfig_is_private_and_certificate_is_checked(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as server, EmbeddedServer(crds=False) as other:
            config = tmp_path / "config"
            server.write_kubeconfig(config)
            assert config.stat().st_mode & 0o077 == 0
            # The right token at the wrong server: its certificate is not the one that was promised.
            config.write_text(server.kubeconfig.replace(server.url, other.url))
            async with await Api.connect(str(config)) as api:
                with pytest.raises(Unreachable) as caught:
                    await api.get(MAPS)
                assert "certificate" in str(caught.value).lower() or isinstance(
                    caught.value.__cause__, ssl.SSLError
                )

    asyncio.run(case())


def test_service_account_tokens_end(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as server, client(server, tmp_path) as api:
            path = "/api/v1/namespaces/default/serviceaccounts/default/token"
            good = (await api.post(path, {"spec": {"expirationSeconds": 600}}))["status"]["token"]
            ended = (await api.post(path, {"spec": {"expirationSeconds": -1}}))["status"]["token"]
            for token, works in ((good, True), (ended, False), (good[:-2] + "xx", False)):
                config = tmp_path / "account"
                config.write_text(server.kubeconfig.replace(server.token, token))
                async with await Api.connect(str(config)) as account:
                    assert await opens(account) is works

    asyncio.run(case())


async def opens(api: Api) -> bool:
    try:
        await api.get(MAPS)
    except ApiError as error:
        return error.status != 401
    return True


def test_objects_and_identity_outlive_a_restart(tmp_path: Path) -> None:
    async def case() -> None:
        data = tmp_path / "data"
        async with EmbeddedServer(data_dir=data) as server, client(server, tmp_path) as api:
            await api.post(MAPS, config_map("a", x="1"))
            seen = (await api.get(f"{MAPS}/a"))["metadata"]["resourceVersion"]
            await api.post(MAPS, config_map("b"))
            token = server.token
        async with EmbeddedServer(data_dir=data) as server, client(server, tmp_path) as api:
            assert server.token == token
            assert (await api.get(f"{MAPS}/a"))["data"] == {"x": "1"}
            assert told(await events(api, MAPS, 1, resourceVersion=seen)) == [("ADDED", "b")]
            queues = await api.get("/apis/scheduling.volcano.sh/v1beta1/queues")
            assert queues["items"] == []

    asyncio.run(case())


def test_server_without_memory_sends_old_watches_back_to_list(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False) as server, client(server, tmp_path) as api:
            seen = (await api.get(MAPS))["metadata"]["resourceVersion"]
        async with EmbeddedServer(crds=False) as server, client(server, tmp_path) as api:
            found = await events(api, MAPS, 1, resourceVersion=seen)
            assert found[0]["type"] == "ERROR"
            assert (found[0]["object"]["code"], found[0]["object"]["reason"]) == (410, "Expired")

    asyncio.run(case())


def test_history_ends_with_410_for_lists_and_watches(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False, history=10) as server, client(server, tmp_path) as api:
            for name in "abc":
                await api.post(MAPS, config_map(name))
            page = await api.get(MAPS, limit="1")
            for number in range(12):
                await api.patch(f"{MAPS}/a", {"data": {"n": str(number)}})
            with pytest.raises(ApiError) as caught:
                await api.get(MAPS, limit="1", **{"continue": page["metadata"]["continue"]})
            assert (caught.value.status, caught.value.reason) == (410, "Expired")
            version = page["metadata"]["resourceVersion"]
            found = await events(api, MAPS, 1, resourceVersion=version)
            assert found[0]["object"]["code"] == 410

    asyncio.run(case())


def test_stopping_ends_watches_at_a_line(tmp_path: Path) -> None:
    async def case() -> list[bytes]:
        async with EmbeddedServer(crds=False) as server, client(server, tmp_path) as api:
            lines: list[bytes] = []
            watching = asyncio.Event()

            async def watch() -> None:
                async for line in api.lines(MAPS, {"watch": "1"}, idle_timeout_s=WAIT_S):
                    lines.append(line)
                    watching.set()

            await api.post(MAPS, config_map("a"))
            task = asyncio.create_task(watch())
            await watching.wait()
            await server.__aexit__(None, None, None)
            await task
        return lines

    assert [msgspec.json.decode(line)["type"] for line in asyncio.run(case())] == ["ADDED"]


class Scripted:
    """A log that says what was asked of it."""

    async def read(self, pod: Document, container: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        yield f"{pod['metadata']['name']} {container} {query.get('tailLines')}\n".encode()
        yield b"and more\n"


def test_logs_come_from_where_they_are(tmp_path: Path) -> None:
    async def case() -> None:
        async with EmbeddedServer(crds=False, logs=Scripted()) as server, client(server, tmp_path) as api:
            await api.post(PODS, pod("a"))
            said = await api.call("GET", f"{PODS}/a/log", query={"tailLines": "5"})
            assert said == b"a c 5\nand more\n"
        async with EmbeddedServer(crds=False) as server, client(server, tmp_path) as api:
            await api.post(PODS, pod("a"))
            assert await api.call("GET", f"{PODS}/a/log") == b""

    asyncio.run(case())


def test_slow_client_is_cut_off_and_others_are_not(tmp_path: Path) -> None:
    """A client that never reads must not make the server keep everything for it."""

    async def case() -> None:
        async with EmbeddedServer(crds=False, backlog=50) as server, client(server, tmp_path) as api:
            slow, writer = await stalled_watch(server)
            quick = asyncio.create_task(events(api, MAPS, 201, resourceVersion="0"))
            big = "x" * 100_000
            for number in range(200):
                await api.post(MAPS, config_map(f"m{number}", big=big))
            await api.post(MAPS, config_map("last"))
            assert told(await quick)[-1] == ("ADDED", "last")
            assert await read_to_the_end(slow) < 15_000_000
            writer.close()

    asyncio.run(case())


async def stalled_watch(server: EmbeddedServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A watch whose answer nobody reads: little of it stays on the way, however much kernels may keep."""
    context = ssl.create_default_context(cadata=authority(server))
    host, port = server.url.removeprefix("https://").split(":")
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=narrow, ssl=context, server_hostname=host, limit=1024)
    request = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    writer.write(request.encode())
    await writer.drain()
    await reader.readline()
    return reader, writer


async def read_to_the_end(reader: asyncio.StreamReader) -> int:
    """How many bytes still come before the connection ends."""
    count = 0
    async with asyncio.timeout(WAIT_S):
        with contextlib.suppress(ConnectionResetError, ssl.SSLError):
            while chunk := await reader.read(1 << 16):
                count += len(chunk)
    return count


def authority(server: EmbeddedServer) -> str:
    config = yaml.safe_load(server.kubeconfig)
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.long)])
def test_killed_server_keeps_every_answered_write(tmp_path: Path, rounds: int) -> None:
    dice = random.Random(rounds)
    server = Process(tmp_path)
    known: dict[str, str] = {}
    try:
        server.start()
        for _ in range(rounds):
            asyncio.run(write_until_killed(server, known, dice.randrange(5, 120)))
            server.revive()
            asyncio.run(compare(server, known))
    finally:
        server.stop()


async def write_until_killed(server: Process, known: dict[str, str], writes: int) -> None:
    """Eight writers; *known* holds the answered value of each object, "?" where the answer was lost."""
    done = 0

    async def writer(number: int, api: Api) -> None:
        nonlocal done
        for value in range(1_000_000):
            name = f"w{number}"
            previous, known[name] = known.get(name), "?"
            try:
                if previous is None:
                    await api.post(MAPS, config_map(name, value="new"))
                    known[name] = "new"
                else:
                    await api.patch(f"{MAPS}/{name}", {"data": {"value": str(value)}})
                    known[name] = str(value)
            except ApiError:
                # It went through without an answer earlier: made already, or not made.
                known[name] = "?"
            except Unreachable:
                return
            done += 1
            if done == writes:
                server.crash()

    async with await Api.connect(str(server.kubeconfig)) as api:
        await asyncio.gather(*(writer(number, api) for number in range(8)))


async def compare(server: Process, known: dict[str, str]) -> None:
    async with await Api.connect(str(server.kubeconfig)) as api:
        listed: dict[str, Any] = {
            item["metadata"]["name"]: item["data"]["value"] for item in (await api.get(MAPS))["items"]
        }
    for name, value in known.items():
        if value == "?":
            known[name] = listed.get(name, "?")
        else:
            assert listed.get(name) == value, f"{name}: {value} was answered, {listed.get(name)} is there"
