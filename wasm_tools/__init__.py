"""WASM components as tools.

A tool is a component of the world `portside:tool/sandboxed-tool` (`wit/world.wit`), or a function that any
other component exports. From a file to a call, each step in a module of its own:

    component_file  is it a component at all?
    compile, cache  machine code, made in a throw-away process and kept
    typed, wit_types  functions of other worlds as tools, their types as JSON
    surface         does it import and export what we offer and expect?
    loading         schema, description and sidecar: the tool, or the reason why not
    tool, runtime   a call from the event loop to a thread and back, within its time
    call            one call in one fresh instance: limits, host functions, WASI, result
    host_functions  what a guest may import, and link, which guards it
    lifted, lowered values out of the library's form, and into it
    direct          the known world's functions, called without the binding's reflection
    grants          what a sidecar may grant
    granted_host    the host functions of one call, within those grants
    http_gate       requests: urls and addresses are checked, exchange sends them
    causes          what went wrong, told apart
"""
