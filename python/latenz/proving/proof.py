"""What a proof of settings is made of: what is tried, how often, and what the samples say of it.

Nothing is changed or measured here; `latenz.tune.proving` does that.

Each group of entries is measured without and with it, in turns and in random order, on top of what
was found to help before it. The intervals are those of `latenz.compare` over repetitions. All that
a proof says of its settings holds together at its confidence (Bonferroni): whoever tries twenty
settings that do nothing would otherwise find one that seems to help, every other time.
"""

import json
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.compare import Comparison, Settings, compare
from latenz.compare.estimate import fewest_repetitions
from latenz.compare.judge import interval_of
from latenz.compare.side import QUANTILES
from latenz.errors import BadInput, first_mistake
from latenz.files import replacing
from latenz.model import SampleSet, TimeBase
from latenz.statistics import summarize
from latenz.tune.changes import (
    AnyChange,
    FileChange,
    FolderChange,
    LinkChange,
    PartitionChange,
    RestartChange,
    TunedChange,
)
from latenz.tune.model import Entry
from latenz.tune.plan import Plan

CONFIDENCE = 0.95
"""At which all that a proof says holds together."""
FIGURES = ("p99", "p99.9", "p99.99", "max", "mean", "median", "p90")
RECORD = "proof.json"
_UNITS = "/etc/systemd/system/"
_MOST_RECORD = 16 << 20

Figure = Literal["p99", "p99.9", "p99.99", "max", "mean", "median", "p90"]
"""What is to become smaller; `max` is the mean of the repetitions' largest latencies."""
Outcome = Literal["helps", "harms", "mixed", "not shown", "refused", "not measured"]
"""`mixed`: it helps one sample set and harms another. `refused`: the kernel took none of it."""
State = Literal["under way", "interrupted", "waiting for a restart", "ended"]


class _Noted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gain(_Noted):
    """What became of one sample set.

    Attributes:
        name: Its name, without the number of the repetition.
        without_ns: The figure without the settings, mean of the repetitions.
        with_ns: The figure with them.
        low_ns: Lower end of the interval of the difference, with - without; None: there is none.
        high_ns: Its upper end.
        why_no_interval: What is missing for one; empty if there is one.
    """

    name: str
    without_ns: float | None
    with_ns: float | None
    low_ns: float | None = None
    high_ns: float | None = None
    why_no_interval: str = ""


class Trial(_Noted):
    """What became of a group of entries that was tried.

    Attributes:
        entries: Their ids.
        outcome: What the samples say.
        reason: What else to know of it; empty if there is nothing.
        gains: For each sample set that is judged.
        folder: Where its runs `without` and `with` are, in the proof's folder.
    """

    entries: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    gains: tuple[Gain, ...] = ()
    folder: str = ""


class Wanted(_Noted):
    """What the user asked for.

    Attributes:
        experiment: The file of the experiment, as an absolute path.
        digest: SHA-256 of its content: it must not change in the middle.
        condition: Pattern of the conditions to measure; None: all.
        duration_ns: How long each is measured instead; None: as the experiment says.
        cpus: As `--cpus`.
        profile: As `--profile`.
        include: As `--include`.
        only: As `--only`.
        skip: As `--skip`.
        figure: What is to become smaller.
        restart: Also try what needs a restart.
    """

    experiment: str
    digest: str
    condition: str | None = None
    duration_ns: Annotated[int, Field(gt=0)] | None = None
    cpus: str | None = None
    profile: str | None = None
    include: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    figure: Figure = "p99"
    restart: bool = False


