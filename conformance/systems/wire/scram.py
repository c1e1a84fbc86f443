"""The client's side of SCRAM (RFC 5802, RFC 7677), as Kafka's brokers speak it: no channel binding.

Both sides prove that they know the password: a broker that cannot is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Mechanism -> hash."""
_HEADER = "n,,"


class ScramError(Exception):
    """The server's message is not what the exchange allows; the message says why."""


@dataclass(frozen=True, slots=True)
class Scram:
    """One exchange: `first`, then `final` of the server's answer, then `verify` its last one."""

    mechanism: str
    user: str
    password: str
    nonce: str
    """Printable, without a comma, new for each exchange."""

    @property
    def _first_bare(self) -> str:
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        return f"n={name},r={self.nonce}"

    def first(self) -> bytes:
        """client-first-message."""
        return (_HEADER + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """client-final-message. Raises Refused for a nonce that is not an extension of ours."""
        nonce = _fields(server_first).get("r", "")
        if not nonce.startswith(self.nonce) or nonce == self.nonce:
            raise ScramError("its nonce does not continue ours")
        without_proof = self._without_proof(nonce)
        client_key = self._hmac(self._salted(server_first), b"Client Key")
        stored_key = hashlib.new(HASHES[self.mechanism], client_key).digest()
        signature = self._hmac(stored_key, self._auth_message(server_first, without_proof))
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_first: bytes, server_final: bytes) -> None:
        """Raises Refused unless the server has proved that it knows the password too."""
        fields = _fields(server_final)
        if "e" in fields:
            raise ScramError(f"it said {fields['e']}")
        without_proof = self._without_proof(_fields(server_first)["r"])
        server_key = self._hmac(self._salted(server_first), b"Server Key")
        expected = self._hmac(server_key, self._auth_message(server_first, without_proof))
        if not hmac.compare_digest(fields.get("v", ""), base64.b64encode(expected).decode()):
            raise ScramError("its signature is not that of somebody who knows the password")

    def _without_proof(self, nonce: str) -> str:
        return f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"

    def _salted(self, server_first: bytes) -> bytes:
        fields = _fields(server_first)
        try:
            salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        except (KeyError, ValueError) as error:
            raise ScramError("it gives no salt and number of iterations") from error
        return _derived(HASHES[self.mechanism], self.password, salt, iterations)

    def _auth_message(self, server_first: bytes, without_proof: str) -> bytes:
        return b",".join([self._first_bare.encode(), server_first, without_proof.encode()])

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, HASHES[self.mechanism]).digest()


@lru_cache(maxsize=64)
def _derived(name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Thousands of hashes, and the same ones for each connection."""
    return hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode("utf-8", "replace").split(","))
    return {name: value for name, _, value in pairs}
