"""Checks `oracle dev mock-model` by the SDKs of OpenAI and Anthropic.

What they parse is the protocol; what we think of it is not. Usage: sdk.py path/to/oracle
"""

import contextlib
import json
import signal
import subprocess
import sys
import traceback
import urllib.request

import anthropic
import openai

TOOL = {
    "name": "find",
    "description": "Finds things",
    "schema": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    },
}
OPENAI_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL["name"],
            "description": TOOL["description"],
            "parameters": TOOL["schema"],
        },
    }
]
ANTHROPIC_TOOLS = [
    {
        "name": TOOL["name"],
        "description": TOOL["description"],
        "input_schema": TOOL["schema"],
    }
]
KEY = "key-of-a-test"
QUESTION = {"role": "user", "content": "Where is it?"}


@contextlib.contextmanager
def mock(*options):
    """A mock model that runs as long as the block, and ends in order."""
    command = [ORACLE, "mock-model", "--port", "0", "--key", KEY, *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (url, process.stderr.read())
        yield url
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (out, process.returncode) == ("", 0), (out, err, process.returncode)
    finally:
        process.kill()
        process.wait()


def openai_client(url, key=KEY):
    return openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=20)


def anthropic_client(url, key=KEY):
    return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=20)


def fault(name):
    return {"x-mock-fault": name}


def stats(url):
    with urllib.request.urlopen(url + "/stats", timeout=20) as answer:
        return json.load(answer)


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


# --- OpenAI ---------------------------------------------------------------------------------------


def chat(client, messages, **more):
    return client.chat.completions.create(
        model="mock-model", messages=messages, tools=OPENAI_TOOLS, **more
    )


def openai_conversation():
    """A tool call, its result, the end: as a whole and streamed, with the rules kept."""
    with mock("--strict", "--tools", "--turns", "2") as url:
        client = openai_client(url)
        first = chat(client, [QUESTION])
        choice = first.choices[0]
        same(choice.finish_reason, "tool_calls")
        call = choice.message.tool_calls[0]
        same(call.function.name, "find")
        same(json.loads(call.function.arguments), {"query": "mock"})
        usage = first.usage
        same(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)

        result = {"role": "tool", "tool_call_id": call.id, "content": "src/a.rs:1"}
        reply = choice.message.model_dump(exclude_none=True)
        last = chat(client, [QUESTION, reply, result])
        same(last.choices[0].finish_reason, "stop")
        assert "context_sufficient" in last.choices[0].message.content

        more = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(chat(client, [QUESTION], **more))
        same(chunks[-1].choices, [])
        same(chunks[-1].usage.completion_tokens, usage.completion_tokens)
        choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
        text = "".join(choice.delta.content or "" for choice in choices)
        same(text, first.choices[0].message.content)
        deltas = [delta for choice in choices for delta in choice.delta.tool_calls or []]
        same(deltas[0].id, call.id)
        arguments = "".join(delta.function.arguments for delta in deltas)
        same(arguments, call.function.arguments)
        same(choices[-1].finish_reason, "tool_calls")

        helper = client.chat.completions.stream(
            model="mock-model", messages=[QUESTION], tools=OPENAI_TOOLS
        )
        with helper as stream:
            whole = stream.get_final_completion()
        same(whole.choices[0].message.tool_calls[0].function.name, "find")
        same(stats(url)["breaches"], {})


def responses_conversation():
    """A call with its reasoning, its result, the end: the items go back as they came."""
    with mock("--strict", "--tools", "--turns", "2") as url:
        client = openai_client(url)
        tools = [{"type": "function", "name": TOOL["name"], "parameters": TOOL["schema"]}]
        more = {
            "model": "gpt-6.1-sol",
            "tools": tools,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
        }
        first = client.responses.create(input=[QUESTION], **more)
        same(first.status, "completed")
        same([item.type for item in first.output], ["reasoning", "message", "function_call"])
        thought, said, call = first.output
        same((call.name, json.loads(call.arguments)), ("find", {"query": "mock"}))
        same((said.phase, bool(thought.encrypted_content)), ("commentary", True))
        usage = first.usage
        same(usage.total_tokens, usage.input_tokens + usage.output_tokens)
        assert usage.output_tokens_details.reasoning_tokens > 0

        with client.responses.stream(input=[QUESTION], **more) as stream:
            events = list(stream)
            whole = stream.get_final_response()
        same([event.sequence_number for event in events], list(range(len(events))))
        same(whole.output_text, first.output_text)
        same(whole.output[2].arguments, call.arguments)
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        same("".join(deltas), whole.output_text)

        result = {"type": "function_call_output", "call_id": call.call_id, "output": "src/a.rs:1"}
        items = [item.model_dump(exclude_none=True) for item in first.output]
        last = client.responses.create(input=[QUESTION, *items, result], **more)
        assert "context_sufficient" in last.output_text
        same(last.output[-1].phase, "final_answer")
        items[0]["summary"] = []
        try:
            client.responses.create(input=[QUESTION, *items, result], **more)
            raise AssertionError("a changed item was taken")
        except openai.BadRequestError as error:
            same(error.code, "invalid_encrypted_content")


