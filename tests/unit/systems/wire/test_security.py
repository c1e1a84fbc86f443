"""How a connection to a secured broker is said, and what SCRAM sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.systems.wire.properties import login_of, read_properties
from conformance.systems.wire.scram import Scram, ScramError
from conformance.systems.wire.security import security_of

# The exchange of RFC 7677, section 3.
SCRAM = Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_says_what_the_rfc_says() -> None:
    assert SCRAM.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert SCRAM.final(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    SCRAM.verify(SERVER_FIRST, SERVER_FINAL)


@pytest.mark.parametrize(
    ("first", "final", "why"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", b"", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", b"", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,i=4096", b"", "salt"),
        (SERVER_FIRST, b"e=invalid-proof", "invalid-proof"),
        (SERVER_FIRST, b"v=AAAA", "signature"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_refused(
    first: bytes, final: bytes, why: str
) -> None:
    with pytest.raises(ScramError, match=why):
        exchange(first, final)


def exchange(first: bytes, final: bytes) -> None:
    SCRAM.final(first)
    SCRAM.verify(first, final)


def test_names_with_signs_of_the_exchange_are_escaped() -> None:
    assert Scram("SCRAM-SHA-256", "a,b=c", "p", "n").first() == b"n,,n=a=2Cb=3Dc,r=n"


def test_a_clients_configuration_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# a comment\n! another\nsecurity.protocol = SASL_SSL\nsasl.mechanism:PLAIN\n"
        'sasl.jaas.config=Login required \\\n    username="a" password="b\\\\"c";\n'
        "ssl.endpoint.identification.algorithm=\nsnow=\\u2744\n",
        "utf-8",
    )
    assert read_properties(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'Login required username="a" password="b\\"c";',
        "ssl.endpoint.identification.algorithm": "",
        "snow": "❄",
    }
    assert login_of(read_properties(path)["sasl.jaas.config"]) == ("a", 'b"c')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("security.protocol=TLS", "is none of Kafka's"),
        ("security.protocol=SASL_PLAINTEXT", "GSSAPI"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "no username"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/nowhere.pem",
            "has to be a PEM file",
        ),
        (
            "security.protocol=SSL\nssl.truststore.certificates=nothing",
            "certificates of the client's configuration",
        ),
        (
            "security.protocol=SSL\nssl.keystore.location=own.jks",
            "ssl.keystore.type=PEM",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_mistake(
    text: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError, match=told):
        security_of(str(path), "")


def test_plaintext_needs_nothing() -> None:
    security = security_of("", "")
    assert (security.tls, security.login) == (None, None)
