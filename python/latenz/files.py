"""Files that appear only when they are whole."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from latenz.errors import BadInput


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new file that takes the place of `path` at the end, unless an error comes first.

    What is no regular file, such as /dev/null or /dev/stdout, is written to and never replaced.

    Raises:
        BadInput: The path is a folder, or cannot be written.
    """
    partial = None
    try:
        if path.is_dir():
            raise BadInput("is a folder", str(path), "name a file")
        special = path.exists() and not path.is_file()
        folder = None if special else path.parent
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
        os.close(descriptor)
        partial = Path(name)
        yield partial
        if special:
            with partial.open("rb") as whole, path.open("wb") as place:
                shutil.copyfileobj(whole, place)
        else:
            partial.chmod(0o666 & ~_umask())
            partial.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"cannot be written ({reason})", str(path), "name another file") from None
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
