"""Proofs of every overlap policy, width and synchroniser, and of the slaves with every addition."""

import pytest
from test_hdl_formal import QUICK

from formal.prove import PROOFS, Proof, prove

pytestmark = [pytest.mark.proofs, pytest.mark.long]

LONG = [proof for proof in PROOFS if proof not in QUICK and not proof.refuted]
FEWEST = {"event counter, 32 bit": (4, 1)}  # properties and covers; else as below


@pytest.mark.parametrize("proof", LONG, ids=lambda proof: proof.name)
def test_proved_by_induction(proof: Proof) -> None:
    result = prove(proof)
    assert result.failures == []
    properties, covers = FEWEST.get(proof.name, (20, 8))
    assert result.properties >= properties
    assert result.covers >= covers
