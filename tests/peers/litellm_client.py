"""`oracle serve` at ORACLE_URL and LiteLLM, unmodified: its SDK, and its proxy with OpenAI's SDK before it."""

import importlib.metadata
import json
import os
import sys
import tempfile

import litellm
import openai

from peer import KEY as MASTER, answers, free_port, run, start, until
from scripted import BONN, FORECAST, GREETING, TOOL, TOWN, Town, Weather, check_format, last_request, run_cases

litellm.suppress_debug_info = True  # It would speak up about each error.
MOCK, URL, KEY = os.environ["MOCK_URL"], os.environ["ORACLE_URL"] + "/v1", os.environ["ORACLE_KEY"]
QUESTION = {"role": "user", "content": "where is parse_invoice?"}


def sdk(provider):
    def complete(model="mock", **request):
        model = f"{provider}/{model}"
        return litellm.completion(model=model, api_base=URL, api_key=KEY, timeout=30, num_retries=0, **request)

    return complete


def chats(complete):
    headers = {"X-Oracle-Session": "litellm"}
    first = complete(model="oracle", messages=[QUESTION], extra_headers=headers)
    message = first.choices[0].message
    assert "src/parser.rs:3-4" in message.content and first.usage.total_tokens > 0, first
    history = [QUESTION, {"role": "assistant", "content": message.content}]
    more = {"role": "user", "content": "and who reads one?"}
    chunks = list(complete(model="oracle", messages=[*history, more], stream=True, extra_headers=headers))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks), chunks
    assert chunks[-1].choices[0].finish_reason == "stop", chunks


def errors(complete):
    try:
        complete(model="oracle", messages=[QUESTION], n=2)
    except litellm.BadRequestError as error:
        assert "a request yields one answer" in str(error), error
    else:
        raise AssertionError("two answers were not refused")


def tools(complete):
    weather, messages = Weather(), [{"role": "user", "content": FORECAST}]
    for _ in range(6):
        message = complete(model="mock", messages=messages, tools=[TOOL]).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message.model_dump())
        for call in message.tool_calls:
            result = weather.weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    weather.check(MOCK, message.content)


def response_format(complete):
    asked = complete(messages=[{"role": "user", "content": TOWN}], response_format=Town)
    assert Town.model_validate_json(asked.choices[0].message.content) == BONN, asked
    check_format(MOCK, "json_schema", "people")


def drop_params(complete):
    """LiteLLM leaves out what its provider does not have, and the rest reaches the model."""
    messages = [{"role": "user", "content": GREETING}]
    asked = complete(messages=messages, drop_params=True, user="ann", verbosity="low", seed=7)
    assert asked.choices[0].message.content == "Good morning.", asked
    assert last_request(MOCK).get("seed") == 7, "the seed is lost"


def main():
    title = f"LiteLLM {importlib.metadata.version('litellm')}"
    providers = {provider: sdk(provider) for provider in ("hosted_vllm", "openai")}
    failures = run_cases(title, providers, [chats, errors, tools, response_format, drop_params])
    with tempfile.TemporaryDirectory() as folder:
        models = [
            {"model_name": name, "litellm_params": {"model": f"hosted_vllm/{name}", "api_base": URL, "api_key": KEY}}
            for name in ("oracle", "mock")
        ]
        with open(f"{folder}/proxy.json", "w") as file:  # JSON is YAML.
            settings = {"num_retries": 0}
            json.dump(
                {"model_list": models, "litellm_settings": settings, "general_settings": {"master_key": MASTER}}, file
            )
        port = free_port()
        with open(f"{folder}/log", "w") as log:
            command = [os.path.join(os.path.dirname(sys.executable), "litellm"), "--config", f"{folder}/proxy.json"]
            start([*command, "--host", "127.0.0.1", "--port", str(port)], log, stdout=log)
            until("the proxy", 120, lambda: answers(f"http://127.0.0.1:{port}/health/liveliness"))
        proxy = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=MASTER, max_retries=0, timeout=30)
        failures += run_cases(title, {"proxy": proxy.chat.completions.create}, [chats, tools])
    sys.exit(failures)


if __name__ == "__main__":
    run(main)
