"""Having what is sent to targets."""

from latenz.errors import BadInput
from latenz.remote.url import TargetUrl
from latenz.setup import ensure_group


def ensure_agents(url: TargetUrl) -> None:
    """Build the agents unless they are there.

    Raises:
        BadInput: They cannot be built.
    """
    if missing := ensure_group("agent", "targets"):
        raise BadInput(missing.reason, url.text, missing.fix)
