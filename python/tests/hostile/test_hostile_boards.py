"""A board, or a guest, that tells without end or too deep."""

import sys
from pathlib import Path

import pytest

from latenz.boards.console import Collector, Received

sys.path.insert(0, str(Path(__file__).parent.parent / "firmware"))
from frame_lines import Speaker

pytestmark = pytest.mark.fuzzing


def heard(*lines: bytes) -> Received:
    collector = Collector()
    collector.feed([(0, line + b"\n") for line in lines])
    collector.finish()
    return collector.received


def test_what_a_board_says_of_itself_may_lie_too_deep() -> None:
    received = heard(*Speaker().message("hello", b"[" * 4000))
    assert received.hello is None
    assert received.damaged == 1


def test_notes_faults_and_disasters_without_end_are_kept_up_to_a_number() -> None:
    speaker = Speaker()
    lines = [line for _ in range(3000) for line in speaker.message("note", b"again")]
    lines += [line for _ in range(3000) for line in speaker.message("fault", b"again")]
    lines += [b"Kernel panic - not syncing: again"] * 3000
    received = heard(*lines)
    kept = {len(each) for each in (received.notes, received.faults, received.disasters)}
    assert kept == {2000}
    assert received.notes[0] == "again"
