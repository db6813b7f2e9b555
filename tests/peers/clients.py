"""`oracle serve` and OpenAI's Python SDK, unmodified: chats, streams, errors, usage.

    python clients.py PATH/TO/oracle
"""

import json
import sys
import tempfile
import urllib.request

import openai

from peer import Place, free_port, run, served

QUESTION = {"role": "user", "content": "where is parse_invoice?"}


def client(url, **more):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", **more)


def named(session, **more):
    return {"extra_headers": {"X-Oracle-Session": session, **more}}


def ask(api, *messages, **more):
    return api.chat.completions.create(model="oracle", messages=list(messages), **more)


def said(answer):
    message = answer.choices[0].message
    return {"role": message.role, "content": message.content}


def chats(url):
    api = client(url)
    first = ask(api, QUESTION, **named("chat"))
    assert "src/parser.rs:3-4" in said(first)["content"], first
    choice = first.choices[0]
    assert (choice.finish_reason, choice.message.role, choice.index) == ("stop", "assistant", 0), first
    assert first.object == "chat.completion" and first.usage.total_tokens > 0, first
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens, first
    assert first.oracle["session"] == "chat" and first.oracle["query"] == 1, first
    more = {"role": "user", "content": "and who reads one?"}
    second = ask(api, QUESTION, said(first), more, **named("chat"))
    assert second.oracle["session"] == "chat" and second.oracle["query"] == 2, "only what is new is asked"
    edited = {"role": "user", "content": "what is in src?"}
    third = ask(api, QUESTION, said(first), edited, **named("chat"))
    branch = third.oracle["session"]
    assert branch.startswith("chat."), "an edited history is a branch"
    fourth = ask(api, QUESTION, said(first), edited, said(third), more, **named("chat"))
    assert fourth.oracle["session"] == branch, "which is found again"
    alone = ask(api, QUESTION)
    assert alone.oracle["session"].startswith("once-"), alone


def streams(url):
    api = client(url)
    for include in (False, True):
        options = {"stream_options": {"include_usage": True}} if include else {}
        chunks = list(ask(api, QUESTION, stream=True, **options, **named(f"stream-{include}")))
        assert len({chunk.id for chunk in chunks}) == 1 and chunks[0].choices[0].delta.role == "assistant"
        usage = chunks.pop() if include else None
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert "src/parser.rs:3-4" in text, text
        assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
        assert all(chunk.usage is None for chunk in chunks)
        if usage:
            assert usage.choices == [] and usage.usage.total_tokens > 0, usage
    # The helper that puts chunks together, and may be strict about them.
    with api.chat.completions.stream(model="oracle", messages=[QUESTION]) as stream:
        whole = stream.get_final_completion()
    assert "src/parser.rs:3-4" in said(whole)["content"], whole
    told = ask(api, QUESTION, stream=True, **named("told", **{"X-Oracle-Progress": "1"}))
    deltas = [chunk.choices[0].delta for chunk in told]
    assert any("asking" in (getattr(delta, "reasoning_content", None) or "") for delta in deltas), deltas


def errors(url):
    api = client(url)
    models = [model.id for model in api.models.list()]
    assert models[0] == "oracle" and api.models.retrieve("oracle").id == "oracle", models
    for what, wanted, param in (
        (lambda: api.models.retrieve("gpt-4o"), openai.NotFoundError, "model"),
        (lambda: api.chat.completions.create(model="gpt-4o", messages=[QUESTION]), openai.NotFoundError, "model"),
        (lambda: ask(api, QUESTION, n=2), openai.BadRequestError, "n"),
        (lambda: ask(api, {"role": "tool", "content": "x", "tool_call_id": "1"}), openai.BadRequestError, "messages[0].role"),
        (lambda: ask(api, QUESTION, stream=True, temperature=7), openai.BadRequestError, "temperature"),
        (lambda: ask(api, QUESTION, **named("no name")), openai.BadRequestError, "x-oracle-session"),
    ):
        try:
            what()
        except wanted as error:
            assert error.param == param, (error.param, param)
        else:
            raise AssertionError(f"{param} was not refused")


def failures(url):
    """A model that cannot be reached. The SDK would try again by itself, unless it is told not to."""
    api = client(url)
    try:
        ask(api, QUESTION, **named("down"))
    except openai.InternalServerError as error:
        assert (error.status_code, error.code) == (502, "connect"), error
    else:
        raise AssertionError("there was an answer")
    try:
        for _ in ask(api, QUESTION, stream=True, **named("down")):
            pass
    except openai.APIError as error:
        assert error.code == "connect", error
    else:
        raise AssertionError("there was an answer")
    with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as answer:
        assert json.load(answer)["object"] == "list"


def main(oracle):
    with tempfile.TemporaryDirectory() as folder:
        nobody = f"http://127.0.0.1:{free_port()}/v1"
        down = f"""
[model]
chain = ["down/x"]
attempts = 1
[[providers]]
name = "down"
dialect = "openai"
base_url = "{nobody}"
"""
        place = Place(oracle, folder, lambda chain: "" if chain == ("offline",) else down)
        with served(place, "offline") as url:
            for test in (chats, streams, errors):
                test(url)
                print(f"ok  OpenAI's Python SDK: {test.__name__}")
        with served(place, "down/x") as url:
            failures(url)
            print("ok  OpenAI's Python SDK: failures")


if __name__ == "__main__":
    run(main)
