"""The secret that a bridge and its clients share: read from its file, proven, never told.

Each side proves that it knows the secret by an HMAC-SHA256 over two numbers that are used once; the
same is in probes/src/ip_bridge_secret.cpp. What follows on the connection is not protected by it.
"""

import hmac
import os
import secrets
import stat
from pathlib import Path

from latenz.errors import BadInput

NONCE_BYTES = 32
_SHORTEST, _LONGEST = 32, 4096
_PRIVATE = "make it yours alone, by chown and chmod 600"


def read_secret(path: Path) -> bytes:
    """Return the content of a file that nobody but its owner can read, without the line's end.

    Raises:
        BadInput: It cannot be read, others may read it, or it is shorter than 32 characters.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", f"--secret {path}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput("is not a regular file", f"--secret {path}")
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise BadInput("others may read it, or own it", f"--secret {path}", _PRIVATE)
        content = file.read(_LONGEST + 1).rstrip(b"\r\n")
    if not _SHORTEST <= len(content) <= _LONGEST:
        raise BadInput(
            f"has {len(content)} characters", f"--secret {path}", f"{_SHORTEST} to {_LONGEST}"
        )
    return content


class Handshake:
    """The client's side of one connection.

    Args:
        secret: What both sides know.
        challenge: The board's number.
    """

    def __init__(self, secret: bytes, challenge: bytes) -> None:
        self._secret = secret
        self._challenge = challenge
        self._own = secrets.token_bytes(NONCE_BYTES)

    def answer(self) -> bytes:
        """Return this side's number and its proof."""
        return self._own + self._proof(b"client")

    def accepts(self, proof: bytes) -> bool:
        """Whether the board's proof shows that it knows the secret."""
        return hmac.compare_digest(proof, self._proof(b"board"))

    def _proof(self, who: bytes) -> bytes:
        message = b"latenz-ip-bridge 1 " + who + self._challenge + self._own
        return hmac.digest(self._secret, message, "sha256")
