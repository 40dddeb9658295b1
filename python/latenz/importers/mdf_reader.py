"""The process that reads a measurement data file with asammdf, which a damaged one can end.

It is started with the file's path; answers are JSON lines, the first one about the file. A line
`[group, index, raw]` on standard input asks for a channel: the answer tells how many bytes follow,
NumPy's format of its times in seconds and of its samples.
"""

import io
import json
import sys
from typing import Any


def main() -> None:
    """Answer until nothing more is asked."""
    try:
        from asammdf import MDF
    except ImportError:
        _say({"missing": True})
        return
    try:
        with MDF(sys.argv[1]) as file:
            _say(_about(file))
            for line in sys.stdin:
                _send(file, *json.loads(line))
    except MemoryError:
        _say({"trouble": "larger than this machine's memory"})
    except Exception as error:  # asammdf raises whatever comes of damage
        _say({"trouble": " ".join(str(error).split())[:200] or type(error).__name__})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _about(file: Any) -> dict[str, Any]:
    started = getattr(file.header, "start_time", None)
    channels = [
        (name, group, index, file.get_channel_unit(group=group, index=index) or "")
        for name, places in file.channels_db.items()
        for group, index in places
        if file.masters_db.get(group) != index
    ]
    return {
        "version": str(file.version),
        "measured": started.isoformat() if started else None,
        "channels": channels,
    }


def _send(file: Any, group: int, index: int, raw: bool) -> None:
    import numpy as np  # there wherever asammdf is

    signal = file.get(group=group, index=index, raw=raw)
    samples = np.asarray(signal.samples)
    if samples.dtype.kind not in "biuf" or samples.ndim != 1:
        _say({"bytes": []})
        return
    packed = []
    for values in (np.asarray(signal.timestamps, dtype=np.float64), samples):
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        packed.append(buffer.getvalue())
    _say({"bytes": [len(each) for each in packed]})
    for each in packed:
        sys.stdout.buffer.write(each)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
