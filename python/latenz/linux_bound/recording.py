"""Recording the windows of a kernel while an emulated board runs it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.errors import BadInput
from latenz.linux_bound.layout import Layout, layout_of, preemption_of
from latenz.linux_bound.windows import WINDOWS_FILE, Windows, name_places
from latenz.programs import escaped, plugin_arguments

if TYPE_CHECKING:
    from latenz.boards.images import Flavour

_LAYOUT = "layout.txt"
_RECORDED = "recorded.json"


class WindowRecorder:
    """Records the windows of Debian's kernel while an emulator runs it.

    Give `arguments` to the emulator; when it has ended, `read` what was recorded.

    Args:
        folder: Takes the recording.
        flavour: Which of Debian's kernels it is.
        priority: The measured thread's real-time priority.

    Raises:
        BadInput: The kernel is not known well enough.
    """

    def __init__(self, folder: Path, flavour: "Flavour", priority: int) -> None:
        from latenz.boards import images

        config = images.kernel_config(flavour).path.read_text("utf-8", "replace")
        self._layout: Layout = layout_of(images.linux(flavour).path, preemption_of(config))
        self._release = images.kernel_release(flavour)
        self._folder = folder
        self._layout.write(folder / _LAYOUT, priority)

    def arguments(self) -> tuple[str, ...]:
        """Return what makes QEMU record.

        Raises:
            BadInput: The recorder is not installed.
        """
        return plugin_arguments(
            "latenz-kernel-recorder",
            f"layout={escaped(self._folder / _LAYOUT)}",
            f"output={escaped(self._folder / _RECORDED)}",
        )

    def read(self, folder: Path, **known: Any) -> Windows:
        """Write `windows.json` with the names of functions into a folder, and return it.

        Args:
            folder: Takes the file.
            known: Further entries: `condition`, `load`.

        Raises:
            BadInput: There is no recording, or no wake-up in it.
        """
        windows = name_places(
            self._folder / _RECORDED,
            folder / WINDOWS_FILE,
            self._layout.symbols,
            kernel=self._release,
            preemption=self._layout.preemption,
            time_base="virtual",
            **known,
        )
        if windows.wake_ups < 2:
            raise BadInput(
                "holds no wake-up of a thread at that priority",
                str(folder / WINDOWS_FILE),
                "measure longer",
            )
        (self._folder / _RECORDED).unlink(missing_ok=True)
        return windows
