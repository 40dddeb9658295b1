"""A machine's topology as an SVG picture: nested boxes for nodes, shared caches, cores and CPUs."""

from dataclasses import dataclass, field
from html import escape

from latenz.tune.topology import Cache, Cpu, Topology

_CPU_WIDTH, _CPU_HEIGHT, _GAP, _LABEL = 76, 44, 8, 18
_STYLE = """
text { font: 12px sans-serif; fill: #222 }
.note { font-size: 10px; fill: #555 }
.box { fill: none; stroke: #9aa5b1 }
.node { fill: #f5f7fa; stroke: #7b8794 }
.core { fill: #e4e7eb; stroke: #7b8794 }
.cpu { fill: #fff; stroke: #52606d }
.performance { fill: #d9f0e3 }
.efficiency { fill: #fdebc8 }
.isolated { stroke: #c81e1e; stroke-width: 3 }
"""


@dataclass
class _Box:
    """A rectangle with a label, around others side by side."""

    label: str
    style: str
    inside: "list[_Box]" = field(default_factory=list)
    note: str = ""

    @property
    def width(self) -> int:
        if not self.inside:
            return _CPU_WIDTH
        labelled = 7 * len(self.label) + 2 * _GAP
        return max(labelled, _GAP + sum(each.width + _GAP for each in self.inside))

    @property
    def height(self) -> int:
        if not self.inside:
            return _CPU_HEIGHT
        return _LABEL + max(each.height for each in self.inside) + 2 * _GAP

    def draw(self, x: int, y: int) -> list[str]:
        drawn = [
            f'<rect class="{self.style}" x="{x}" y="{y}" width="{self.width}"'
            f' height="{self.height}" rx="4"/>',
            f'<text x="{x + _GAP}" y="{y + _LABEL}">{escape(self.label)}</text>',
        ]
        if self.note:
            drawn.append(
                f'<text class="note" x="{x + _GAP}" y="{y + 2 * _LABEL}">{escape(self.note)}</text>'
            )
        left = x + _GAP
        for each in self.inside:
            drawn += each.draw(left, y + _LABEL + _GAP)
            left += each.width + _GAP
        return drawn


def svg(topology: Topology) -> str:
    """Return the picture as text of an SVG file."""
    nodes = [
        _Box("machine" if node is None else f"NUMA node {node}", "node", _by_cache(topology, cpus))
        for node, cpus in topology.nodes.items()
    ]
    top, parts = _GAP, []
    for each in nodes:
        parts += each.draw(_GAP, top)
        top += each.height + _GAP
    width = max(each.width for each in nodes) + 2 * _GAP
    legend = "green: performance core · yellow: efficiency core · red: isolated"
    parts.append(f'<text class="note" x="{_GAP}" y="{top + _LABEL}">{legend}</text>')
    height = top + _LABEL + 2 * _GAP
    width = max(width, 420)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">'
        f"<style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _by_cache(topology: Topology, cpus: list[Cpu], below: int = 5) -> list[_Box]:
    """Return boxes for the largest caches below a level that several cores share."""
    numbers = frozenset(cpu.number for cpu in cpus)
    shared = [
        cache
        for cache in topology.caches
        if 1 < cache.level < below and cache.kind != "Instruction" and cache.cpus & numbers
    ]
    if not shared:
        return _cores(topology, cpus)
    level = shared[0].level
    boxes, left = [], list(cpus)
    for cache in (each for each in shared if each.level == level):
        inside = [cpu for cpu in left if cpu.number in cache.cpus]
        left = [cpu for cpu in left if cpu.number not in cache.cpus]
        boxes.append(_Box(_size(cache), "box", _by_cache(topology, inside, level)))
    return boxes + (_by_cache(topology, left, level) if left else [])


def _cores(topology: Topology, cpus: list[Cpu]) -> list[_Box]:
    boxes = []
    for core in sorted({cpu.siblings for cpu in cpus}, key=min):
        threads = [_cpu(topology, cpu) for cpu in cpus if cpu.number in core]
        kind = next(cpu.kind for cpu in cpus if cpu.number in core)
        boxes.append(_Box("core", f"core {kind}".strip(), threads))
    return boxes


def _cpu(topology: Topology, cpu: Cpu) -> _Box:
    isolated = cpu.number in topology.isolated
    note = "isolated" if isolated else "boot" if cpu.number == topology.boot_cpu else ""
    return _Box(f"CPU {cpu.number}", "cpu isolated" if isolated else "cpu", note=note)


def _size(cache: Cache) -> str:
    if cache.bytes is None:
        return f"L{cache.level}"
    whole = cache.bytes >> 20
    size = f"{whole} MiB" if whole and not cache.bytes % (1 << 20) else f"{cache.bytes >> 10} KiB"
    return f"L{cache.level} {size}"
