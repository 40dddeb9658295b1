"""Opens labgrid environments, and tells mistakes in them in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labgrid import Environment, Target

from latenz.boards.protocol import PayloadProtocol
from latenz.errors import BadInput


@contextmanager
def board_in(path: Path) -> Iterator[tuple[Target, PayloadProtocol]]:
    """Open the board of an environment, and switch it off at the end.

    Args:
        path: The environment's file.

    Raises:
        BadInput: labgrid does not accept the file, or it has no board that boots payloads.
    """
    try:
        environment = Environment(str(path))
        target = environment.get_target("main")
        if target is None:
            raise BadInput("has no target 'main'", str(path), "see docs/boards.md")
        driver: PayloadProtocol = target.get_driver(PayloadProtocol, activate=False)
    except BadInput:
        raise
    except Exception as error:  # labgrid, YAML and each driver have their own
        reason = str(error) or type(error).__name__
        raise BadInput(f"labgrid does not accept it: {reason}", str(path)) from None
    try:
        yield target, driver
    finally:
        target.cleanup()
        environment.cleanup()
