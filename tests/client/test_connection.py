"""How a server is reached: TLS on a real socket, keys, deadlines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from orchestrator.client import (
    AsyncClient,
    BadAddressError,
    Client,
    ConnectError,
    Tls,
    UnavailableError,
)
from orchestrator.client.connection import Connection
from tests.scripted_orchestrator import ANSWER, ScriptedOrchestrator

KEY = "key-of-nobody"
TEXT = "Once upon a tïme"
TRACEPARENT = f"00-{'ab' * 16}-{'cd' * 8}-01"


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority, its certificates as files."""

    ca: trustme.CA
    folder: Path

    def file(self, name: str, blob: trustme.Blob) -> Path:
        path = self.folder / name
        blob.write_to_path(path)
        return path

    def server(self, *, clients: bool) -> grpc.ServerCredentials:
        """For "localhost"; `clients`: they must show a certificate too."""
        certificate = self.ca.issue_cert("localhost")
        pair = (
            certificate.private_key_pem.bytes(),
            b"".join(blob.bytes() for blob in certificate.cert_chain_pems),
        )
        root = self.ca.cert_pem.bytes()
        return grpc.ssl_server_credentials(
            [pair], root_certificates=root if clients else None, require_client_auth=clients
        )


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(trustme.CA(), tmp_path)


@pytest.fixture
def secure(authority: Authority) -> Iterator[ScriptedOrchestrator]:
    with ScriptedOrchestrator(credentials=authority.server(clients=False)) as scripted:
        yield scripted


def test_tls_with_an_authority_of_ones_own(
    secure: ScriptedOrchestrator, authority: Authority
) -> None:
    tls = Tls(ca=authority.file("ca.pem", authority.ca.cert_pem))
    with Client(secure.address, tls=tls, api_key=KEY) as client:
        assert client.generate("hi").answer().text == TEXT
    assert secure.metadata[0]["authorization"] == f"Bearer {KEY}"


async def test_tls_with_asyncio(secure: ScriptedOrchestrator, authority: Authority) -> None:
    tls = Tls(ca=str(authority.file("ca.pem", authority.ca.cert_pem)))
    async with AsyncClient(secure.address, tls=tls, api_key=KEY) as client:
        assert (await client.generate("hi").answer()).text == TEXT
    assert secure.metadata[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("whose", ["the system's", "another's"])
def test_a_server_that_cannot_be_trusted_gets_no_request(
    secure: ScriptedOrchestrator, tmp_path: Path, whose: str
) -> None:
    other = Authority(trustme.CA(), tmp_path)
    tls = whose == "the system's" or Tls(ca=other.file("other.pem", other.ca.cert_pem))
    with (
        Client(secure.address, tls=tls, timeout=20) as client,
        pytest.raises(ConnectError, match=f"{secure.address}: .*CERTIFICATE_VERIFY_FAILED"),
    ):
        client.complete("hi")
    assert secure.requests == []


def test_without_tls_a_server_with_it_gets_no_request(secure: ScriptedOrchestrator) -> None:
    with Client(secure.address, timeout=20) as client, pytest.raises(UnavailableError):
        client.complete("hi")
    assert secure.requests == []


def test_mutual_tls(authority: Authority) -> None:
    ca = authority.file("ca.pem", authority.ca.cert_pem)
    own = authority.ca.issue_cert("client")
    certificate = authority.file("client.pem", own.cert_chain_pems[0])
    key = authority.file("client.key", own.private_key_pem)
    with ScriptedOrchestrator(credentials=authority.server(clients=True)) as scripted:
        with Client(scripted.address, tls=Tls(ca, certificate, key)) as client:
            assert client.generate("hi").answer().text == TEXT
        with (
            Client(scripted.address, tls=Tls(ca), timeout=20) as client,
            pytest.raises(UnavailableError),
        ):
            client.complete("hi")
        assert len(scripted.requests) == 1


def test_a_certificate_goes_with_its_key() -> None:
    with pytest.raises(ValueError, match="both or neither"):
        Tls(certificate="client.pem")


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pem"):
        Client("localhost:1", tls=Tls(ca="nowhere.pem"))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_a_key_may_be_read_on_this_machine(host: str) -> None:
    assert Connection(f"{host}:1", api_key=KEY).metadata(None) == (
        ("authorization", f"Bearer {KEY}"),
    )


@pytest.mark.parametrize("host", ["example.org", "10.0.0.7", "[2001:db8::1]", "localhost.evil.org"])
def test_a_key_is_not_sent_in_the_clear(host: str) -> None:
    with pytest.raises(ValueError, match="could be read") as refused:
        Client(f"{host}:1", api_key=KEY)
    assert KEY not in str(refused.value)
    for safe in (Connection(f"{host}:1", Tls(), KEY), Connection(f"{host}:1", False, KEY, True)):
        assert safe.metadata(None)


@pytest.mark.parametrize("key", ["", "a\nb", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(key: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as refused:
        Client("localhost:1", api_key=key)
    assert not key or key not in str(refused.value)


def test_a_key_is_not_shown() -> None:
    assert KEY not in repr(Connection("localhost:1", api_key=KEY))


def test_the_trace_of_the_caller_goes_with_the_call(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client:
        client.generate("hi", traceparent=TRACEPARENT).answer()
        client.generate("hi").answer()
        with pytest.raises(ValueError, match="traceparent: is"):
            client.generate("hi", traceparent="a\nb")
    assert [sent.get("traceparent") for sent in orchestrator.metadata] == [TRACEPARENT, None]


@pytest.mark.parametrize(
    ("own", "asked", "seconds"),
    [(600.0, None, 600.0), (600.0, 5, 5), (None, None, None), (None, 5, 5), (5.0, math.inf, None)],
)
def test_the_deadline_of_a_call(
    own: float | None, asked: float | None, seconds: float | None
) -> None:
    assert Connection("localhost:1", timeout=own).seconds(asked) == seconds


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan])
def test_no_time_at_all_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Client("localhost:1", timeout=timeout)
    with pytest.raises(ValueError, match="must be above 0"):
        Client("localhost:1").complete("hi", timeout=timeout)


@pytest.mark.parametrize("timeout", ["5", True, b"5"])
def test_what_is_no_number_of_seconds_is_a_type_error(timeout: Any) -> None:
    with pytest.raises(TypeError, match="must be a number of seconds"):
        Client("localhost:1").describe(timeout=timeout)


@pytest.mark.parametrize("timeout", [1e300, 2**63, 10**400])
def test_a_timeout_that_no_clock_holds_is_none(timeout: float) -> None:
    assert Connection("localhost:1").seconds(timeout) is None


@pytest.mark.parametrize(
    ("address", "settings", "name"),
    [(5, {}, "address"), ("a:1", {"tls": "a"}, "tls"), ("a:1", {"api_key": 1}, "api_key")],
)
def test_a_setting_of_another_type_is_a_type_error(
    address: Any, settings: dict[str, Any], name: str
) -> None:
    with pytest.raises(TypeError, match=name):
        Client(address, **settings)


@pytest.mark.parametrize("address", ["nowhere", "host:port", "http://localhost:1", ":1", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadAddressError) as refused:
        Client(address)
    assert isinstance(refused.value, ValueError)


def test_a_proxy_is_not_asked(
    orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Client(orchestrator.address) as client:
        assert len(list(client.responses("hi"))) == len(ANSWER)
