"""What was recorded around the worst samples is told in words."""

import re
from pathlib import Path

import pytest

from latenz.report.contexts import in_words

ROOT = Path(__file__).parents[3]


def keys_in_the_docs() -> set[str]:
    text = (ROOT / "docs" / "probe.md").read_text(encoding="utf-8")
    table = text.split("What their context says:")[1].split("\n\n")[1]
    return set(re.findall(r"`([a-z_]+)`", table)) - {"swapper"}


def keys_in_the_probe() -> set[str]:
    sources = ROOT / "probes" / "src"
    text = (sources / "recording.cpp").read_text(encoding="utf-8")
    account = text.split('key("context").open_object()')[1].split("close_object")[0]
    names = (sources / "kernel_counters.hpp").read_text(encoding="utf-8")
    counted = names.split("counter_names{")[1].split("}")[0]
    return set(re.findall(r'"([a-z_]+)"', account + counted))


def test_every_key_that_the_probe_writes_has_words() -> None:
    keys = keys_in_the_docs() | keys_in_the_probe()
    assert {"page_faults", "window_smis", "moved_from", "frequency_khz"} <= keys
    for key in sorted(keys):
        ((told, _),) = in_words({key: 1})
        assert "_" not in told
        assert "window" not in told.split()
        assert not told.startswith("own ")
        assert not told.endswith((" ns", "khz", "smis"))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("exact_ns", 1_234_567, ("since the activation before", "1.235 ms")),
        ("window_steal_ns", 0, ("taken by the hypervisor", "0 ns")),
        ("frequency_khz", 2_595_124, ("clock frequency", "2,595 MHz")),
        ("page_faults", 12_345, ("page faults", "12,345")),
        ("ran_before", "kworker/1:2", ("ran before", "kworker/1:2")),
        ("mode_of_fan", 3, ("mode of fan", "3")),
    ],
)
def test_values_have_units(key: str, value: int | str, told: tuple[str, str]) -> None:
    assert in_words({key: value}) == [told]
