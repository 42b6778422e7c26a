"""Serve over https on this machine: a certificate made with openssl, and a proxy that terminates TLS, as on a real
host."""

import select
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import install_packages

BLOCK = 1 << 16


def make_certificate(folder: Path) -> Path:
    """A self-signed certificate for this machine and its key, in one file."""
    openssl = shutil.which("openssl") or (install_packages("openssl") and shutil.which("openssl"))
    if not openssl:
        pytest.fail("the tests over https need openssl, to make a certificate; install it", pytrace=False)
    file = folder / "certificate.pem"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", names, "-keyout", str(file), "-out", str(folder / "public.pem")]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    with file.open("a", encoding="ascii") as both:
        both.write((folder / "public.pem").read_text(encoding="ascii"))
    return file


class _Tunnel(BaseRequestHandler):
    """Passes bytes between a visitor, whose side is encrypted, and the server behind."""

    def handle(self) -> None:
        assert isinstance(self.server, _Proxy)
        with (
            suppress(OSError),
            socket.create_connection(self.server.behind) as behind,
            self.server.context.wrap_socket(self.request, server_side=True) as visitor,
        ):
            ways = {visitor: behind, behind: visitor}
            while True:
                ready = [visitor] if visitor.pending() else select.select(list(ways), [], [])[0]
                for source in ready:
                    data = source.recv(BLOCK)
                    if not data:
                        return
                    ways[source].sendall(data)


class _Proxy(ThreadingTCPServer):
    daemon_threads = True
    behind: tuple[str, int]
    context: ssl.SSLContext


@contextmanager
def over_https(address: str, certificate: Path) -> Iterator[int]:
    """Serve the contents of an http address over https, and yield the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    behind = urlsplit(address)
    assert behind.hostname and behind.port
    with _Proxy(("127.0.0.1", 0), _Tunnel) as proxy:
        proxy.behind, proxy.context = (behind.hostname, behind.port), context
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy.server_address[1]
        proxy.shutdown()
