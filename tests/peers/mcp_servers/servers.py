"""Uses MCP servers that others wrote: `servers.py ORACLE FOLDER`, with the servers from npm in FOLDER."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

oracle, modules = Path(sys.argv[1]), Path(sys.argv[2]) / "node_modules"
HERE = Path(__file__).parent
DONE = {"reply": "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>"}


def entry(name):
    """The program of a package, as npm links it."""
    package = modules / "@modelcontextprotocol" / name
    program = json.loads((package / "package.json").read_text())["bin"][f"mcp-{name}"]
    return str((package / program).resolve())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def served(port, *command):
    """Runs a server until the port answers, and ends it."""
    environment = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{command} does not listen")
        yield
    finally:
        process.kill()
        process.wait()


def program(*command):
    command, *arguments = command
    return f"command = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"


def url(port):
    return f"url = 'http://127.0.0.1:{port}/mcp'\n"


def results(place, config, calls):
    """Lets a scripted model make these calls in one turn each, and returns their results."""
    turns = [{"reply": "Look.", "tool_calls": [{"name": f"s__{name}", "arguments": wanted}]} for name, wanted in calls]
    (place / "s.json").write_text(json.dumps({"turns": [*turns, DONE]}))
    (place / "o.toml").write_text(f"[[mcp]]\nname = 's'\nstart_deadline = '60s'\ncall_deadline = '60s'\n{config}")
    line = [oracle, "ask", "--events", "--config", "o.toml", "--model", "scripted/s.json", "--data-dir", "data", "go"]
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    done = subprocess.run(line, cwd=place, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done
    events = [json.loads(line) for line in done.stdout.splitlines()]
    finished = [event["payload"] for event in events if event.get("type") == "tool.finished"]
    return [(one["status"], one["content"]) for one in finished]


def check(name, config, *cases):
    """Each case is a tool, its arguments, the status, and a part of the content."""
    with tempfile.TemporaryDirectory() as place:
        config = config.replace("PLACE", place)
        Path(place, "note.txt").write_text("It is in the attic.\n")
        got = results(Path(place), config, [(tool, json.loads(json.dumps(wanted).replace("PLACE", place))) for tool, wanted, *_ in cases])
        for (tool, _, status, part), (found, content) in zip(cases, got, strict=True):
            assert (found, part in content) == (status, True), f"{name} {tool}: {found} {content}"
            print(f"ok  {name}: {tool}: {' '.join(content.split())[:70]}", flush=True)
        for _ in range(200):
            lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
            left = [line for line in lines if "__mcp-child" in line or (place in line and "node" in line)]
            if not left:
                break
            time.sleep(0.05)
        assert not left, left


EVERYTHING = (
    ("echo", {"message": "hello"}, "ok", "hello"),
    ("get-sum", {"a": 2, "b": 40}, "ok", "42"),
    ("get-structured-content", {"location": "Chicago"}, "ok", "temperature"),
    ("get-tiny-image", {}, "ok", "image"),
    ("get-resource-links", {"count": 2}, "ok", "demo://"),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "ok", "demo://"),
    ("trigger-long-running-operation", {"duration": 1, "steps": 2}, "ok", "completed"),
    ("get-sum", {"a": "x", "b": 40}, "failed", "reports an error"),
)
TOWNS = (
    ("town", {"name": "Bonn"}, "ok", "330000"),
    ("count", {"steps": 3}, "ok", "counted to 3"),
    ("build", {"name": "Bonn"}, "ok", "Bonn is built"),
    ("lose", {"name": "Bonn"}, "failed", "reports an error"),
)
never = "approval = 'never'\n"
everything, towns = entry("server-everything"), str(HERE / "towns.py")
check("everything, stdio", program("node", everything, "stdio") + never, *EVERYTHING)
port = free_port()
with served(port, "node", everything, "streamableHttp"):
    check("everything, HTTP", url(port) + never, *EVERYTHING)
check(
    "filesystem",
    program("node", entry("server-filesystem"), "PLACE") + never,
    ("read_text_file", {"path": "PLACE/note.txt"}, "ok", "in the attic"),
    ("write_file", {"path": "PLACE/more.txt", "content": "more"}, "ok", "Successfully wrote"),
    ("list_directory", {"path": "PLACE"}, "ok", "more.txt"),
    ("read_text_file", {"path": "/etc/passwd"}, "failed", "reports an error"),
)
check(
    "memory",
    program("node", entry("server-memory")) + "env = { MEMORY_FILE_PATH = 'PLACE/memory.json' }\n" + never,
    ("create_entities", {"entities": [{"name": "Ann", "entityType": "person", "observations": ["sings"]}]}, "ok", "Ann"),
    ("search_nodes", {"query": "sings"}, "ok", "person"),
)
check("Python, stdio", program(sys.executable, towns) + never, *TOWNS)
port = free_port()
with served(port, sys.executable, towns, str(port)):
    check("Python, HTTP", url(port) + never, *TOWNS)
# Nobody is there to approve what is not marked as read-only.
check("Python, unattended", program(sys.executable, towns), ("town", {"name": "Rome"}, "ok", "Rome"), ("build", {"name": "Rome"}, "denied", ""))
