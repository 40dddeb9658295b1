"""Hands inputs that libFuzzer makes to readers in Python: python_target.py TARGET [OPTION|FILE]...

The options are libFuzzer's, as for the targets in C++; a file is read once.
"""

import re
import resource
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

# An editable install's finder loads modules in a way of its own, which cannot be instrumented.
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
sys.meta_path.sort(key=lambda finder: type(finder).__module__.startswith("_editable"))

with atheris.instrument_imports(include=["latenz"]):
    from latenz.errors import BadInput
    from mutations import mutate
    from outcomes import Reader, outcome
    from targets import TARGETS, Target

_MOST_MEMORY_BYTES = 1 << 30
"""For reading one input, besides what the program has when it starts."""


class Feeder:
    """Hands inputs to the readers of a target, as a file in memory.

    Args:
        target: In Python.
        folder: Where the file is put.
    """

    def __init__(self, target: Target, folder: Path) -> None:
        self._path = folder / "input"
        with atheris.instrument_imports(include=["latenz", "readers"]):
            self._readers: list[Reader] = target.functions()
            for known in target.whole_inputs():  # imports what is imported when it is needed
                with suppress(Exception):
                    self.feed(known.read_bytes())

    def feed(self, content: bytes) -> None:
        """Hand over one input; what leaves this is a finding."""
        self._path.write_bytes(content)
        for reader in self._readers:
            outcome(reader, self._path)


def _mutated(content: bytes, most: int, seed: int) -> bytes:
    if seed % 2:
        return mutate(content, most, seed)
    return bytes(atheris.Mutate(content, most))


def _limit_memory() -> None:
    """Let what takes too much fail where it does, and not the machine."""
    has_kib = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    limit = _MOST_MEMORY_BYTES + (int(has_kib[1]) << 10 if has_kib else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def main() -> None:
    """Run libFuzzer."""
    name, *options = sys.argv[1:] or [""]
    target = next((each for each in TARGETS if each.name == name and each.readers), None)
    if target is None:
        raise BadInput(
            f"{name!r} is not a target in Python", "python_target.py", "see fuzz/targets.py"
        )
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        feeder = Feeder(target, Path(folder))
        _limit_memory()
        mutator = {"custom_mutator": _mutated} if target.is_text else {}
        atheris.Setup([sys.argv[0], *options], feeder.feed, **mutator)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
