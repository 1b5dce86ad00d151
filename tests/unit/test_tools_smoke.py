from __future__ import annotations
from tests.support.tool_workspace import ToolWorkspace

async def test_all(tool_workspace: ToolWorkspace):
    w = tool_workspace
    print(await w.call("write_file", path="a/b.txt", content="x\ny\n"))
    print(await w.call("read_file", path="a/b.txt"))
    print(await w.call("list_dir"))
    print(await w.call("shell", command="echo hi; echo err >&2; pwd; exit 3"))
    print(await w.call("shell", command="sleep 300 & echo started"))
    print(await w.call("shell", command="sleep 300", background=True))
    print(await w.call("shell", command="trap '' TERM; sleep 5; sleep 6; sleep 5", timeout_s=0.5))
    print(await w.call("apply_patch", patch="*** Begin Patch\n*** Update File: a/b.txt\n@@\n x\n-y\n+z\n*** End Patch"))
    print(await w.call("apply_patch", patch="--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,2 +1,2 @@\n x\n-z\n+w\n"))
    print(w.picture())
