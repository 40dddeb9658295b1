"""What caches of silicon could do to a program that the emulator, which has none, does not show.

```python
from latenz.coherence import Machine, check

for place in check(Machine(Path("firmware.elf"), bench="zcu102")).places:
    print(place.what, place.address, place.written_by, place.read_by)
```
"""

from latenz.coherence.machine import Machine
from latenz.coherence.places import Place
from latenz.coherence.run import Checked, check

__all__ = ["Checked", "Machine", "Place", "check"]
