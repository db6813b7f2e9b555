"""`oracle serve` at ORACLE_URL and the requests of Open WebUI: chats, and its tasks beside them.

The page itself takes a browser and gigabytes. These are the requests of its back end (`routers/openai.py` and
`routers/tasks.py`), with the headers that ENABLE_FORWARD_USER_INFO_HEADERS adds. The prompts of the tasks have the
form of its default ones, in words of our own.
"""

import json
import os
import sys
import urllib.request

from scripted import FORECAST, TOOL, Weather, check_heard, last_request, run_cases

URL, KEY, MOCK = os.environ["ORACLE_URL"], os.environ["ORACLE_KEY"], os.environ["MOCK_URL"]
HISTORY = "USER: where is parse_invoice?\nASSISTANT: In `src/parser.rs:3-4`."
TASK = """### Task:
{task}
### Guidelines:
- Answer with the raw JSON object alone, without a code fence.
### Output:
JSON format: {form}
### Chat History:
<chat_history>
{history}
</chat_history>"""
TASKS = {
    "title": ("Name the main theme of the chat in a few words.", '{ "title": "your concise title here" }', str),
    "tags": ("Tag the chat by its broad themes, and by special ones.", '{ "tags": ["tag1", "tag2", "tag3"] }', list),
    "follow_ups": (
        "Suggest questions that the user might ask next.",
        '{ "follow_ups": ["Question 1?", "Question 2?", "Question 3?"] }',
        list,
    ),
}


def post(body):
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "X-OpenWebUI-User-Name": "Ann",
        "X-OpenWebUI-User-Id": "3f1c",
        "X-OpenWebUI-User-Email": "ann@example.org",
        "X-OpenWebUI-User-Role": "user",
        "X-OpenWebUI-Chat-Id": "8b0d6c0e",
        "X-OpenWebUI-Message-Id": "51aa90f2",
    }
    request = urllib.request.Request(f"{URL}/v1/chat/completions", json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=60)


def task(model, name, history=HISTORY):
    prompt, form, _ = TASKS[name]
    body = {
        "model": model,
        "messages": [{"role": "user", "content": TASK.format(task=prompt, form=form, history=history)}],
        "stream": False,
        **({"max_completion_tokens": 1000} if name == "title" else {}),
    }
    return json.load(post(body))["choices"][0]["message"]["content"]


def stream(body):
    """Returns the text, the calls and the usage of a stream, as the page puts them together."""
    text, calls, usage = "", {}, None
    answer = post({**body, "stream": True, "stream_options": {"include_usage": True}})
    lines = [line.decode().strip() for line in answer]
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]", data
    for chunk in map(json.loads, data[:-1]):
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls") or []:
                new = {"id": part.get("id"), "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(part["index"], new)
                for field, piece in part["function"].items():
                    call["function"][field] += piece
    assert usage and usage["total_tokens"] > 0, data
    return text, list(calls.values())


def tasks(model):
    """Each answer is JSON in the form that the prompt wants, and the same each time."""
    for name, (_, _, kind) in TASKS.items():
        answer = task(model, name)
        assert list(json.loads(answer)) == [name] and isinstance(json.loads(answer)[name], kind), answer
        assert "<signal" not in answer and answer == task(model, name), answer
    assert "parse_invoice" in json.loads(task(model, "title"))["title"]


def task_request(model):
    """A task has no use for tools or Oracle's own prompt."""
    task(model, "title")
    asked = last_request(MOCK)
    assert "tools" not in asked and [message["role"] for message in asked["messages"]] == ["user"], asked


def chat(model):
    question = {"role": "user", "content": "where is parse_invoice?"}
    text, calls = stream({"model": model, "messages": [question]})
    assert "src/parser.rs:3-4" in text and "<signal" not in text and not calls, text
    history = [question, {"role": "assistant", "content": text}, {"role": "user", "content": "and who reads one?"}]
    assert stream({"model": model, "messages": history, "temperature": 0.7})[0]


def native_tools(model):
    """Open WebUI runs tools itself if the function calling of a model is `native`."""
    weather, messages = Weather(), [{"role": "system", "content": "Be polite."}, {"role": "user", "content": FORECAST}]
    for _ in range(6):
        text, calls = stream({"model": model, "messages": messages, "tools": [TOOL]})
        if not calls:
            break
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for call in calls:
            result = weather.weather(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    weather.check(MOCK, text)
    check_heard(MOCK, "Be polite.")


def main():
    title = "Open WebUI's requests"
    failures = run_cases(title, {"offline": "oracle"}, [chat, tasks])
    sys.exit(failures + run_cases(title, {"mock": "mock"}, [native_tools, task_request]))


if __name__ == "__main__":
    main()
