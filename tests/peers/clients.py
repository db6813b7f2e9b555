"""`oracle serve` and OpenAI's Python SDK, unmodified: chats, streams, usage, errors, many at a time, keys.

    python clients.py PATH/TO/oracle
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time

import openai

from peer import Place, free_port, get, mocked, run, served

QUESTION = {"role": "user", "content": "where is parse_invoice?"}


def client(url, api_key="none"):
    return openai.OpenAI(base_url=f"{url}/v1", api_key=api_key)


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
    alone = ask(api, QUESTION, said(first), {"role": "user", "content": "what is in src?"})
    assert alone.oracle["session"] != "chat" and alone.oracle["query"] == 1, alone
    names = [session["session"] for session in get(f"{url}/api/sessions")["sessions"]]
    assert alone.oracle["session"] not in names, "nothing of it is kept"


def names(url):
    """A session is named by one header; what chat UIs send besides names none."""
    api = client(url)
    title = {"role": "user", "content": "### Task:\nGive this chat a title."}
    for turn, question in enumerate(["where is parse_invoice?", "and who reads one?"], 1):
        answer = ask(api, {"role": "user", "content": question}, **named("by-name"))
        assert (answer.oracle["session"], answer.oracle["query"]) == ("by-name", turn), answer
        task = ask(api, title, **named("by-name"))
        assert task.oracle["session"] != "by-name", "no part of the conversation"
    for header in ("X-OpenWebUI-Chat-Id", "X-Conversation-Id"):
        answer = ask(api, QUESTION, extra_headers={header: f"by-{header}"})
        assert answer.oracle["session"] != f"by-{header}", answer
    kept = ask(api, QUESTION, store=True).oracle["session"]
    assert len(get(f"{url}/api/sessions?prefix=by-")["sessions"]) == 1, "the others ran in memory"
    assert get(f"{url}/api/sessions?prefix={kept}")["sessions"], "which is kept"


def side_by_side(url, conversations=24, questions=3):
    """Many conversations at a time, each by streams, and each of them in order."""

    async def converse(api, name):
        history, numbers = [], []
        for question in range(questions):
            history.append({"role": "user", "content": f"where is parse_invoice? ({name}, {question})"})
            text = ""
            asked = api.chat.completions.create(model="oracle", messages=history, stream=True, **named(name))
            async for chunk in await asked:
                text += chunk.choices[0].delta.content or ""
                told = getattr(chunk, "oracle", None) or {}
                if "session" in told:
                    numbers.append((told["session"], told["query"]))
            history.append({"role": "assistant", "content": text})
        assert numbers == [(name, query) for query in range(1, questions + 1)], numbers

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as api:
            await asyncio.gather(*(converse(api, f"side-{number}") for number in range(conversations)))

    asyncio.run(all_of_them())


def streams(url):
    api = client(url)
    for include in (False, True):
        options = {"stream_options": {"include_usage": True}} if include else {}
        chunks = list(ask(api, QUESTION, stream=True, **options, **named(f"stream-{include}")))
        assert len({chunk.id for chunk in chunks}) == 1 and chunks[0].choices[0].delta.role == "assistant"
        usage = chunks.pop() if include else None
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert "src/parser.rs:3-4" in text, text
        start = chunks[-1].oracle["answer_from"]
        answer = [chunk for chunk in chunks[1:-1] if chunk.oracle["turn"] >= start]
        answer = "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        assert answer and text.endswith(answer), (answer, text)
        assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
        assert all(chunk.usage is None for chunk in chunks)
        if usage:
            assert usage.choices == [] and usage.usage.total_tokens > 0, usage
    # The helper that puts chunks together, and may be strict about them.
    with api.chat.completions.stream(model="oracle", messages=[QUESTION]) as stream:
        whole = stream.get_final_completion()
    assert "src/parser.rs:3-4" in said(whole)["content"], whole


def errors(url):
    api = client(url)
    models = [model.id for model in api.models.list()]
    assert models[0] == "oracle" and api.models.retrieve("oracle").id == "oracle", models
    for what, wanted, param in (
        (lambda: api.models.retrieve("gpt-4o"), openai.NotFoundError, "model"),
        (lambda: api.chat.completions.create(model="gpt-4o", messages=[QUESTION]), openai.NotFoundError, "model"),
        (lambda: ask(api, QUESTION, n=2), openai.BadRequestError, "n"),
        (lambda: ask(api, {"role": "tool", "content": "x", "tool_call_id": "1"}), openai.BadRequestError, "messages[0]"),
        (lambda: ask(api, QUESTION, logit_bias={"7": 1}), openai.BadRequestError, "logit_bias"),
        (lambda: ask(api, QUESTION, extra_body={"top_k": 5}), openai.BadRequestError, "top_k"),
        (lambda: ask(api, QUESTION, stream=True, temperature=7), openai.BadRequestError, "temperature"),
        (lambda: ask(api, QUESTION, **named("no name")), openai.BadRequestError, "x-oracle-session"),
    ):
        try:
            what()
        except wanted as error:
            assert error.param == param, (error.param, param)
        else:
            raise AssertionError(f"{param} was not refused")


# The last call's own code, or that the circuit was open when patience ended.
AWAY = ("connect", "unavailable")


def failures(url):
    """A model that cannot be reached. The SDK would try again by itself, unless it is told not to."""
    api = client(url)
    try:
        ask(api, QUESTION, **named("down"))
    except openai.InternalServerError as error:
        assert error.status_code == 502 and error.code in AWAY, error
    else:
        raise AssertionError("there was an answer")
    try:
        for _ in ask(api, QUESTION, stream=True, **named("down")):
            pass
    except openai.APIError as error:
        assert error.code in AWAY, error
    else:
        raise AssertionError("there was an answer")
    assert get(f"{url}/v1/models")["object"] == "list"


def keys(url, right, other, revoked):
    """Who has no key, a wrong one or one that was revoked is told the same; tenants do not meet."""
    absent = {"Authorization": openai.Omit()}
    for api, headers in ((client(url), absent), (client(url), {}), (client(url, api_key=revoked), {})):
        for call in (
            lambda: api.models.list(extra_headers=headers),
            lambda: ask(api, QUESTION, extra_headers=headers),
            lambda: ask(api, QUESTION, stream=True, extra_headers=headers),
        ):
            try:
                call()
            except openai.AuthenticationError as error:
                assert (error.status_code, error.code) == (401, "invalid_api_key"), error
            else:
                raise AssertionError("that is no key")
    api, neighbour = (client(url, api_key=key) for key in (right, other))
    mine, theirs = (ask(each, QUESTION, **named("same-name")) for each in (api, neighbour))
    assert mine.oracle["query"] == theirs.oracle["query"] == 1, "one name, two sessions"
    repeated = ask(api, QUESTION, **named("same-name"))
    assert repeated.oracle["query"] == 2, repeated


def first_token(url, mock, requests=100):
    """Prints how much later than from the model itself the first of 20 pieces, 50 ms apart, comes through Oracle."""

    def first(api):
        begin = time.monotonic()
        with api.chat.completions.create(model="mock", messages=[QUESTION], stream=True) as chunks:
            next(chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content)
            return 1000 * (time.monotonic() - begin)

    direct, through = [], []
    apis = [(client(mock), direct), (client(url), through)]
    for api, times in apis * (1 + requests):
        times.append(first(api))
    # The first of each opens a connection.
    direct, through = (statistics.median(times[1:]) for times in (direct, through))
    print(
        f"    the first token: {through - direct:.1f} ms later than from the model itself, the aim is 20 ms "
        f"(medians of {requests}: {direct:.1f} ms and {through:.1f} ms)"
    )


def main(oracle):
    options = ["--turns", "1", "--chunks", "20", "--gap", "50ms"]
    with tempfile.TemporaryDirectory() as folder, mocked(oracle, *options) as (mock, config):
        with served(Place(oracle, folder, lambda chain: config, "warn"), "offline") as url:
            first_token(url, mock)
    with tempfile.TemporaryDirectory() as folder:
        nobody = f"http://127.0.0.1:{free_port()}/v1"
        down = f"""
[model]
chain = ["down/x"]
patience = "1s"
attempts = 1
[[providers]]
name = "down"
dialect = "openai"
base_url = "{nobody}"
"""
        place = Place(oracle, folder, lambda chain: "" if chain == ("offline",) else down)
        with served(place, "offline") as url:
            for test in (chats, names, streams, side_by_side, errors):
                test(url)
                print(f"ok  OpenAI's Python SDK: {test.__name__}")
        with served(place, "down/x") as url:
            failures(url)
            print("ok  OpenAI's Python SDK: failures")
        right, other, revoked = place.key("ann"), place.key("bob", "--tenant", "bobs"), place.key("eve")
        subprocess.run([oracle, "keys", "revoke", "eve", "--data-dir", place.data], check=True, capture_output=True)
        with served(place, "offline") as url:
            keys(url, right, other, revoked)
            print("ok  OpenAI's Python SDK: keys")
        print(f"ok  OpenAI's Python SDK: all of it with {openai.__version__}")


if __name__ == "__main__":
    run(main)
