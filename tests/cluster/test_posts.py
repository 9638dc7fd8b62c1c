"""Binds on their way: answers as servers may write them, connections that end, and what a Binding says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.pod_server import PodServer
from tests.cluster.waiting import until
from tests.cluster.writing import run, submit
from volcano_py.client.api import Api, ApiError, Unreachable
from volcano_py.scheduler.cluster.bindings import json_binding, protobuf_binding
from volcano_py.scheduler.cluster.line import Answer, AnswerReader
from volcano_py.scheduler.cluster.orders import BindOrder
from volcano_py.scheduler.cluster.posts import Posts
from volcano_py.simulator.apiserver.protobuf.reading import read_protobuf


class Last(bytes):
    """After this the connection is closed."""


NEVER = b""
"""No answer, and the connection stays."""
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


# -- answers ------------------------------------------------------------------------------------

WHOLE: Mapping[str, tuple[bytes, Answer]] = {
    "length": (OK, Answer(201, {"content-length": "2"}, b"{}", True)),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, {}, b"", True)),
    "no reason": (
        b"HTTP/1.1 200\r\nCONTENT-LENGTH:0\r\n\r\n",
        Answer(200, {"content-length": "0"}, b"", True),
    ),
    "pieces": (
        b"HTTP/1.1 500 E\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
        Answer(500, {"transfer-encoding": "chunked"}, b"abc0123456789", True),
    ),
    "pieces and headers after them": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n",
        Answer(200, {"transfer-encoding": "chunked"}, b"", True),
    ),
    "the last on its connection": (
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\na",
        Answer(200, {"connection": "Close", "content-length": "1"}, b"a", False),
    ),
    "an old server": (
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        Answer(200, {"content-length": "1"}, b"a", False),
    ),
    "after a promise": (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
        Answer(201, {"content-length": "2"}, b"{}", True),
    ),
}


def read_answer(data: bytes, *, ended: bool = False) -> Answer | None:
    """The answer that *data* is; None while it is not whole. *ended*: the connection is, behind it."""
    reader = AnswerReader()
    return reader.feed(data) or (reader.ended() if ended else None)


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_is_read_once_it_is_whole(name: str) -> None:
    data, wanted = WHOLE[name]
    assert read_answer(data) == wanted
    assert [read_answer(data[:at]) for at in range(len(data))] == [None] * len(data)
    reader = AnswerReader()
    assert [reader.feed(data[at : at + 1]) for at in range(len(data))] == [None] * (len(data) - 1) + [wanted]


def test_without_a_length_the_end_of_the_connection_ends_it() -> None:
    data = b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>"
    assert read_answer(data) is None
    assert read_answer(data, ended=True) == Answer(502, {}, b"<html>", False)


def test_a_connection_with_more_on_it_is_not_used_again() -> None:
    read = read_answer(OK + b"HTTP/1.1")
    assert read is not None
    assert (read.body, read.stays) == (b"{}", False)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(2**20),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no |too long"):
        read_answer(data)


@given(st.binary(max_size=200), st.booleans())
def test_anything_is_read_or_refused(noise: bytes, ended: bool) -> None:
    for data in (
        noise,
        b"HTTP/1.1 200 OK\r\n" + noise,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + noise,
    ):
        try:
            read_answer(data, ended=ended)
        except ValueError:
            continue


# -- requests -----------------------------------------------------------------------------------


@dataclass
class Script:
    """A server that answers each request with the next text.

    Attributes:
        heads: of the requests that came, by connection.
        writers: to say more on a connection.
    """

    answers: list[bytes]
    heads: list[list[str]] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        mine: list[str] = []
        self.heads.append(mine)
        self.writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(line for line in head.splitlines() if line.startswith("Content-Length"))
                await reader.readexactly(int(length.split(":")[1]))
                mine.append(head)
                answer = self.answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if isinstance(answer, Last):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def posts(
        self, folder: Path, tls: ssl.SSLContext | None = None, proxy: bool = False, **cluster: Any
    ) -> AsyncIterator[Posts]:
        """Posts to this server."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        here = f"127.0.0.1:{self.port}"
        address = "http://server.example" if proxy else f"{'https' if tls else 'http'}://{here}"
        if proxy:
            cluster["proxy-url"] = f"http://{here}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address, **cluster}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = folder / "config"
        path.write_text(yaml.safe_dump(config))
        async with await Api.connect(str(path), agent="tester") as api:
            posts = Posts(api)
            yield posts
            posts.close()
        server.close()
        mine = asyncio.current_task()
        await until(lambda: all(task is mine or task.done() for task in asyncio.all_tasks()))


