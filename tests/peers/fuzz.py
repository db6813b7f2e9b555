"""`oracle serve` and requests that Schemathesis makes out of its description: right ones and wrong ones.

    python fuzz.py PATH/TO/oracle

No answer may be a fault of the server's, each has to be as described, and each refusal names the field. Once with the
key of an administrator, once with that of a user.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from fuzz_hooks import LAST_VERBS, SESSION
from peer import Place, check, get, run, served

SEED = 20260
# For each route; more for a longer search.
EXAMPLES = os.environ.get("ORACLE_FUZZ_EXAMPLES", "20")
# Schemathesis also shows keys that are wrong.
SERVER = "[server]\nwrong_keys_per_minute = 1000000\n"
CONFIG = """
[generation]
database = "none"
[phases.stateful]
enabled = false
[[operations]]
include-path = "/api/control/watch"
request-timeout = 0.3
"""


def post(url, key, body):
    """The status, the answer and its headers."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, json.load(answer), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers


def prepare(url, key):
    """A session that is there, with a few queries."""
    for text in ("where is parse_invoice?", "and who reads one?", "what is in src?"):
        question = {"model": "oracle", "messages": [{"role": "user", "content": text}]}
        asked = urllib.request.Request(
            f"{url}/v1/chat/completions",
            json.dumps(question).encode(),
            {"Authorization": f"Bearer {key}", "X-Oracle-Session": SESSION, "X-Oracle-History": "tail"},
        )
        urllib.request.urlopen(asked, timeout=30).close()


def fuzz(folder, url, who, key):
    folder = os.path.join(folder, who)
    os.mkdir(folder)
    config = os.path.join(folder, "schemathesis.toml")
    with open(config, "w") as file:
        file.write(CONFIG)
    command = [
        os.path.join(os.path.dirname(sys.executable), "schemathesis"), "--config-file", config,
        "run", f"{url}/api/openapi.json", "--header", f"Authorization: Bearer {key}",
        "--seed", str(SEED), "--max-examples", EXAMPLES, "--request-timeout", "10",
        "--checks", "all", "--continue-on-failure", "--no-color", "--warnings", "off",
    ]  # fmt: skip
    hooks = {"SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    # In the folder, because it leaves things where it runs.
    done = subprocess.run(command, cwd=folder, env={**os.environ, **hooks}, capture_output=True, text=True, timeout=400)
    if done.returncode != 0:
        sys.exit(f"fuzzing as {who}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    cases = [line.strip() for line in done.stdout.splitlines() if "generated" in line]
    print(f"ok  fuzzing as {who}: {', '.join(cases)}")


def main(oracle):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(oracle, folder, lambda _: SERVER, log="warn")
        admin, user = place.key("admin", "--role", "admin"), place.key("user", "--tenant", "users")
        with served(place, "offline") as url:
            prepare(url, user)
            prepare(url, admin)
            # At the same time, because each is busy with itself most of the time.
            with concurrent.futures.ThreadPoolExecutor() as pool:
                for done in [pool.submit(fuzz, folder, url, *who) for who in (("user", user), ("admin", admin))]:
                    done.result()
            drain, shut_down = LAST_VERBS
            check("a drain", post(f"{url}/api/control", admin, {"verb": drain})[0], 200)
            status, answer, headers = post(f"{url}/api/sessions/late/messages", user, {"text": "too late"})
            check("a message after it", (status, answer["error"]["code"]), (503, "draining"))
            assert int(headers["retry-after"]) > 0, headers


if __name__ == "__main__":
    run(main)
