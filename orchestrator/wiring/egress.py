"""How this home's squid is run."""

from __future__ import annotations

from container.adapters.docker.packages import how_to_install
from orchestrator.adapters.egress.squid import SquidSettings
from orchestrator.errors import EgressUnavailable
from orchestrator.settings import Settings


def check_egress(settings: Settings) -> None:
    """Look whether hosts can be allowed here.

    Raises:
        EgressUnavailable: they can't; the message has the command that changes it.
    """
    if missing := squid_settings(settings).missing():
        raise EgressUnavailable(missing)


def squid_settings(settings: Settings) -> SquidSettings:
    """Squid under the home, with the operator's networks and name servers."""
    return SquidSettings(
        directory=settings.egress_dir,
        opened=settings.egress_allow_private,
        nameservers=settings.egress_nameservers,
        binary=settings.egress_squid,
        how_to_install=how_to_install("squid"),
    )
