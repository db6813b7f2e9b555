"""`oracle mcp` and `/mcp` as others use them: the Python SDK's client, the Inspector's command line, and the
protocol's own conformance tests, those that need no tools of their own.

    python mcp_server.py PATH/TO/oracle FOLDER/OF/THE/PACKAGES
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from peer import Place, check, run, served

TOOLS = "code_search file_read repo_map history_search note_search note_read thread_search ask".split()
SCENARIOS = ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"]


async def use(name, streams):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        check(f"{name}: the tools", [tool.name for tool in (await session.list_tools()).tools], TOOLS)
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        asked = {"question": "where is parse_invoice?"}
        answer = await session.call_tool("ask", asked, progress_callback=progress)
        assert "src/parser.rs:3-4" in answer.content[0].text, answer
        assert [message for _, _, message in told][-1] == "asking offline/offline", told
        assert len(told) > 1 and [done for done, _, _ in told] == [n + 1.0 for n in range(len(told))], told
        asked = {"question": "and who reads one?", "session": answer.structured_content["session"]}
        answer = await session.call_tool("ask", asked)
        check(f"{name}: the second question", answer.structured_content["query"], 2)
        missing = await session.call_tool("file_read", {"path": "nowhere"})
        check(f"{name}: a missing file", missing.is_error, True)


async def over_stdio(command, environment):
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with stdio_client(parameters) as streams:
        await use("stdio", streams)


async def over_http(url, key):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        async with streamable_http_client(f"{url}/mcp", http_client=http) as streams:
            await use("http", streams)


def inspect(name, packages, environment, before=(), after=()):
    inspector = [os.path.join(packages, "node_modules", ".bin", "mcp-inspector"), "--cli", *before]
    search = ["--tool-arg", "query=parse_invoice", "--tool-name", "code_search"]
    for method, more in [("tools/list", []), ("tools/call", search)]:
        command = [*inspector, *more, "--method", method, *after]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout)
    check(f"{name}: the Inspector's call", found["structuredContent"]["places"][0]["path"], "src/parser.rs")


def conform(packages, url):
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60).stdout
    if int(version.lstrip("v").split(".")[0]) < 22:
        print(f"--  the conformance tests need Node.js 22, not {version.strip()}: skipped")
        return
    program = os.path.join(packages, "node_modules", ".bin", "conformance")
    for scenario in SCENARIOS:
        command = [program, "server", "--url", f"{url}/mcp", "--scenario", scenario]
        done = subprocess.run(command, capture_output=True, text=True, cwd=packages, timeout=120)
        check(f"conformance: {scenario}", done.returncode, 0)


def main(oracle, packages):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(oracle, folder, log="error")
        command, environment = place.command("mcp")
        command += ["--model", "offline"]
        asyncio.run(over_stdio(command, environment))
        inspect("stdio", packages, environment, after=["--", *command])
        with served(place, "offline") as url:
            inspect("http", packages, environment, before=[f"{url}/mcp", "--transport", "http"])
            conform(packages, url)
        key = place.key("peer")
        with served(place, "offline") as url:
            asyncio.run(over_http(url, key))
            try:
                asyncio.run(over_http(url, "wrong"))
            except BaseException:  # A group of exceptions that differs by version.
                print("ok  http: a wrong key is refused")
            else:
                sys.exit("http: a wrong key was accepted")


if __name__ == "__main__":
    run(main)
