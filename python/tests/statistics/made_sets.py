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


def played(wake_ups: list[int], period_ns: int) -> tuple[list[int], list[int], list[int]]:
    """Play activations one by one: latencies with a sample, skips after each, all latencies."""
    latencies, missed, every = [], [], []
    due = 0
    for latency in wake_ups:
        woken = due + latency
        latencies.append(latency)
        every.append(latency)
        skipped = 0
        due += period_ns
        while due <= woken:
            every.append(woken - due)
            skipped += 1
            due += period_ns
        missed.append(skipped)
    return latencies, missed, every
