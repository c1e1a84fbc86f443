"""How a connection becomes one that the broker accepts: TLS, then SASL.

Kafka's own settings say so (`properties`). Stores in Java's forms are read with the keytool of the
Java that kconform needs anyway; Python's ssl takes PEM.
"""

from __future__ import annotations

import os
import secrets
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from conformance.errors import DataError, UserError
from conformance.inputs import read_text
from conformance.systems.wire.properties import login_of, read_properties
from conformance.systems.wire.scram import HASHES, Scram
from conformance.tla import find_java

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "PLAIN"
_STORE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, by which SASL mechanism."""

    mechanism: str
    user: str
    password: str

    def plain(self) -> bytes:
        """The one message of PLAIN (RFC 4616)."""
        return f"\0{self.user}\0{self.password}".encode()

    def scram(self) -> Scram:
        """A new exchange of SCRAM."""
        return Scram(self.mechanism, self.user, self.password, secrets.token_urlsafe(24))


@dataclass(frozen=True, slots=True)
class Security:
    """What a connection goes through before its first request; None: nothing of the kind."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


def security_of(config: str, tls_ca: str) -> Security:
    """What the file of settings says; `tls_ca`, a PEM file, asks for TLS and says whom to trust.

    Empty strings: not given. Raises UserError.
    """
    settings = dict(read_properties(Path(config))) if config else {}
    if tls_ca:
        settings.setdefault(
            "security.protocol", "SASL_SSL" if "sasl.mechanism" in settings else "SSL"
        )
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls_ca}
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise UserError(
            f"security.protocol={protocol} is none of Kafka's: {', '.join(_PROTOCOLS)}."
        )
    return Security(
        _context(settings) if protocol.endswith("SSL") else None,
        _login(settings) if protocol.startswith("SASL") else None,
    )


def _login(settings: Mapping[str, str]) -> Login:
    mechanism = settings.get("sasl.mechanism", "GSSAPI")  # Kafka's default
    if mechanism != PLAIN and mechanism not in HASHES:
        raise UserError(
            f"kconform does not speak the SASL mechanism {mechanism}. It knows {PLAIN}, "
            f"{' and '.join(HASHES)}: name one of them as sasl.mechanism."
        )
    return Login(mechanism, *login_of(settings.get("sasl.jaas.config", "")))


# ---- TLS -----------------------------------------------------------------------------------


def _context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") != ""
    trusted = _trusted(settings)
    try:
        if trusted:
            context.load_verify_locations(cadata=trusted)
        else:
            context.load_default_certs()
        _load_own(context, settings)
    except (ssl.SSLError, ValueError) as error:
        raise UserError(
            f"The certificates of the client's configuration cannot be used: {error}. They must "
            "be PEM, or a store whose type ssl.truststore.type says."
        ) from error
    return context


def _trusted(settings: Mapping[str, str]) -> str:
    """Whom to trust, as PEM; empty: whom the system trusts."""
    if "ssl.truststore.certificates" in settings:
        return settings["ssl.truststore.certificates"]
    location = settings.get("ssl.truststore.location", "")
    if not location:
        return ""
    if settings.get("ssl.truststore.type", "JKS").upper() == "PEM":
        return _text(location)
    return _exported(location, settings.get("ssl.truststore.password", ""))


def _load_own(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    """The client's own key and certificate, for brokers that ask (ssl.client.auth)."""
    chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    location = settings.get("ssl.keystore.location", "")
    password = settings.get("ssl.key.password")
    if chain and key:
        with tempfile.TemporaryDirectory() as folder:  # ssl reads keys from files only
            both = Path(folder) / "own.pem"
            both.touch(0o600)
            both.write_text(f"{key}\n{chain}\n", "utf-8")
            context.load_cert_chain(both, password=password)
    elif location and settings.get("ssl.keystore.type", "JKS").upper() == "PEM":
        _text(location)
        context.load_cert_chain(location, password=password)
    elif location:
        raise UserError(
            f"kconform reads a client's key as PEM only, not {location}. Convert it, for example "
            "with `openssl pkcs12 -in client.p12 -out client.pem -nodes`, and say "
            "ssl.keystore.type=PEM."
        )


def _text(location: str) -> str:
    try:
        return read_text(Path(location))
    except DataError as error:
        raise DataError(f"{error} It has to be a PEM file.") from error


@lru_cache(maxsize=8)
def _exported(location: str, password: str) -> str:
    """The certificates of a JKS or PKCS#12 store, as PEM."""
    java, _ = find_java(os.environ)
    keytool = java.resolve().parent / "keytool"
    command = [str(keytool), "-list", "-rfc", "-keystore", location]
    environ = dict(os.environ)
    if password:
        # By the environment: a command line can be read by others.
        command += ["-storepass:env", "KCONFORM_STORE_PASSWORD"]
        environ["KCONFORM_STORE_PASSWORD"] = password
    done = subprocess.run(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_STORE_SECONDS,
    )
    if done.returncode or "BEGIN CERTIFICATE" not in done.stdout:
        words = (done.stdout + done.stderr).strip()
        raise UserError(
            f"The trust store {location} cannot be read: {words[-300:]} Check "
            "ssl.truststore.location, ssl.truststore.password and ssl.truststore.type."
        )
    return done.stdout
