"""What commands that watch something share: one report, or one after another until Ctrl-C."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from rich.console import RenderableType

Report = TypeVar("Report")


class Printer(Generic[Report]):
    """Prints reports of one kind.

    Args:
        table: Makes a report a table.
        to_json: Makes a report what JSON can hold.
        json: Print one JSON document a report rather than a table.
    """

    def __init__(
        self,
        table: "Callable[[Report], RenderableType]",
        to_json: Callable[[Report], object],
        json: bool,
    ) -> None:
        self._table = table
        self._to_json = to_json
        self._json = json

    def show(self, report: Report) -> None:
        """Print one report."""
        if self._json:
            import json

            print(json.dumps(self._to_json(report), allow_nan=False), flush=True)  # noqa: T201
        else:
            from latenz.console import Console

            Console().print(self._table(report))

    def follow(self, first: Callable[[], Report], newer: Callable[[], Report]) -> None:
        """Print reports until Ctrl-C: on a terminal one table that changes, else one below another.

        Args:
            first: Gives a report at once.
            newer: Waits, and gives the next one.
        """
        if self._json or not sys.stdout.isatty():
            while True:
                self.show(newer())
        from rich.live import Live

        from latenz.console import Console

        with Live(self._table(first()), console=Console(), auto_refresh=False) as live:
            while True:
                live.update(self._table(newer()), refresh=True)
