"""What Schemathesis has to know of Oracle: what is not to be sent, what there is, and what a refusal says."""

import json
import re
import urllib.parse

import schemathesis

NAME = re.compile(r"~*[A-Za-z0-9._:-]{1,128}\Z")
# The session that is there from the beginning, with queries and events of these numbers.
SESSION, NUMBERS = "there", 8
# These end the server that is asked; `fuzz.py` sends them in the end.
LAST_VERBS = ("drain", "shut_down")
# What may be refused although the description allows it, because no schema can say it.
BEYOND_SCHEMAS = {
    ("POST", "/api/control"): {"text", "after", "session"},
    ("POST", "/api/sessions"): {"profile", "import"},
    ("POST", "/api/sessions/{id}/messages"): {"text", "idempotency-key"},
    ("GET", "/api/sessions/{id}/events"): {"last-event-id", "after"},
    ("GET", "/api/sessions/{id}/queries"): {"after"},
    ("GET", "/api/control/watch"): {"after"},
    # The offline model does not take every parameter, and a schema of a schema would be too much.
    ("POST", "/v1/chat/completions"): {
        *("messages", "tools", "tool_choice", "response_format", "stop", "logprobs", "seed", "logit_bias"),
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity"),
    },
    ("POST", "/v1/responses"): {
        *("input", "tools", "tool_choice", "text", "reasoning", "temperature", "top_p", "conversation"),
        *("previous_response_id", "max_output_tokens", "idempotency-key", "background"),
    },
    ("POST", "/v1/conversations"): {"items"},
}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Half of what is named is what is there: names that nobody has given meet nothing but 404."""
    for values, names in ((case.path_parameters, ("id",)), (case.body, ("session",))):
        for name in names:
            value = values.get(name) if isinstance(values, dict) else None
            if isinstance(value, str) and NAME.match(value) and len(value) % 2 == 0:
                values[name] = SESSION
    for name in ("query", "seq"):
        value = (case.path_parameters or {}).get(name)
        if str(value).isdigit():
            case.path_parameters[name] = int(value) % NUMBERS
    if isinstance(case.body, dict) and case.body.get("verb") in LAST_VERBS:
        case.body["verb"] = "list"
    # Few lists of messages end with a question by chance.
    if isinstance(case.body, dict) and isinstance(messages := case.body.get("messages"), list) and messages:
        messages.append({"role": "user", "content": "where is parse_invoice?"})


@schemathesis.check
def refusals_name_the_field(context, response, case):
    """What is not in order has a name: of a parameter, of a field, or of the whole where that cannot be read."""
    if response.status_code not in (400, 422):
        return
    param = response.json()["error"]["param"]
    assert param is not None, "a refusal that names nothing"
    url = urllib.parse.urlsplit(response.request.url)
    asked = [name for name, _ in urllib.parse.parse_qsl(url.query, keep_blank_values=True)]
    parameters = [parameter.name.lower() for parameter in case.operation.iter_parameters()]
    if param.lower() in parameters or param in (*asked, "content-type"):
        return
    try:
        body = json.loads(response.request.body or b"")
    except ValueError:
        assert param == "body", f"`{param}` is refused, and the body cannot be read"
        return
    if param == "body":
        assert not isinstance(body, dict), "the body is an object, and no field of it is named"
        return
    field = re.split(r"[.\[]", param)[0]
    described = f'"{field}":' in json.dumps(case.operation.schema.raw_schema, separators=(",", ":"))
    # A name may have dots of its own.
    there = any(param == name or param.startswith((f"{name}.", f"{name}[")) for name in body)
    assert there or described, f"`{param}` is no field"


@schemathesis.check
def streams_tell_objects(context, response, case):
    """OpenAPI 3.1 has no words for the events of a stream, so what is described of them is what their data are."""
    if response.headers.get("content-type", [""])[0].split(";")[0] != "text/event-stream":
        return
    lines = response.text.splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    for text in data:
        assert text == "[DONE]" or isinstance(json.loads(text), dict), text
    if case.operation.path == "/v1/chat/completions":
        ends = json.loads(data[-1]).get("error") if data[-1] != "[DONE]" else None
        assert data[-1] == "[DONE]" or ends, f"the stream ends with {data[-1]}"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Leaves out what is no fault: see `streams_tell_objects`, and `BEYOND_SCHEMAS`."""
    if failure.title.startswith("SSE event"):
        return False
    if failure.code != "ST202":
        return True
    place = (case.operation.method.upper(), case.operation.path)
    error = response.json()["error"]
    # Of an object that is one of several it is not said that it has no other fields.
    if place == ("POST", "/api/control") and "unknown field" in error["message"]:
        return False
    # To JSON Schema, 11.0 is an integer.
    if re.search(r"floating point `\d+\.0`, expected", error["message"]):
        return False
    param = (error["param"] or "").lower()
    # A header that may be left out is described as one that may be null, which is a word like any other.
    if response.request.headers.get(param) == ["null"] or response.request.headers.get(param) == "null":
        return False
    return re.split(r"[.\[]", param)[0] not in BEYOND_SCHEMAS.get(place, ())
