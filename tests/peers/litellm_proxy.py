"""Oracle and the LiteLLM proxy, both ways in: a peer that nobody here wrote.

    python litellm_proxy.py PATH/TO/oracle

The proxy answers some models with its own mocks (text, tool calls, rate limits, errors) and passes others on to
`oracle dev mock-model`, whose invariants then hold of what LiteLLM made of Oracle's requests. Each check is one `oracle ask`.
"""

import json
import os
import sys
import tempfile

from peer import KEY, Place, answers, check, free_port, get, run, start, until

SIGNAL = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>"
ANSWER = "It is in src/parser.rs:4."


def proxy_config(upstream):
    mocked = lambda name, **params: {
        "model_name": name,
        "litellm_params": {"model": "openai/mocked", "api_key": "none", **params},
    }
    call = {"id": "call_1", "type": "function", "function": {"name": "code_search", "arguments": '{"query": "parse_invoice"}'}}
    # Not `openai/…`: LiteLLM turns messages for that into requests of another API.
    passed_on = lambda name, model, base: {
        "model_name": name,
        "litellm_params": {"model": model, "api_key": "none", "api_base": base},
    }
    return {
        "model_list": [
            mocked("plain", mock_response=f"{ANSWER} {SIGNAL}"),
            mocked("calls", mock_response="Looking.", mock_tool_calls=[call]),
            mocked("limited", mock_response="litellm.RateLimitError"),
            mocked("broken", mock_response="litellm.InternalServerError"),
            mocked("too-long", mock_response="litellm.ContextWindowExceededError"),
            passed_on("to-openai", "hosted_vllm/mock", upstream + "/v1"),
            passed_on("to-anthropic", "anthropic/mock", upstream),
        ],
        "litellm_settings": {"num_retries": 0},
        "general_settings": {"master_key": KEY},
    }


def oracle_config(proxy, chain):
    names = ", ".join(f'"{name}"' for name in chain)
    return f"""
[model]
chain = [{names}]
attempts = 2
[[providers]]
name = "openai-way"
dialect = "openai"
base_url = "{proxy}/v1"
key_env = "PEER_KEY"
[[providers]]
name = "whole-replies"
dialect = "openai"
base_url = "{proxy}/v1"
key_env = "PEER_KEY"
stream = "never"
[[providers]]
name = "anthropic-way"
dialect = "anthropic"
base_url = "{proxy}"
key_env = "PEER_KEY"
[[providers]]
name = "wrong-key"
dialect = "openai"
base_url = "{proxy}/v1"
key_env = "WRONG_KEY"
"""


def checks(place):
    for way in ("openai-way", "whole-replies", "anthropic-way"):
        code, told = place.ask(f"{way}/plain")
        check(f"{way}: an answer", (code, told["outcome"], told["answer"]), (0, "answered", ANSWER))
        assert told["usage"]["input_tokens"] > 0 and told["usage"]["output_tokens"] > 0, told["usage"]

        # Alone it would be waited for.
        code, told = place.ask(f"{way}/limited", f"{way}/plain")
        check(f"{way}: a rate limit", (code, told["outcome"], told["answer"]), (0, "answered", ANSWER))
        events = [(event["type"], event["payload"]) for event in place.events(told["session"])]
        codes = [payload["fault"]["code"] for kind, payload in events if kind in ("llm.retried", "llm.failed_over")]
        check(f"{way}: it was tried again, and then the next model", codes, ["rate_limited"] * 2)

        code, told = place.ask(f"{way}/broken")
        check(f"{way}: a server error", (code, told["outcome"], told["reason"]), (1, "failed", "server_error"))

        code, told = place.ask(f"{way}/too-long")
        check(f"{way}: too long a context", (code, told["outcome"], told["reason"]), (1, "failed", "context"))

        code, told = place.ask(f"{way}/broken", f"{way}/plain")
        check(f"{way}: the next model answers", (code, told["outcome"], told["answer"]), (0, "answered", ANSWER))
        kinds = [event["type"] for event in place.events(told["session"])]
        check(f"{way}: and that is on record", kinds.count("llm.failed_over"), 1)

        for model in ("to-openai", "to-anthropic"):
            code, told = place.ask(f"{way}/{model}")
            check(f"{way}/{model}: through the proxy", (code, told["outcome"], told["turns"]), (0, "answered", 3))
            kinds = [event["type"] for event in place.events(told["session"])]
            check(f"{way}/{model}: its tool call was run", kinds.count("tool.finished"), 1)

    # The same call under the same id in each reply, and "stop" as the reason to stop.
    code, told = place.ask("whole-replies/calls")
    check("calls of the proxy's own", (code, told["outcome"], told["reason"]), (4, "forced", "loop"))

    # Without a database LiteLLM says 400 to a key that it does not know.
    code, told = place.ask("wrong-key/plain")
    check("a wrong key", (code, told["outcome"], told["reason"]), (1, "failed", "bad_request"))


def main(oracle):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "log"), "w") as log:
            port = free_port()
            upstream, proxy_port = f"http://127.0.0.1:{port}", free_port()
            start([oracle, "mock-model", "--port", str(port), "--tools"], log, stdout=log)
            config = os.path.join(folder, "proxy.yaml")
            with open(config, "w") as file:
                json.dump(proxy_config(upstream), file)
            litellm = os.path.join(os.path.dirname(sys.executable), "litellm")
            start([litellm, "--config", config, "--host", "127.0.0.1", "--port", str(proxy_port)], log, stdout=log, cwd=folder)
            proxy = f"http://127.0.0.1:{proxy_port}"
            until("the mock model", 20, lambda: answers(upstream + "/stats"))
            until("the proxy", 180, lambda: answers(proxy + "/health/liveliness"))
            checks(Place(oracle, folder, lambda chain: oracle_config(proxy, chain)))
            stats = get(upstream + "/stats")
            check("what the proxy made of it breaks no rule", (stats["breaches"], stats["requests"]), ({}, 18))


if __name__ == "__main__":
    run(main)
