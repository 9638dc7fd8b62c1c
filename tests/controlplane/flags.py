"""Command lines of the control plane's programs; everything listens on 127.0.0.1 only."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
PORTS = range(20_000, 30_000)
"""Linux gives none of them to those who ask for any: they are still free when a program begins to listen."""
SERVICE_CIDR = "10.96.0.0/16"
# What a batch scheduler's objects need; nothing here waits for kubelets.
CONTROLLERS = (
    "serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller,"
    "namespace-controller,garbage-collector-controller,resourcequota-controller,disruption-controller,"
    "deployment-controller,replicaset-controller,job-controller,statefulset-controller,"
    "clusterrole-aggregation-controller"
)


def etcd_flags(folder: Path, port: int, peer: int) -> list[str]:
    """The flags of etcd, without a disk's patience: the data is thrown away after the tests."""
    client_url, peer_url = f"http://{HOST}:{port}", f"http://{HOST}:{peer}"
    return [
        f"--data-dir={folder}/etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def apiserver_flags(folder: Path, etcd: int, port: int) -> list[str]:
    """TLS, RBAC, and admission as by default."""
    return [
        f"--etcd-servers=http://{HOST}:{etcd}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        # Without it the server looks for a network card's address, and ends where there is none.
        f"--advertise-address={HOST}",
        # 127.0.0.1 is refused as an endpoint of the kubernetes service, so do not write that endpoint.
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder}/server.crt",
        f"--tls-private-key-file={folder}/server.key",
        f"--client-ca-file={folder}/ca.crt",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/sa.pub",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
    ]


def client_flags(folder: Path, user: str, port: int) -> list[str]:
    """What kube-controller-manager and kube-scheduler have in common."""
    config = f"{folder}/{user}.kubeconfig"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def controller_flags(folder: Path, controllers: str, port: int) -> list[str]:
    """kube-controller-manager with only *controllers*."""
    return [
        *client_flags(folder, "kube-controller-manager", port),
        f"--controllers={controllers}",
        f"--service-account-private-key-file={folder}/sa.key",
        f"--root-ca-file={folder}/ca.crt",
        "--use-service-account-credentials=true",
    ]


def hold_port() -> socket.socket:
    """A socket on a port that nobody else is given while it is open, be the server there or crashed.

    A server listens there all the same: both say SO_REUSEADDR, and this one does not listen.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((HOST, 0))
    return held


def port_of(held: socket.socket) -> int:
    """The port that *held* is on."""
    port: int = held.getsockname()[1]
    return port


def free_ports(count: int) -> list[int]:
    """Ports nobody held a moment ago; all are found before any is let go, so they differ."""
    order = iter(random.SystemRandom().sample(PORTS, len(PORTS)))
    sockets = [_listener(order) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _listener(ports: Iterator[int]) -> socket.socket:
    """A socket on the first of *ports* that is free."""
    for port in ports:
        with suppress(OSError):
            return socket.create_server((HOST, port))
    raise OSError(f"no port of {PORTS} is free")