class Record(_Noted):
    """How far a proof is: the file `proof.json` of its folder, replaced whole after each trial.

    Attributes:
        began: When, UTC, ISO 8601.
        isolated: The CPUs chosen, as a list: only their sample sets are judged, if there are any.
        profile: What the machine is for.
        groups: What is tried while the machine runs, in this order.
        later: What takes a restart; tried last and together, if it was asked for.
        statements: How many intervals are looked at.
        repetitions: How often each group is measured with, and how often without.
        seed: Of the random order.
        trials: What was tried so far.
        together: All that helps, against nothing; None: fewer than two do, or it is not yet known.
        waiting: What the kernel calls the boot that has to end before it goes on; empty: none.
        waiting_in: Folder of the trial that waits.
        not_restored: What the machine did not take back, and why, while it was switched last.
    """

    proof: Literal[1] = 1
    wanted: Wanted
    began: str
    isolated: str
    profile: str
    groups: tuple[tuple[str, ...], ...]
    later: tuple[str, ...]
    statements: Annotated[int, Field(ge=1)]
    repetitions: Annotated[int, Field(ge=2, le=10_000)]
    seed: int
    trials: tuple[Trial, ...] = ()
    together: Trial | None = None
    waiting: str = ""
    waiting_in: str = ""
    not_restored: tuple[str, ...] = ()
    state: State = "under way"

    @property
    def confidence_of_each(self) -> float:
        """Confidence of each interval, so that all hold together."""
        return 1 - (1 - CONFIDENCE) / self.statements

    @property
    def helping(self) -> tuple[str, ...]:
        """Ids of the entries that help."""
        return tuple(
            entry for each in self.trials if each.outcome == "helps" for entry in each.entries
        )

    @property
    def worth_keeping(self) -> bool:
        """Whether it has ended with settings that help, and do no less together than none."""
        tried_together = self.together is None or self.together.outcome in ("helps", "not shown")
        is_over = self.state == "ended" and not self.not_restored
        return is_over and bool(self.helping) and tried_together

    @property
    def left(self) -> list[tuple[str, ...]]:
        """The groups that are to be tried while the machine runs, and were not."""
        tried = {each.entries for each in self.trials}
        return [group for group in self.groups if group not in tried]

    @property
    def restart_left(self) -> bool:
        """Whether what takes a restart is to be tried, and was not."""
        tried = {each.entries for each in self.trials}
        return self.wanted.restart and bool(self.later) and self.later not in tried

    def with_(self, **changes: object) -> Self:
        """Return the record with other values."""
        return self.model_copy(update=changes)

    def save(self, folder: Path) -> None:
        """Write it into the proof's folder, readable by others, written by us alone."""
        with replacing(folder / RECORD, renewable=False) as partial:
            partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """Read the record of a proof.

        Raises:
            BadInput: There is none, it is damaged, or others could have written it.
        """
        path = folder / RECORD
        remedy = "name the folder of a proof with -o, or begin one"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                text = file.read(_MOST_RECORD + 1)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", str(path), remedy) from None
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
            raise BadInput("could be written by others", str(path), "look who did, see its owner")
        if len(text) > _MOST_RECORD:
            raise BadInput("is too large for a record", str(path), remedy)
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise BadInput(first_mistake(error), str(path), remedy) from None


def digest_of(path: Path) -> str:
    """Return what stands for the content of an experiment file.

    Raises:
        BadInput: It cannot be read.
    """
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None