def openai_replies():
    """Replies that are unusual, and still parse."""
    with mock("--turns", "1") as url:
        client = openai_client(url)

        def whole(name):
            return chat(client, [QUESTION], extra_headers=fault(name)).choices[0]

        def streamed(name):
            helper = client.chat.completions.stream(
                model="mock-model",
                messages=[QUESTION],
                tools=OPENAI_TOOLS,
                extra_headers=fault(name),
            )
            with helper as stream:
                return stream.get_final_completion().choices[0]

        for get in (whole, streamed):
            two = get("calls").message.tool_calls
            same([call.id for call in two], ["call_0_0", "call_0_1"])
            refused = get("refusal")
            same((refused.message.refusal, refused.finish_reason), ("I can't help with that.", "stop"))
            same(get("reasoning").message.reasoning[:3], "The")
        same(whole("length").finish_reason, "length")
        same(whole("content-filter").finish_reason, "content_filter")
        plain = list(chat(client, [QUESTION], stream=True))
        for name in ("comments", "crlf", "split", "finish-with-last", "no-usage"):
            chunks = list(chat(client, [QUESTION], stream=True, extra_headers=fault(name)))
            same(chunks[-1].choices[0].finish_reason, "stop")
            if name == "split":
                text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
                assert text.startswith("Grüße aus 東京 – 🦀. "), text
            elif name != "finish-with-last":
                same(chunks, plain)


OPENAI_ERRORS = {
    "400": openai.BadRequestError,
    "401": openai.AuthenticationError,
    "403": openai.PermissionDeniedError,
    "404": openai.NotFoundError,
    "408": openai.APIStatusError,
    "409": openai.ConflictError,
    "413": openai.APIStatusError,
    "422": openai.UnprocessableEntityError,
    "429": openai.RateLimitError,
    "500": openai.InternalServerError,
    "502": openai.InternalServerError,
    "503": openai.InternalServerError,
    "504": openai.InternalServerError,
    "529": openai.InternalServerError,
    "quota": openai.RateLimitError,
    "context": openai.BadRequestError,
    "html": openai.InternalServerError,
    "hang-up": openai.APIConnectionError,
}


def openai_errors():
    """Each refusal is the exception that it should be."""
    with mock() as url:
        client = openai_client(url)
        for name, kind in OPENAI_ERRORS.items():
            for stream in (False, True):
                error = raises(
                    kind,
                    lambda: chat(client, [QUESTION], stream=stream, extra_headers=fault(name)),
                )
                if name.isdigit():
                    same((error.status_code, f"mock fault {name}" in error.message), (int(name), True))
        code = {"quota": "insufficient_quota", "context": "context_length_exceeded"}
        for name, want in code.items():
            call = lambda: chat(client, [QUESTION], extra_headers=fault(name))
            same(raises(openai.APIStatusError, call).code, want)
        for name in ("error-first", "error-late"):
            stream = chat(client, [QUESTION], stream=True, extra_headers=fault(name))
            error = raises(openai.APIError, lambda: list(stream))
            assert "mock fault" in error.message, error
        raises(openai.AuthenticationError, lambda: chat(openai_client(url, "other"), [QUESTION]))
        ids = [model.id for model in client.models.list()]
        same(ids, ["mock-model"])


def openai_retries():
    """The SDK's own retries understand each form of retry-after."""
    forms = ["retry-seconds=1@1", "retry-date=1@3", "retry-ms=20@5", "should-retry@7"]
    options = [option for form in forms for option in ("--fault", form)]
    with mock(*options) as url:
        client = openai_client(url).with_options(max_retries=1)
        for _ in forms:
            same(chat(client, [QUESTION]).choices[0].finish_reason, "stop")
        same(stats(url)["status"], {"200": 4, "400": 1, "429": 3})


# --- Anthropic ------------------------------------------------------------------------------------


def message(client, messages, **more):
    return client.messages.create(
        model="mock-model", max_tokens=1000, messages=messages, tools=ANTHROPIC_TOOLS, **more
    )


def streamed_message(client, messages, **more):
    helper = client.messages.stream(
        model="mock-model", max_tokens=1000, messages=messages, tools=ANTHROPIC_TOOLS, **more
    )
    with helper as stream:
        return stream.get_final_message()


