"""Who evaluates: processes on this machine, or the workers of a Dask cluster."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, Protocol

from latenz.errors import BadInput
from latenz.installation import add_python

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE_S = 20
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://\S+:\d{1,5}")


class Workers(Protocol):
    """Evaluate chunks somewhere.

    Attributes:
        at_once: How many chunks to hand out before the first comes back.
    """

    at_once: int

    def submit(self, function: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Hand out work."""

    def renew(self) -> None:
        """Replace workers that were lost; what they were doing must be submitted again."""

    def lost(self, error: BaseException) -> bool:
        """Tell whether an error of a future means that workers were lost."""

    def close(self) -> None:
        """Let go of the workers; what was not begun is dropped, what was begun is finished."""


class LocalWorkers:
    """Processes on this machine, one for each CPU that we may use.

    Args:
        count: Another number of processes.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = count or len(os.sched_getaffinity(0))
        self.at_once = 2 * self._count
        self._executor: Executor | None = None

    def submit(self, function: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Hand out work; the first starts the processes."""
        # Ctrl-C at a terminal reaches all processes of the command; only this one heeds it. What is
        # blocked here stays blocked in processes that are started meanwhile.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self._count, get_context("spawn"), initializer=_end_with_parent
                )
            return self._executor.submit(function, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def renew(self) -> None:
        """Start anew after a process was killed."""
        self.close()
        self._executor = None

    def lost(self, error: BaseException) -> bool:
        """Tell whether a process was killed."""
        from concurrent.futures.process import BrokenProcessPool

        return isinstance(error, BrokenProcessPool)

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if that was killed."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


class DaskWorkers:
    """The workers of a Dask cluster that runs already.

    Args:
        address: Of its scheduler, such as tcp://host:8786.

    Raises:
        BadInput: No scheduler answers, it has no workers, or they cannot run this Latenz.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = _connect(address)
        try:
            threads = self._check_workers()
        except BaseException:
            self._client.close()
            raise
        self.at_once = 2 * max(4, threads)
        self._executor = self._client.get_executor(pure=False)

    def submit(self, function: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Hand out work; Dask gives it to another worker if one is lost."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def renew(self) -> None:
        """Tell that Dask, which replaces lost workers by itself, has given up."""
        raise BadInput(
            "the Dask scheduler or its workers went away",
            self._address,
            "what is finished is kept: when they run again, use --resume",
        )

    def lost(self, error: BaseException) -> bool:
        """Tell whether Dask gave up."""
        from distributed import KilledWorker

        gone = self._client.status != "running"  # whatever error that leads to
        return gone or isinstance(error, CancelledError | KilledWorker | OSError)

    def close(self) -> None:
        """Leave the cluster; it goes on without us."""
        self._executor.shutdown(wait=False)
        self._client.close(timeout=5)

    def _check_workers(self) -> int:
        """Return how many threads the workers have; refuse workers with another Latenz."""
        where, ours = self._address, version("latenz")
        remedy = f"install latenz {ours} where its workers run"
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE_S)
            theirs = set(self._client.run(_version).values())
        except TimeoutError:
            raise BadInput("the Dask cluster has no worker", where, "start some") from None
        except ImportError as error:
            raise BadInput(f"its workers cannot run this ({error})", where, remedy) from None
        if theirs != {ours}:
            raise BadInput(f"its workers have latenz {', '.join(theirs)}", where, remedy)
        return sum(self._client.nthreads().values())


def _version() -> str:
    return version("latenz")


def _connect(address: str) -> "Client":
    try:
        from distributed import Client
    except ImportError:
        raise BadInput(
            "needs dask.distributed, which is not installed",
            "--scheduler",
            f"run {add_python('cluster')}",
        ) from None
    if not _ADDRESS.fullmatch(address):
        raise BadInput(f"{address!r} is not an address", "--scheduler", "write tcp://HOST:PORT")
    import logging

    for name in ("distributed", "distributed.client"):  # what matters we tell ourselves
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return Client(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"no Dask scheduler answers ({reason})", address, "start one") from None


_LOSSES = 5
"""How often in a row workers may be lost without anything being finished."""
Job = tuple[int, Callable[..., Any], tuple[object, ...]]
"""A number, a function, and its arguments."""


def hand_out(workers: Workers, jobs: Iterator[Job], finish: Callable[[int, Any], None]) -> None:
    """Have workers do all jobs, a few at once; tell the number and the value of each that is done.

    Jobs of lost workers are given to others. On Ctrl-C what was begun is finished and told.
    """
    given: dict[Future[Any], Job] = {}
    waiting: list[Job] = []  # to be given next
    losses = 0
    try:
        while True:
            try:
                _give(workers, given, waiting, jobs)
                if not given:
                    return
                _tell(given, wait(given, return_when=FIRST_COMPLETED).done, finish)
                losses = 0
            except Exception as error:
                losses += 1
                if losses > _LOSSES or not workers.lost(error):
                    raise
                workers.renew()
                waiting += given.values()
                given.clear()
    except KeyboardInterrupt:
        workers.close()
        ended = {each for each in given if each.done() and not each.cancelled()}
        _tell(given, {each for each in ended if each.exception() is None}, finish)
        raise


def _give(
    workers: Workers, given: "dict[Future[Any], Job]", waiting: list[Job], jobs: Iterator[Job]
) -> None:
    while len(given) < workers.at_once:
        waiting += [] if waiting else islice(jobs, 1)
        if not waiting:
            return
        _, function, arguments = waiting[-1]
        given[workers.submit(function, *arguments)] = waiting.pop()


def _tell(
    given: "dict[Future[Any], Job]",
    done: "Iterable[Future[Any]]",
    finish: Callable[[int, Any], None],
) -> None:
    """Tell what was done; an error comes last, when nothing else is left to tell."""
    failed = None
    for future in done:
        if future.cancelled() or future.exception() is not None:
            failed = future
        else:
            finish(given.pop(future)[0], future.result())
    if failed is not None:
        failed.result()
