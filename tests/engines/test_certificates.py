"""Servers whose certificate a company's own authority signed: what is trusted, and what the error says."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from loupe.data.certificates import check_tls, open_client
from loupe.data.hub.api import list_files
from loupe.data.hub.patience import Patience
from loupe.engines.chat.exchange import Exchange
from loupe.engines.registry import engine_module, load_profile
from loupe.engines.shared.redaction import Redaction
from loupe.errors import DatasetError, EngineUnavailableError, LoupeError
from loupe.types import DataSet, Request
from tests.support.chat_server import in_process

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def certificate(folder: Path, name: x509.GeneralName) -> Path:
    """A certificate that signs itself, with its key in the same file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Loupe's tests")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "both.pem"
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("ours"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@pytest.fixture(scope="module")
def server(ours: Path) -> Iterator[str]:
    """The base URL of a server with our certificate."""
    with in_process(text="read", tls=ours) as url:
        yield url


def read(kind: str, url: str) -> str:
    async def main() -> str:
        profile = load_profile(kind, {"base_url": url})[1]
        async with engine_module(profile.kind).open_engine(profile) as engine:
            return (await engine.predict(Request(id="a", prompt="Read.", text="a"))).text

    return asyncio.run(main())


def refused(kind: str, url: str) -> LoupeError:
    with pytest.raises(EngineUnavailableError) as caught:
        read(kind, url)
    return caught.value


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_every_usual_variable_names_an_authority(
    variable: str, ours: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(ours))
    assert read("openai", server) == "read"


@pytest.mark.parametrize("kind", ["openai", "tika"])
def test_a_certificate_that_nobody_trusts_is_named_with_the_remedy(kind: str, server: str) -> None:
    told = refused(kind, server.removesuffix("/v1"))
    assert told.message == f"the certificate of {server.removesuffix('/v1')} is not trusted: self-signed certificate"
    assert told.hint == "name the authority that signed it: export SSL_CERT_FILE=FILE.pem"


def test_a_request_meets_the_same_refusal(server: str) -> None:
    async def main() -> None:
        async with open_client() as session:
            exchange = Exchange(
                session=session, redaction=Redaction(), timeout=9, connect_timeout=9, most=1000, key_hint=""
            )
            await exchange.ask(f"{server}/embeddings", b"{}")

    with pytest.raises(EngineUnavailableError, match="is not trusted: self-signed certificate"):
        asyncio.run(main())


def test_the_hint_is_about_the_reason(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "gone.pem"))
    assert refused("openai", server).hint.endswith(f"(REQUESTS_CA_BUNDLE is {tmp_path / 'gone.pem'}: not there)")
    other = certificate(tmp_path, x509.DNSName("elsewhere.example"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
    with in_process(tls=other) as url:
        assert refused("openai", url).hint.startswith("use the name that the certificate is for")
    with pytest.raises(EngineUnavailableError, match=r"^no TLS connection to https://gpu1: ") as told:
        check_tls(ssl.SSLError(1, "[SSL] wrong version number"), "https://gpu1/v1?key=abc", EngineUnavailableError)
    assert "http://" in told.value.hint


def test_the_hub_behind_a_company_is_trusted_by_the_same_variables(
    ours: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils._http import default_client_factory

    def told() -> str:
        with pytest.raises(DatasetError) as caught:
            list_files(DataSet(repo="a/b", id="b"), patience=Patience(attempts=1))
        return caught.value.message

    monkeypatch.setenv("HF_ENDPOINT", server.removesuffix("/v1"))
    hub.set_client_factory(default_client_factory)
    try:
        assert told() == "the certificate of the hub is not trusted: self-signed certificate"
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ours))
        assert "no such data set" in told()
    finally:
        hub.set_client_factory(default_client_factory)
