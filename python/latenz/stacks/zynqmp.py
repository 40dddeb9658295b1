"""What Linux on the A53 cores of a ZCU102 gets to see of it."""

from pathlib import Path

from latenz.boards.devicetree import compiled, template

_CPU = """\
		cpu@{number} {{
			device_type = "cpu";
			compatible = "arm,cortex-a53";
			reg = <{number}>;
			enable-method = "psci";
		}};
"""


def device_tree(folder: Path, cpus: int) -> Path:
    """Write the tree for a number of cores into a folder, and return the compiled one.

    Raises:
        BadInput: The compiler of device trees is not installed.
    """
    source = template("zcu102-amp")
    cores = "".join(_CPU.format(number=number) for number in range(cpus))
    return compiled(source.replace("@CPUS@\n", cores), folder / "zcu102.dtb")
