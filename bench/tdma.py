"""Bounds and simulation against their peers, in one process run.

Run by `make bench`, or alone: `python bench/tdma.py`. Peers: pyRTA (response-time-analysis) and
SimSo, from `setup/ensure bench`; pyCPA where it can be imported (it is on no package index). The
systems are as near to each other as the tools allow: three periodic sources of 10, 20 and 40 ms.
Medians of several rounds; every analysis includes building its model.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from latenz.analysis import bound, simulate
from latenz.system import Exponential, Monitor, Periodic, Platform, Slot, Source, System

US, MS = 1_000, 1_000_000
TASKS = ((10, 1), (20, 3), (40, 6))  # period and execution time, ms
ROUNDS = 9
LONG_RUN_IRQS = 10**8


def three_sources(mode: str) -> System:
    return System(
        Platform(50 * US, 640, 4_385, 50 * US),
        (Slot("A", 6 * MS), Slot("B", 6 * MS), Slot("C", 2 * MS)),
        (
            Source("a", "A", 5 * US, 40 * US, Periodic(10 * MS), Monitor((8 * MS,))),
            Source("b", "B", 5 * US, 40 * US, Periodic(20 * MS), Monitor((16 * MS,))),
            Source("c", "C", 5 * US, 40 * US, Periodic(40 * MS), Monitor((30 * MS,))),
        ),
        mode,
    )


def one_source(mode: str, mean_ns: int) -> System:
    """Section 6.1 of beckert2014."""
    system = three_sources(mode)
    source = replace(system.sources[0], arrival=Exponential(mean_ns), monitor=Monitor((mean_ns,)))
    return replace(system, sources=(source,))


def median_us(work: Callable[[], object], times: int) -> float:
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append((time.perf_counter() - begin) / times * 1e6)
    return round(statistics.median(rounds), 2)


def simulated_irq_ns(mode: str, irqs: int) -> float:
    system = one_source(mode, 1_444 * US)
    rounds = []
    for _ in range(3):
        begin = time.perf_counter()
        simulate(system, irqs=irqs, seed=1)
        rounds.append((time.perf_counter() - begin) / irqs * 1e9)
    return round(statistics.median(rounds), 1)


def pyrta() -> dict[str, float]:
    from response_time_analysis import model
    from response_time_analysis.analysis import fifo, fp

    def tasks() -> list[model.Task]:
        return [
            model.Task(
                model.Periodic(period * MS),
                model.FullyPreemptive(model.WCET(cost * MS)),
                priority=model.Priority(number),
            )
            for number, (period, cost) in enumerate(TASKS)
        ]

    def fixed_priorities() -> object:
        mine = tasks()
        return fp.rta(model.TaskSet(mine), mine[-1], model.IdealProcessor(), 10**9)

    def in_a_slot() -> object:
        task = model.Task(model.Periodic(10 * MS), model.FullyPreemptive(model.WCET(45 * US)))
        return fifo.rta(model.TaskSet([task]), model.RateDelayModel(14, 6, 8 * MS), 10**9)

    return {
        "pyrta_fixed_priorities_us": median_us(fixed_priorities, 50),
        "pyrta_fifo_us": median_us(
            lambda: fifo.rta(model.TaskSet(tasks()), model.IdealProcessor(), 10**9), 50
        ),
        "pyrta_fifo_rate_delay_us": median_us(in_a_slot, 20),
    }


def pycpa() -> dict[str, float]:
    try:
        from pycpa import analysis, model, schedulers
    except ImportError:
        return {}

    def tdma() -> object:
        system = model.System()
        resource = system.bind_resource(model.Resource("R", schedulers.TDMAScheduler()))
        for number, (period, cost) in enumerate(TASKS):
            task = model.Task(
                f"T{number}", cost * 10, cost * 10, scheduling_parameter=(6, 6, 2)[number] * MS
            )
            resource.bind_task(task)
            task.in_event_model = model.PJdEventModel(P=period * MS, J=0)
        return analysis.analyze_system(system)

    return {"pycpa_tdma_us": median_us(tdma, 5)}


def simso() -> dict[str, float]:
    from simso.configuration import Configuration
    from simso.core import Model

    def configured() -> Configuration:
        configuration = Configuration()
        configuration.duration = 2000 * configuration.cycles_per_ms
        for number, (period, cost) in enumerate(TASKS):
            configuration.add_task(
                name=f"T{number}", identifier=number, period=period, activation_date=0, wcet=cost,
                deadline=period,
            )  # fmt: skip
        configuration.add_processor(name="CPU", identifier=1)
        configuration.scheduler_info.clas = "simso.schedulers.RM"
        configuration.check_all()
        return configuration

    rounds, jobs = [], 0
    for _ in range(ROUNDS):
        model = Model(configured())
        begin = time.perf_counter()
        model.run_model()
        taken = time.perf_counter() - begin
        jobs = sum(len(task.jobs) for task in model.task_list)
        rounds.append(taken / jobs * 1e6)
    return {"simso_job_us": round(statistics.median(rounds), 2), "simso_jobs": jobs}


def core() -> dict[str, float]:
    """Build the C++ benchmark and run it."""
    for command in (
        ["cmake", "--preset", "host"],
        ["cmake", "--build", "--preset", "host", "--target", "core_bench"],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    told = subprocess.run(["build/host/core/core_bench"], check=True, capture_output=True)
    return {f"core_{name}": value for name, value in json.loads(told.stdout).items()}


def run() -> dict[str, object]:
    figures: dict[str, object] = dict(core())
    for mode in ("plain", "paper", "carry"):
        figures[f"bound_{mode}_us"] = median_us(lambda mode=mode: bound(three_sources(mode)), 200)
        figures[f"simulated_irq_{mode}_ns"] = simulated_irq_ns(mode, 2_000_000)
    peers = {**pyrta(), **pycpa(), **simso()}
    figures |= peers
    figures["simulated_irq_long_run_ns"] = simulated_irq_ns("carry", LONG_RUN_IRQS)
    slowest_us = max(figures[f"bound_{mode}_us"] for mode in ("plain", "paper", "carry"))
    if "pycpa_tdma_us" in peers:
        figures["pycpa_over_bound"] = round(peers["pycpa_tdma_us"] / slowest_us, 1)
    figures["simso_job_over_simulated_irq"] = round(
        peers["simso_job_us"] * 1e3 / figures["simulated_irq_carry_ns"], 1
    )
    return figures


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(run(), indent=1))
