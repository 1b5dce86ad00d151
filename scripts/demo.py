"""The demo: says which model and engine it uses and why, makes both ready, runs the job, shows the diff."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from container.adapters.docker.discovery import Discovery, candidates, discover
from container.adapters.docker.packages import install_docker
from container.adapters.docker.private_daemon import PrivateDaemon
from container.engine.errors import EngineError
from orchestrator.domain.model_choice import NoModelChosen, resolve_model

ROOT = Path(__file__).resolve().parents[1]
WORKSPACE = ROOT / "examples" / "broken-calculator"
SCRIPT = ROOT / "examples" / "scripts" / "broken-calculator.yaml"
CALC = ROOT / "wasm_tools" / "guests" / "calc" / "calc.wasm"
NOTES = ROOT / "examples" / "mcp-notes" / "server.py"
TASK = (
    "Repair the failing test in this repository. Look at the files first and run the tests with"
    " `python3 -m unittest`. Search the project's notes (notes_search) for what they say about errors,"
    " claim the file you edit (network_claim) and release it at the end, check the arithmetic with calc,"
    " repair the code with apply_patch, and write one line about it to CHANGES.md with write_file."
)


def main() -> int:
    started = time.monotonic()
    model = choose_model()
    home = demo_home()
    endpoint = asyncio.run(find_engine(home))
    if endpoint is None:
        return 1
    prepare(home)
    environment = {
        **os.environ,
        "PORTSIDE_HOME": str(home),
        "PORTSIDE_ENGINE_URL": endpoint,
    }
    command = [
        sys.executable, "-m", "orchestrator.cli.main", "run", TASK,
        "--workspace", str(WORKSPACE), "--model", model,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    print(f"demo: {time.monotonic() - started:.0f} s in all; its state is in {home}")
    programs = Path(sys.executable).parent
    print(f'demo: to use the commands above: export PORTSIDE_HOME="{home}" PATH="{programs}:$PATH"')
    return done.returncode


def choose_model() -> str:
    """The model, said in the first line with the reason."""
    try:
        choice = resolve_model(None, os.environ)
    except NoModelChosen as none:
        if none.choices:
            print(f"demo: model {none.choices[0]}: both provider keys are set; PORTSIDE_MODEL chooses")
            return none.choices[0]
        print(
            f"demo: model scripted:{SCRIPT.relative_to(ROOT)}, a script that stands in for a model, since"
            " neither OPENAI_API_KEY, ANTHROPIC_API_KEY nor PORTSIDE_MODEL is set"
        )
        return f"scripted:{SCRIPT}"
    print(f"demo: model {choice.model}, since {choice.reason}")
    return choice.model


def demo_home() -> Path:
    """A state directory of the demo's own, so that yours stays as it is."""
    state = os.environ.get("XDG_STATE_HOME")
    base = (
        os.environ.get("PORTSIDE_HOME")
        or (Path(state) if state else Path.home() / ".local/state") / "portside"
    )
    return Path(base) / "demo"


async def find_engine(home: Path) -> str | None:
    """An engine that answers, else a private one; says which, and why."""
    where = candidates(
        explicit=os.environ.get("PORTSIDE_ENGINE_URL"), environment=os.environ, home=home, uid=os.getuid()
    )
    found = await discover(where)
    if found.endpoint is not None:
        print(f"demo: engine {found.endpoint}, the first that answers ({found.source})")
        return found.endpoint
    if os.environ.get("PORTSIDE_ENGINE_URL"):
        print(f"demo: PORTSIDE_ENGINE_URL: {found.silent[0][1]}", file=sys.stderr)
        return None
    return start_private_engine(home, found)


def start_private_engine(home: Path, found: Discovery) -> str | None:
    daemon = PrivateDaemon(home / "engine")
    try:
        if shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            print("demo: engine: none answers and none is installed; installing docker.io")
            install_docker()
        print("demo: engine: none answers; starting a private one without any network")
        endpoint = daemon.start()
    except EngineError as error:
        print(f"demo: no container engine: {error.message}", file=sys.stderr)
        for candidate, reason in found.silent:
            print(f"  {candidate.source}: {reason}", file=sys.stderr)
        return None
    print(f"demo: engine {endpoint}, left running; stop it with: {daemon.stop_command}")
    return endpoint


def prepare(home: Path) -> None:
    """One MCP server and one WASM tool, as `portside mcp add` and `portside tools add` would leave them."""
    (home / "tools").mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(CALC, home / "tools" / CALC.name)
    entry = {"command": sys.executable, "args": [str(NOTES)]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
