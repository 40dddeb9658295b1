"""The full mass run: a million random pairs for each configuration, a million AXI transactions.

`PYTHONPATH=hdl python -m verification.mass.whole` prints a line for each; exits 1 at a difference.
"""

import sys
import time

from verification.latencies_ip.runner import BUILD
from verification.mass import cxxrtl, edges
from verification.model.configuration import FULL, HALVES, PUBLISHED

PAIRS = 1_050_000  # some 3 % of the irqs are lost on purpose
TRANSACTIONS = 1_000_000


def tell(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run everything; a table on standard output."""
    for name, ip in cxxrtl.CONFIGURATIONS.items():
        begin = time.monotonic()
        run = edges.run(cxxrtl.seed(ip), PAIRS)
        samples = cxxrtl.compare(ip, run, BUILD / "mass" / name)
        irqs = sum(len(series.irqs) for series in run)
        acks = sum(len(series.acks) for series in run)
        seconds = time.monotonic() - begin
        tell(f"{name}: {irqs} irqs, {acks} acks, {samples} samples agree, {seconds:.0f} s")
    for name, ip in (("published", PUBLISHED), ("full", FULL), ("halves", HALVES)):
        done = cxxrtl.transactions(ip, TRANSACTIONS, 2, BUILD / "transactions" / name)
        tell(f"{name}: {done[0]} transactions on S00, {done[1]} on S01, as they must be")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cxxrtl.DifferenceError as different:
        sys.exit(str(different))
