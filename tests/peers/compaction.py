"""How many facts of a long conversation are left after 1, 2 and 5 compactions.

    python compaction.py PATH/TO/oracle [MODEL.gguf]

Each question tells one fact among other sentences. A server here answers the questions; as a summary it sends back what
it was to summarize ("echo"), nothing, so that the oldest messages are removed ("none"), or what llama.cpp's server
makes of it with the given model ("model"), at temperature 0.
"""

import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from peer import Place, answers, free_port, run, start, until

SIGNAL = '<signal type="context_sufficient"><sources_found>1</sources_found></signal>'
PLACES = ["mill", "dock", "barn", "tower", "bridge", "chapel", "garden", "cellar", "school", "market"]
WINDOW = 5000
FILLER = "The visit went well, the weather was mild, and nobody had any further remarks about it. " * 4


def fact(number):
    return f"{7919 * (number + 1) % 90000 + 10000}"


def question(number):
    return f"Note that the code of the {PLACES[number % 10]} {number} is {fact(number)}. {FILLER}"


def scripted(source, seen):
    """Serves the model, and keeps the last conversation that it got; `source` makes the summaries."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if str(asked["messages"][0]["content"]).startswith("You compact"):
                text = source(asked["messages"])
            else:
                seen[:] = asked["messages"]
                text = f"I have noted it. {SIGNAL}"
            message = {"role": "assistant", "content": text}
            reply = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def llama(model, log):
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", model, "--n_ctx", "8192", "--n_threads", "2"]
    start(command + ["--seed", "1", "--host", "127.0.0.1", "--port", str(port)], log, stdout=log)
    url = f"http://127.0.0.1:{port}/v1"
    until("llama.cpp's server", 120, lambda: answers(f"{url}/models"))

    def summary(messages):
        body = json.dumps({"messages": messages, "temperature": 0, "max_tokens": 120}).encode()
        request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    return summary


def measure(oracle, name, source):
    with tempfile.TemporaryDirectory() as folder:
        seen, asked, made = [], 0, 0
        config = f"""[model]\nchain = ["p/m"]
[[providers]]\nname = "p"\ndialect = "openai"\nbase_url = "{scripted(source, seen)}/v1"\nstream = "never"
[[providers.models]]\nname = "m"\ncontext_window = {WINDOW}\n"""
        place = Place(oracle, folder, lambda _: config, "error")
        while made < 5:
            command, environment = place.command("ask", "p/m")
            subprocess.run(command + ["--session", "facts", question(asked)], check=True, env=environment,
                           capture_output=True, timeout=300)
            ends = [one["payload"] for one in place.events("facts") if one["type"] == "budget.context.compacted"]
            if len(ends) > made and len(ends) in (1, 2, 5):
                left = sum(fact(number) in json.dumps(seen) for number in range(asked))
                cuts = [end["cut"]["code"] for end in ends if "cut" in end]
                print(f"{name}: after {len(ends)}, {left} of {asked} facts are left; cuts: {cuts}", flush=True)
            made, asked = len(ends), asked + 1


def main(oracle, model=None):
    measure(oracle, "echo", lambda messages: messages[1]["content"])
    measure(oracle, "none", lambda messages: "")
    if model:
        with tempfile.TemporaryFile("w") as log:
            measure(oracle, "model", llama(model, log))


if __name__ == "__main__":
    run(main)
