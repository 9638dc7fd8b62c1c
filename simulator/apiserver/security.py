"""Who may speak to the server, and how clients know that it is the right one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import trustme
import yaml

CONTEXT = "volcano-py"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...]


ADMIN = User("admin", ("system:masters", "system:authenticated"))


class Keyring:
    """The tokens of one server: the administrator's, and those of service accounts.

    Args:
        token: the administrator's; service accounts' are derived from it.
    """

    def __init__(self, token: str, clock: Callable[[], float]) -> None:
        self.token = token
        self._clock = clock
        self._secret = hashlib.sha256(token.encode()).digest()

    def user_of(self, token: str) -> User | None:
        """Whose token that is; None for nobody's."""
        if hmac.compare_digest(token.encode(), self.token.encode()):
            return ADMIN
        return self._account(token)

    def issue(self, name: str, end: float) -> str:
        """A token for *name* that ends at *end*, seconds since the epoch."""
        head = _base64(msgspec.json.encode({"alg": "HS256", "typ": "JWT"}))
        claims = _base64(msgspec.json.encode({"sub": name, "exp": int(end), "iss": CONTEXT}))
        return f"{head}.{claims}.{self._signature(f'{head}.{claims}')}"

    def _account(self, token: str) -> User | None:
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_unbase64(signed.partition(".")[2]))
        if claims["exp"] < self._clock():
            return None
        namespace = claims["sub"].split(":")[2]
        groups = (
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        )
        return User(claims["sub"], groups)

    def _signature(self, signed: str) -> str:
        return _base64(hmac.digest(self._secret, signed.encode(), "sha256"))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server shows its clients: certificate and key in PEM, the authority's certificate, the token."""

    authority: bytes
    certificate: bytes
    token: str

    @classmethod
    def new(cls) -> Identity:
        """A fresh one, for names and addresses of this machine only."""
        authority = trustme.CA(organization_name="volcano-py")
        leaf = authority.issue_cert("127.0.0.1", "::1", "localhost", "kubernetes.default.svc")
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return cls(
            authority.cert_pem.bytes(), leaf.private_key_pem.bytes() + chain, secrets.token_urlsafe(32)
        )

    @classmethod
    def kept_in(cls, folder: Path) -> Identity:
        """The one that *folder* holds, made on the first call: a kubeconfig outlives a restart."""
        path = folder / "identity.yaml"
        if path.exists():
            data = yaml.safe_load(path.read_text())
            return cls(data["authority"].encode(), data["certificate"].encode(), data["token"])
        identity = cls.new()
        data = {
            "authority": identity.authority.decode(),
            "certificate": identity.certificate.decode(),
            "token": identity.token,
        }
        folder.mkdir(parents=True, exist_ok=True)
        write_private(path, yaml.safe_dump(data))
        return identity

    def context(self, scratch: Path) -> ssl.SSLContext:
        """For the listening side; the certificate passes through a file in *scratch*."""
        path = scratch / "server.pem"
        write_private(path, self.certificate.decode())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        path.unlink()
        return context

    def kubeconfig(self, url: str) -> str:
        """A kubeconfig for the server at *url*."""
        authority = base64.b64encode(self.authority).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
            "clusters": [
                {"name": CONTEXT, "cluster": {"server": url, "certificate-authority-data": authority}}
            ],
            "users": [{"name": CONTEXT, "user": {"token": self.token}}],
        }
        return yaml.safe_dump(config, sort_keys=False)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; readers see the old text or the new one."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.rename(path)
