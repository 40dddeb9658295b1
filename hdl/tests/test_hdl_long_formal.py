"""Proofs of every overlap policy, width and synchroniser, and of the slaves with every addition."""

import pytest
from test_hdl_formal import QUICK

from formal.prove import PROOFS, Proof, prove

LONG = [proof for proof in PROOFS if proof not in QUICK and not proof.refuted]


@pytest.mark.parametrize("proof", LONG, ids=lambda proof: proof.name)
def test_proved_by_induction(proof: Proof) -> None:
    result = prove(proof)
    assert result.failures == []
    assert result.properties >= 20
    assert result.covers >= 8
