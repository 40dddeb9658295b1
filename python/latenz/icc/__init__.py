"""Looks at channels in shared memory (`icc/`) from outside: only reads, and nobody knows of it.

```python
from latenz.icc import find_channels, newest, open_region

with open_region("shm:/control") as region:
    for channel in find_channels(region).channels:
        print(channel.name, channel.kind, newest(region, channel))
```
"""

from latenz.icc.layout import Channel, Field, Found, Kind, Unreadable, find_channels
from latenz.icc.look import Look, SideLook, Value, look, newest
from latenz.icc.region import Region, open_region
from latenz.icc.watch import SideState, Watched, Watcher

__all__ = [
    "Channel",
    "Field",
    "Found",
    "Kind",
    "Look",
    "Region",
    "SideLook",
    "SideState",
    "Unreadable",
    "Value",
    "Watched",
    "Watcher",
    "find_channels",
    "look",
    "newest",
    "open_region",
]
