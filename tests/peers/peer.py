"""What the checks of peers share: processes that end with the check, a project, `oracle ask` over it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

KEY = "sk-peer-canary-0123456789"
WRONG_KEY = "wrong-canary-0123"
PROCESSES = []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, log, **more):
    process = subprocess.Popen(command, stderr=log, start_new_session=True, **more)
    PROCESSES.append(process)
    return process


def until(what, seconds, test):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return
        time.sleep(0.2)
    sys.exit(f"{what} did not come within {seconds} s")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def get_lines(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return [json.loads(line) for line in answer]


class Place:
    """A project and a data directory for Oracle; `config` makes the text of a configuration of a chain."""

    def __init__(self, oracle, folder, config=lambda chain: "", log="trace"):
        self.oracle, self.folder, self.config, self.log = os.path.abspath(oracle), folder, config, log
        self.data = os.path.join(folder, "data")
        self.project = os.path.join(folder, "project")
        os.makedirs(os.path.join(self.project, "src"))
        with open(os.path.join(self.project, "src", "parser.rs"), "w") as file:
            file.write("//! Invoices.\n\n/// Reads one.\npub fn parse_invoice() {}\n")

    def command(self, name, *chain):
        """A command of Oracle's over this chain, and the environment that it is to have."""
        config = os.path.join(self.folder, "oracle.toml")
        with open(config, "w") as file:
            file.write(self.config(chain))
        command = [self.oracle, name, "--config", config, "--project", self.project, "--data-dir", self.data]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.folder,
            "PEER_KEY": KEY,
            "WRONG_KEY": WRONG_KEY,
            "RUST_LOG": self.log,
        }
        return command, environment

    def ask(self, *chain):
        command, environment = self.command("ask", *chain)
        question = ["--json", "where is parse_invoice?"]
        done = subprocess.run(command + question, capture_output=True, text=True, env=environment, timeout=120)
        for secret in (KEY, WRONG_KEY):
            assert secret not in done.stdout + done.stderr, f"{chain}: a key in the output"
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            sys.exit(f"{chain}: exit code {done.returncode}, {done.stdout!r}\n{done.stderr[-4000:]}")

    def key(self, name, *more):
        """Makes a key."""
        command = [self.oracle, "keys", "create", "--name", name, "--data-dir", self.data, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    def events(self, session):
        command = [self.oracle, "sessions", "export", session, "--data-dir", self.data]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert KEY not in done.stdout, "a key in the journal"
        return [json.loads(line) for line in done.stdout.splitlines()]


@contextlib.contextmanager
def served(place, *chain):
    """`oracle serve` over this chain for as long as the block lasts; it ends in order."""
    command, environment = place.command("serve", *chain)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with open(os.path.join(place.folder, "served"), "w+") as log:
        server = start(command + ["--listen", f"127.0.0.1:{port}"], log, stdout=log, env=environment)
        until("the server", 60, lambda: server.poll() is not None or answers(url + "/healthz"))
        try:
            yield url
            server.send_signal(signal.SIGTERM)
            check("the server's end", server.wait(60), 0)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read()[-4000:])
            raise


@contextlib.contextmanager
def mocked(oracle, *options):
    """A mock model for as long as the block lasts, and the configuration that makes it the profile `mock`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [oracle, "dev", "mock-model", "--port", str(port), *options]
    process = start(command, None, stdout=subprocess.DEVNULL)
    until("the mock model", 20, lambda: answers(f"{url}/stats"))
    yield url, f"""
[[providers]]
name = "mock"
dialect = "openai"
base_url = "{url}/v1"
structured_output = true
[[providers.models]]
name = "x"
images = true
[[profiles]]
name = "mock"
chain = ["mock/x"]
"""
    process.terminate()
    process.wait(20)


def check(name, seen, expected):
    if seen != expected:
        sys.exit(f"{name}: {seen}, expected {expected}")
    print(f"ok  {name}: {seen}")


def run(main):
    """Does it, and leaves no process behind."""
    try:
        main(*sys.argv[1:])
    finally:
        for process in PROCESSES:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
