"""The proof of the core, small; the others are in test_hdl_long_formal.py."""

import pytest

from formal import prove
from formal.prove import PROOFS

QUICK = [proof for proof in PROOFS if proof.name == "core, 3 bit, drop"]


@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_proved_by_induction(proof: prove.Proof) -> None:
    result = prove.prove(proof)
    assert result.failures == []
    assert result.properties >= 20
    assert result.covers >= 8


def test_what_is_false_is_refuted() -> None:
    planted = [proof for proof in PROOFS if proof.refuted]
    assert [prove.prove(proof).failures for proof in planted] == [[]]


def test_a_broken_design_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One gate of the netlist is wrong: an acknowledgement counts without its interrupt."""
    netlist = prove.flow.netlist

    def broken(top: str, generics: prove.flow.Generics, *lists: str) -> str:
        text = netlist(top, generics, *lists)
        assert text.count("assign ack_rises = ack_seen;") == 1
        return text.replace(
            "assign ack_rises = ack_seen;", "assign ack_rises = ack_seen | irq_rises;"
        )

    monkeypatch.setattr(prove.flow, "netlist", broken)
    assert any("a_sample" in line for line in prove.prove(QUICK[0]).failures)


def test_every_policy_is_proved() -> None:
    proved = {
        (proof.top, str(proof.generics.get("overlap_policy_g")))
        for proof in PROOFS
        if not proof.refuted
    }
    for top in ("latencies_core", "latencies_ip"):
        assert {(top, policy) for policy in ("drop", "restart", "queue")} <= proved
