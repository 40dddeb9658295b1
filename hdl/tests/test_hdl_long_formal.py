"""Proofs of every overlap policy, width and synchroniser, of the slaves, of the parts around."""

import re
from dataclasses import replace

import pytest
from test_hdl_formal import QUICK

from formal import prove as proving
from formal.prove import PROOFS, Proof, prove

pytestmark = [pytest.mark.proofs, pytest.mark.long]

LONG = [proof for proof in PROOFS if proof not in QUICK and not proof.refuted]
FEWEST = {  # properties and covers; else as below
    "event counter, 32 bit": (4, 1),
    "stream merger, 3 inputs": (8, 6),
}
BROKEN = {  # one gate of a netlist, what stands in its place, and the property that must see it
    "stream merger, 3 inputs": (
        r"assign m_axis_tvalid = valid;",
        "assign m_axis_tvalid = valid & m_axis_tready;",
        "a_no_idling",
    ),
    "selector, 3 channels": (
        r"assign read_from = \w+;",
        "assign read_from = araddr[4] ? 3'b010 : 3'b001;",
        "a_read_goes_there",
    ),
    "ring writer, any ring": (r"assign beyond = \w+;", "assign beyond = 2'b0;", "a_has_place"),
}


@pytest.mark.parametrize("proof", LONG, ids=lambda proof: proof.name)
def test_proved_by_induction(proof: Proof) -> None:
    result = prove(proof)
    assert result.failures == []
    properties, covers = FEWEST.get(proof.name, (20, 8))
    assert result.properties >= properties
    assert result.covers >= covers


def plant(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let every netlist that is to be proved have `new` in place of its only `old`."""
    netlist = proving.flow.netlist

    def broken(top: str, generics: proving.flow.Generics, *lists: str) -> str:
        text, count = re.subn(old, new, netlist(top, generics, *lists))
        assert count == 1
        return text

    monkeypatch.setattr(proving.flow, "netlist", broken)


def named(name: str) -> Proof:
    [proof] = [proof for proof in PROOFS if proof.name == name]
    return proof


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, refuted = BROKEN[name]
    plant(monkeypatch, old, new)
    assert prove(replace(named(name), refuted=refuted)).failures == []


def test_a_counter_that_wraps_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of the review that no simulation lasts long enough for: only the induction sees it."""
    plant(monkeypatch, r"(assign \w+ = event_now) & \w+;", r"\1;")
    _, refuted = prove(named("event counter, 32 bit")).failures
    assert refuted == "-i -t 3: Assert failed in event_counter_properties: a_stops"
