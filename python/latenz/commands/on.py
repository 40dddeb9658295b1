"""The option `--on`: another machine than this one."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latenz.remote import Target, TargetUrl

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="URL",
        help="Another machine instead: ssh://[USER@]HOST[:PORT], labgrid:PLACE, podman:NAME,"
        " docker:NAME, local:.",
    ),
]


def target_of(url: str | None) -> "TargetUrl | None":
    """Return the target that the option names; None: this machine.

    Raises:
        BadInput: It names none.
    """
    if url is None:
        return None
    from latenz.remote import TargetUrl

    return TargetUrl.parse(url)


@contextmanager
def target_at(url: str | None) -> "Iterator[Target | None]":
    """Keep an agent on the target that the option names, until the end of the block.

    Raises:
        BadInput: It names none, or it cannot be reached.
    """
    target = target_of(url)
    if target is None:
        yield None
        return
    from latenz.remote import opened
    from latenz.remote.setup import ensure_agents

    ensure_agents(target)
    with opened(target) as machine:
        yield machine


@contextmanager
def machine_of(url: str | None) -> "Iterator[Target | None]":
    """Ask the target that the option names, instead of this machine, until the end of the block.

    Raises:
        BadInput: It names none, or it cannot be reached.
    """
    with target_at(url) as target, asking(target):
        yield target


def asking(target: "Target | None") -> AbstractContextManager[None]:
    """Ask a target instead of this machine until the end of the block; None: this machine."""
    from latenz.machine import measuring

    return measuring(target) if target else nullcontext()


@contextmanager
def machine_at(root: Path, url: str | None) -> Iterator[None]:
    """The same, for commands that also take another machine's files.

    Raises:
        BadInput: Both are given; or as `machine_of`.
    """
    from latenz.errors import BadInput

    if url is not None and root != Path("/"):
        raise BadInput("is of no use with --root", "--on", "leave one of them out")
    with machine_of(url):
        yield
