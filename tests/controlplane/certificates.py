"""Certificates and kubeconfigs of a test's control plane, made by openssl and valid for 30 days."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

# IP.2 is the first address of the service network: the kubernetes service.
SERVER_NAMES = (
    "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
)
NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
"""EC P-256 throughout: made in milliseconds, and a handshake costs a fraction of RSA's."""

CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
}


def make_certificates(folder: Path) -> None:
    """A CA, the server's certificate, one for each client, and the service-account key pair."""
    if (folder / "sa.pub").exists():
        return
    openssl(folder, f"req -x509 {NEW_KEY} -days 30 -subj /CN=test-ca -keyout ca.key -out ca.crt")
    server = f"subjectAltName={SERVER_NAMES}\nextendedKeyUsage=serverAuth\n"
    sign(folder, "server", "/CN=kube-apiserver", server)
    for user, subject in CLIENTS.items():
        sign(folder, user, subject, "extendedKeyUsage=clientAuth\n")
    openssl(folder, "ecparam -name prime256v1 -genkey -noout -out sa.key")
    openssl(folder, "ec -in sa.key -pubout -out sa.pub")


def sign(folder: Path, name: str, subject: str, extensions: str) -> None:
    """A key *name*.key and a certificate *name*.crt for *subject*."""
    (folder / f"{name}.ext").write_text(extensions)
    openssl(folder, f"req {NEW_KEY} -subj {subject} -keyout {name}.key -out {name}.csr")
    authority = "-CA ca.crt -CAkey ca.key -CAcreateserial -days 30"
    openssl(folder, f"x509 -req -in {name}.csr {authority} -extfile {name}.ext -out {name}.crt")


def openssl(folder: Path, arguments: str) -> None:
    """Run openssl in *folder*; raises CalledProcessError if it fails."""
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


def write_kubeconfig(folder: Path, user: str, server: str) -> None:
    """The file *user*.kubeconfig; the certificates travel inside, so it can be copied away."""

    def data(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": data("ca.crt")}
    identity = {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": user, "user": identity}],
    }
    (folder / f"{user}.kubeconfig").write_text(json.dumps(config, indent=1))  # JSON is YAML
