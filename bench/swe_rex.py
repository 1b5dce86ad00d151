"""Runs in SWE-ReX's own environment: how long it takes to run `true`, as JSON on the last line."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest


async def median_ms(act: Callable[[], Awaitable[Any]], repetitions: int) -> float:
    times: list[float] = []
    for _ in range(repetitions):
        began = perf_counter()
        await act()
        times.append((perf_counter() - began) * 1000)
    return statistics.median(times)


async def main(repetitions: int) -> None:
    deployment = LocalDeployment()
    await deployment.start()
    runtime = deployment.runtime
    await runtime.create_session(CreateBashSessionRequest())
    figures = {
        "SWE-ReX, a command": await median_ms(
            lambda: runtime.execute(Command(command="bash -c true", shell=True)), repetitions
        ),
        "SWE-ReX, in a session": await median_ms(
            lambda: runtime.run_in_session(BashAction(command="true")), repetitions
        ),
    }
    await deployment.stop()
    print(json.dumps(figures))


asyncio.run(main(int(sys.argv[1])))