def post(posts: Posts, timeout_s: float = 60.0) -> Awaitable[bytes]:
    return posts.post("/a/b c", b"{}", content_type="application/json", timeout_s=timeout_s)


def with_script(
    folder: Path, answers: list[bytes], body: Callable[[Posts, Script], Awaitable[None]], **more: Any
) -> None:
    async def main() -> None:
        script = Script(answers)
        async with script.posts(folder, **more) as posts:
            await body(posts, script)

    asyncio.run(main())


def test_a_request_says_who_asks_and_connections_are_used_again(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        assert [await post(posts), await post(posts)] == [b"{}", b"{}"]
        (heads,) = script.heads
        first, *lines = heads[0].rstrip().splitlines()
        assert first == "POST /a/b%20c HTTP/1.1"
        assert set(lines) == {
            f"Host: 127.0.0.1:{script.port}",
            "User-Agent: tester",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "Authorization: Bearer secret",
            "Content-Type: application/json",
            "Content-Length: 2",
        }
        assert heads[1] == heads[0]

    with_script(tmp_path, [OK, OK], body)


def test_a_server_with_a_certificate_is_believed_by_its_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("right.example").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    trusted = {"tls": context, "certificate-authority": str(tmp_path / "ca.crt")}

    async def right(posts: Posts, script: Script) -> None:
        assert await post(posts) == b"{}"

    async def wrong(posts: Posts, script: Script) -> None:
        with pytest.raises(Unreachable, match="certificate"):
            await post(posts)

    with_script(tmp_path, [OK], right, **trusted, **{"tls-server-name": "right.example"})
    with_script(tmp_path, [OK], wrong, **trusted)


def test_refusals_are_those_of_the_general_client(tmp_path: Path) -> None:
    said = json.dumps({"kind": "Status", "reason": "Conflict", "message": "taken", "code": 409}).encode()
    refusal = b"HTTP/1.1 409 C\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)

    async def body(posts: Posts, script: Script) -> None:
        with pytest.raises(ApiError) as caught:
            await post(posts)
        error = caught.value
        assert (error.status, error.reason, error.message) == (409, "Conflict", "taken")
        assert error.retry_after_s == 7
        assert "POST /a/b c" in str(error)
        assert await post(posts) == b"{}"
        assert len(script.heads) == 1

    with_script(tmp_path, [refusal, OK], body)


@pytest.mark.parametrize(
    "answer",
    [Last(), Last(b"HTTP/1.1 200 OK\r\nContent-Le"), b"<html>\r\n\r\n"],
    ids=["nothing", "a part", "noise"],
)
def test_no_whole_answer_is_said_and_the_next_request_has_another_connection(
    tmp_path: Path, answer: bytes
) -> None:
    async def body(posts: Posts, script: Script) -> None:
        with pytest.raises(Unreachable, match="POST /a/b c"):
            await post(posts)
        assert await post(posts) == b"{}"
        assert [len(heads) for heads in script.heads] == [1, 1]

    with_script(tmp_path, [answer, OK], body)


def test_nobody_gets_the_answer_to_what_another_gave_up(tmp_path: Path) -> None:
    other = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nother"

    async def body(posts: Posts, script: Script) -> None:
        await post(posts)  # on this connection the next one is sent at once, however short its time is
        with pytest.raises(Unreachable, match="TimeoutError"):
            await post(posts, timeout_s=0.2)
        await until(lambda: sum(map(len, script.heads)) == 2)
        given_up = asyncio.ensure_future(post(posts))
        await until(lambda: sum(map(len, script.heads)) == 3)
        given_up.cancel()
        assert await asyncio.gather(given_up, return_exceptions=True)
        assert await post(posts) == b"other"
        assert [len(heads) for heads in script.heads] == [2, 1, 1]

    with_script(tmp_path, [OK, NEVER, NEVER, other], body)


def test_a_connection_that_the_server_closed_is_not_used(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        await post(posts)
        await until(lambda: not posts._idle[0].is_open)
        await post(posts)
        posts._idle[0].idle_since -= 3600.0  # nobody knows what became of it
        await post(posts)
        assert [len(heads) for heads in script.heads] == [1, 1, 1]

    with_script(tmp_path, [Last(OK), OK, OK], body)


def test_a_connection_of_which_the_server_says_that_it_ends_is_not_used_again(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        assert [await post(posts), await post(posts)] == [b"a", b"{}"]
        assert [len(heads) for heads in script.heads] == [1, 1]

    with_script(tmp_path, [WHOLE["the last on its connection"][0], OK], body)


def test_what_nobody_asked_for_is_no_answer_to_the_next(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        await post(posts)
        script.writers[0].write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await until(lambda: not posts._idle[0].is_open)
        assert await post(posts) == b"{}"

    with_script(tmp_path, [OK, OK], body)


def test_what_takes_new_credentials_goes_the_general_way(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        assert await post(posts) == b"{}"
        (first,), (second,) = script.heads
        assert first.startswith("POST /a/b%20c ")
        assert second.startswith("POST /a/b%20c ")
        assert await post(posts) == b"{}"
        assert len(script.heads) == 3

    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
    with_script(tmp_path, [refusal, OK, OK], body)


def test_behind_a_proxy_everything_goes_the_general_way(tmp_path: Path) -> None:
    async def body(posts: Posts, script: Script) -> None:
        assert await post(posts) == b"{}"
        ((head,),) = script.heads
        assert head.startswith("POST http://server.example/a/b")

    with_script(tmp_path, [OK], body, proxy=True)


# -- what a Binding says ------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(TEXT, TEXT, TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=3))
def test_both_ways_to_write_a_binding_say_the_same(
    namespace: str, name: str, uid: str, node: str, notes: dict[str, str]
) -> None:
    order = BindOrder(namespace, name, uid, node, annotations=notes)
    written = read_protobuf(protobuf_binding(order), ("", ""))
    wanted = json.loads(json_binding(order))
    assert _said(written) == _said(wanted)
    assert wanted["metadata"]["uid"] == uid


def _said(part: Any) -> Any:
    """*part* without what is empty, which protobuf does not tell from absent."""
    if not isinstance(part, dict):
        return part
    said = {key: _said(value) for key, value in part.items()}
    return {key: value for key, value in said.items() if value not in ("", {}, None)}


def test_a_long_annotation_is_written_whole(tmp_path: Path) -> None:
    order = BindOrder("ns", "a", "uid-a", "n1", annotations={"note": "x" * 200_000})
    server = PodServer()
    server.pod("a")
    run(tmp_path, server, submit(order))
    (pod,) = (each for path, each in server.objects.items() if path.endswith("/pods/a"))
    assert pod["metadata"]["annotations"]["note"] == "x" * 200_000


def test_a_server_that_takes_no_protobuf_gets_json_from_then_on(tmp_path: Path) -> None:
    server = PodServer(protobuf=False)
    for name in "ab":
        server.pod(name)
    orders = [BindOrder("ns", name, f"uid-{name}", "n1") for name in "ab"]
    run(tmp_path, server, submit(*orders), in_flight=1)
    assert sorted(server.bound) == ["uid-a", "uid-b"]
    assert len(server.seen) == 3
