"""Small sample sets for the tests."""

from latenz.model import Metadata, SampleSet, TimeBase


def metadata(**changes: object) -> Metadata:
    return Metadata.model_validate({"name": "set", "time_base": TimeBase.SILICON, **changes})


def samples(values: list[int], **changes: object) -> SampleSet:
    return SampleSet.from_columns(metadata(**changes), latency_ns=values)


def histogram(cells: dict[int, int], width: int = 1, **changes: object) -> SampleSet:
    return SampleSet.from_columns(
        metadata(**changes),
        latency_ns=list(cells),
        width_ns=[width] * len(cells),
        count=list(cells.values()),
    )
