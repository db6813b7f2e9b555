"""An MCP server with the Python SDK, over standard input and output or, with a port, over HTTP."""

import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("towns")
READS = ToolAnnotations(read_only_hint=True)


class Town(BaseModel):
    name: str
    people: int


@server.tool(annotations=READS)
def town(name: str) -> Town:
    """Returns the number of people in a town."""
    return Town(name=name, people=330000)


@server.tool(annotations=READS)
async def count(steps: int, ctx: Context) -> str:
    """Counts, and reports each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
        await asyncio.sleep(0.05)
    return f"counted to {steps}"


@server.tool()
def build(name: str) -> str:
    """Builds a town, which changes the world."""
    return f"{name} is built"


@server.tool(annotations=READS)
def lose(name: str) -> str:
    """Fails."""
    raise ValueError(f"{name} is lost")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
