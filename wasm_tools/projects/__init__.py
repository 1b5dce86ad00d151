"""Projects that a WASM tool is written in: made, built and tried, without an orchestrator.

scaffold    a new project's files
project     what lies in a project's directory
toolchain   what building in a language needs, and the command that installs it
build       from the sources to a component that can be a tool
cases       what the tool has to answer, as data
trial       the cases, run in the sandbox that jobs get
errors      what can go wrong, for the tool's author
"""
