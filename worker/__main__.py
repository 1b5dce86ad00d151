"""`python -m worker`: run the job that the environment names. `python -m worker mcp`: its tools over MCP."""

from __future__ import annotations

import sys


def main() -> int:
    """Run what the command line names; one line on standard error says why when it could not be run."""
    if sys.argv[1:2] == ["mcp"]:
        from worker.bridge import pipe  # alone: an agent starts it while its user waits

        return pipe.main(sys.argv[2:])
    from worker.process import run_process

    return run_process(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