def anthropic_conversation():
    """A tool call, its result, the end: as a whole and streamed, with the rules kept."""
    with mock("--strict", "--tools", "--turns", "2") as url:
        client = anthropic_client(url)
        first = message(client, [QUESTION])
        same(first.stop_reason, "tool_use")
        thought, text, call = first.content
        same((thought.type, thought.thinking, bool(thought.signature)), ("thinking", "", True))
        same((text.type, call.type, call.name, call.input), ("text", "tool_use", "find", {"query": "mock"}))
        assert first.usage.input_tokens > 0 and first.usage.output_tokens > 0

        result = {"type": "tool_result", "tool_use_id": call.id, "content": "src/a.rs:1"}
        history = [
            QUESTION,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        last = message(client, history)
        same(last.stop_reason, "end_turn")
        assert "context_sufficient" in last.content[1].text

        streamed = streamed_message(client, [QUESTION])
        same(streamed.stop_reason, first.stop_reason)
        same(streamed.content[1].text, text.text)
        same((streamed.content[2].id, streamed.content[2].input), (call.id, call.input))
        same(streamed.usage.output_tokens, first.usage.output_tokens)
        same(stats(url)["breaches"], {})


def anthropic_replies():
    """Replies that are unusual, and still parse."""
    with mock("--turns", "1") as url:
        client = anthropic_client(url)
        for get in (message, streamed_message):
            def reply(name):
                return get(client, [QUESTION], extra_headers=fault(name))

            kinds = [block.type for block in reply("calls").content]
            same(kinds, ["text", "tool_use", "tool_use"])
            thought, said = reply("reasoning").content
            same((thought.type, bool(thought.signature), said.type), ("thinking", True, "text"))
            same(reply("refusal").stop_reason, "refusal")
            same(reply("length").stop_reason, "max_tokens")
        plain = streamed_message(client, [QUESTION])
        for name in ("comments", "crlf", "split"):
            got = streamed_message(client, [QUESTION], extra_headers=fault(name))
            if name == "split":
                assert got.content[0].text.startswith("Grüße aus 東京 – 🦀. "), got
            else:
                same(got.content, plain.content)


ANTHROPIC_ERRORS = {
    "400": anthropic.BadRequestError,
    "401": anthropic.AuthenticationError,
    "403": anthropic.PermissionDeniedError,
    "404": anthropic.NotFoundError,
    "408": anthropic.APIStatusError,
    "409": anthropic.ConflictError,
    "413": anthropic.APIStatusError,
    "422": anthropic.UnprocessableEntityError,
    "429": anthropic.RateLimitError,
    "500": anthropic.InternalServerError,
    "502": anthropic.InternalServerError,
    "503": anthropic.APIStatusError,
    "504": anthropic.APIStatusError,
    "529": anthropic.APIStatusError,
    "quota": anthropic.APIStatusError,
    "context": anthropic.BadRequestError,
    "html": anthropic.InternalServerError,
    "hang-up": anthropic.APIConnectionError,
}


def anthropic_errors():
    """Each refusal is the exception that it should be."""
    with mock() as url:
        client = anthropic_client(url)
        for name, kind in ANTHROPIC_ERRORS.items():
            for stream in (False, True):
                error = raises(
                    kind,
                    lambda: message(client, [QUESTION], stream=stream, extra_headers=fault(name)),
                )
                if name.isdigit():
                    same((error.status_code, error.body["type"]), (int(name), "error"))
        for name in ("error-first", "error-late"):
            call = lambda: streamed_message(client, [QUESTION], extra_headers=fault(name))
            error = raises(anthropic.APIStatusError, call)
            same(error.body["error"]["type"], "api_error")
        raises(
            anthropic.AuthenticationError,
            lambda: message(anthropic_client(url, "other"), [QUESTION]),
        )
        ids = [model.id for model in client.models.list()]
        same(ids, ["mock-model"])


def limits():
    """A limit of a minute is told in the headers, and refuses."""
    with mock("--requests-per-minute", "2") as url:
        asked = openai_client(url).chat.completions.with_raw_response.create(
            model="mock-model", messages=[QUESTION]
        )
        same(asked.headers["x-ratelimit-remaining-requests"], "1")
        asked = anthropic_client(url).messages.with_raw_response.create(
            model="mock-model", max_tokens=10, messages=[QUESTION]
        )
        same(asked.headers["anthropic-ratelimit-requests-remaining"], "0")
        error = raises(openai.RateLimitError, lambda: chat(openai_client(url), [QUESTION]))
        assert 1 <= int(error.response.headers["retry-after"]) <= 30
        same(stats(url)["breaches"], {"limits": 1})


CHECKS = [
    openai_conversation,
    responses_conversation,
    openai_replies,
    openai_errors,
    openai_retries,
    anthropic_conversation,
    anthropic_replies,
    anthropic_errors,
    limits,
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ORACLE = sys.argv[1]
    failed = 0
    for check in CHECKS:
        try:
            check()
            print(f"ok      {check.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {check.__name__}")
            traceback.print_exc()
    versions = f"openai {openai.__version__}, anthropic {anthropic.__version__}"
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed with {versions}")
    sys.exit(1 if failed else 0)
