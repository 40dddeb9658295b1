"""What perf prints of a recording, beside what its files hold."""


def with_pids_that_perf_prints(found: list[tuple], printed: list[tuple]) -> list[list[tuple]]:
    """Leave out the threads of events of which perf prints none: of those that are about to end.

    Args:
        found: Events, each with its time, CPU, thread, and what else is compared.
        printed: The same of perf's text.
    """
    without = {(t_ns, cpu) for t_ns, cpu, pid, *_ in printed if pid == -1}
    return [
        [
            (t_ns, cpu, None if (t_ns, cpu) in without else pid, *rest)
            for t_ns, cpu, pid, *rest in each
        ]
        for each in (found, printed)
    ]