def groups_of(
    plan: Plan, entries: Sequence[Entry]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Divide what a plan changes into what can be tried now, and what takes a restart.

    Entries that want the same change cannot be told from each other: they are one group. Groups
    come in the order of `entries`, that with the greatest expected effect first.

    Args:
        plan: All that would be changed.
        entries: The entries that were looked at, in the order in which to try them.
    """
    now = [set(change.entries) for change in plan.changes if acts_now(change)]
    groups: list[set[str]] = []
    for wanting in now:
        touching = [group for group in groups if group & wanting]
        groups = [group for group in groups if not group & wanting]
        groups.append(wanting.union(*touching))
    order = [entry.id for entry in entries]
    ranked = [tuple(sorted(group, key=order.index)) for group in groups]
    at_once = {entry for group in ranked for entry in group}
    lasting = {entry for change in plan.changes for entry in change.entries} - at_once
    later = tuple(sorted(lasting, key=order.index))
    return sorted(ranked, key=lambda group: order.index(group[0])), later


def acts_now(change: AnyChange) -> bool:
    """Return whether a change acts at once, and for no longer than the machine runs."""
    return change.fleeting and not isinstance(change, TunedChange)


def changes_of(plan: Plan, entries: Iterable[str]) -> list[AnyChange]:
    """Return what acts at once of some entries, in the order of the plan.

    A service that is started again needs its drop-in, and the partition its unit: these are files
    of `/etc/systemd/system`, and the folders that they lie in. No other file is touched by a trial.
    """
    wanted = set(entries)
    chosen = [change for change in plan.changes if wanted & set(change.entries)]
    by_unit = {
        entry
        for change in chosen
        if isinstance(change, RestartChange | PartitionChange)
        for entry in change.entries
    }
    units = {
        change.path
        for change in chosen
        if isinstance(change, FileChange | LinkChange)
        and change.path.startswith(_UNITS)
        and by_unit & set(change.entries)
    }
    return [change for change in plan.changes if _is_tried(change, wanted, units)]


def _is_tried(change: AnyChange, entries: set[str], units: set[str]) -> bool:
    if isinstance(change, FolderChange):
        return any(path.startswith(f"{change.path}/") for path in units)
    if isinstance(change, FileChange | LinkChange):
        return change.path in units
    return acts_now(change) and bool(entries & set(change.entries))


def statements_of(groups: int, later: bool, sets: int) -> int:
    """Return how many intervals a proof looks at: those of all that helps together included."""
    trials = groups + later + (groups > 1)
    return max(trials * sets, 1)


def repetitions_for(statements: int, asked: int) -> int:
    """Return how often each side is measured, so that a difference can be told at all."""
    return max(asked, fewest_repetitions((1 - CONFIDENCE) / statements, paired=False))


def judged_sets(sets: Sequence[SampleSet], isolated: frozenset[int]) -> list[SampleSet]:
    """Return the sample sets that a setting is judged by.

    Of this machine's clock; and of the isolated CPUs alone if any are of these: what is moved away
    from them is meant to disturb the others.
    """
    real = [each for each in sets if each.metadata.time_base is TimeBase.SILICON]
    own = [each for each in real if each.metadata.cpu in isolated]
    return own or real


def untold(sets: Sequence[SampleSet], figure: Figure) -> str | None:
    """Return the name of a sample set that is too short to tell a figure; None if there is none."""
    if figure not in QUANTILES:
        return None
    for each in sets:
        if summarize(each).quantiles_ns[QUANTILES[figure]] is None:
            return each.metadata.name
    return None


def judge_trial(
    entries: tuple[str, ...],
    without: Sequence[SampleSet],
    with_: Sequence[SampleSet],
    figure: Figure,
    confidence: float,
) -> Trial:
    """Say what samples tell of settings.

    Args:
        entries: What was tried.
        without: The repetitions without it.
        with_: Those with it.
        figure: What is to become smaller.
        confidence: Of each interval.
    """
    found = compare(without, with_, Settings(confidence=CONFIDENCE))
    gains = gains_of(found, figure, confidence)
    unlike = (*found.unmatched_a, *found.unmatched_b)
    reason = f"only one side has {unlike[0]}" if unlike else ""
    return Trial(entries=entries, outcome=outcome_of(gains), gains=gains, reason=reason)


def gains_of(found: Comparison, figure: Figure, confidence: float) -> tuple[Gain, ...]:
    """Return what a comparison tells of a figure, set by set, with intervals at a confidence."""
    gains = []
    for pair in found.pairs:
        effect = interval_of(pair, figure)
        low, high = effect.low, effect.high
        why = effect.why_no_interval or ""
        if effect.contrast is not None:
            low, high = effect.contrast.difference(confidence) or (None, None)
            why = "" if low is not None else "too few repetitions for so many statements"
        gains.append(
            Gain(
                name=pair.name,
                without_ns=effect.a,
                with_ns=effect.b,
                low_ns=low,
                high_ns=high,
                why_no_interval=why,
            )
        )
    return tuple(gains)


def outcome_of(gains: Sequence[Gain]) -> Outcome:
    """Say what settings do that do this to each sample set; less latency is better."""
    better = any(each.high_ns is not None and each.high_ns < 0 for each in gains)
    worse = any(each.low_ns is not None and each.low_ns > 0 for each in gains)
    if better and worse:
        return "mixed"
    return "helps" if better else "harms" if worse else "not shown"
