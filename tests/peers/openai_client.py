"""`oracle serve` at ORACLE_URL and OpenAI's Python SDK, unmodified: tools, formats and responses."""

import json
import os
import sys

import openai
from pydantic import BaseModel

from scripted import (
    BONN,
    FORECAST,
    GREETING,
    TOWN,
    Town,
    Weather,
    calls,
    check_format,
    check_heard,
    check_results,
    last_request,
    run_cases,
    says,
    script,
)

MOCK = os.environ["MOCK_URL"]
PNG = "data:image/png;base64,iVBORw0KGgo="
EVENING = script(says("Good evening."))


class City(BaseModel):
    city: str


TOOL = openai.pydantic_function_tool(City, name="weather")
RESPONSES_TOOL = {"type": "function", **TOOL["function"]}


def user(content):
    return {"role": "user", "content": content}


def call_tools(ask, sent_back=lambda message: message):
    """Runs tools until there is an answer. `ask` takes the messages and returns the model's choice."""
    weather, messages = Weather(), [user(FORECAST)]
    for _ in range(6):
        choice = ask(messages=messages, model="mock", tools=[TOOL]).choices[0]
        assert choice.finish_reason == ("tool_calls" if choice.message.tool_calls else "stop"), choice
        if not choice.message.tool_calls:
            break
        messages.append(sent_back(choice.message))
        for call in choice.message.tool_calls:
            result = weather.weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    weather.check(MOCK, choice.message.content)


def tools(api):
    call_tools(api.chat.completions.create)


def streamed_tools(api):
    def ask(**request):
        with api.chat.completions.stream(**request) as stream:
            return stream.get_final_completion()

    call_tools(ask, lambda message: message.model_dump())


def tools_and_format(api):
    """Text beside calls is no JSON and would break the parser, so there is none."""
    call = {"reply": "Let me ask.", **calls("weather", {"city": "Bonn"})}
    messages = [user(script(call, {"reply": BONN.model_dump_json()}))]

    def ask():
        parsed = api.chat.completions.parse(model="mock", messages=messages, tools=[TOOL], response_format=Town)
        return parsed.choices[0].message

    first = ask()
    assert first.content is None and first.tool_calls[0].function.parsed_arguments == City(city="Bonn"), first
    messages.extend([first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "19 C"}])
    assert ask().parsed == BONN
    check_results(MOCK, "19 C")


def tool_choice(api):
    """The mock model obeys a choice; one call at a time is a wish that reaches it."""
    choice = {"type": "function", "function": {"name": "weather"}}
    message = (
        api.chat.completions.create(
            model="mock", messages=[user("Hello")], tools=[TOOL], tool_choice=choice, parallel_tool_calls=False
        )
        .choices[0]
        .message
    )
    assert [call.function.name for call in message.tool_calls] == ["weather"], message
    assert last_request(MOCK)["parallel_tool_calls"] is False


def parse(api):
    parsed = api.chat.completions.parse(model="mock", messages=[user(TOWN)], response_format=Town)
    assert parsed.choices[0].message.parsed == BONN, parsed
    check_format(MOCK, "json_schema", "people")


def json_object(api):
    asked = api.chat.completions.create(model="mock", messages=[user(TOWN)], response_format={"type": "json_object"})
    assert Town.model_validate_json(asked.choices[0].message.content) == BONN, asked
    check_format(MOCK, "json_object")


def image(api):
    parts = [{"type": "text", "text": GREETING}, {"type": "image_url", "image_url": {"url": PNG}}]
    asked = api.chat.completions.create(model="mock", messages=[user(parts)])
    assert asked.choices[0].message.content == "Good morning.", asked
    check_heard(MOCK, PNG)


def image_response(api):
    parts = [{"type": "input_text", "text": GREETING}, {"type": "input_image", "image_url": PNG}]
    assert api.responses.create(model="mock", input=[user(parts)]).output_text == "Good morning."
    check_heard(MOCK, PNG)


def create(api):
    first = api.responses.create(model="mock", input=GREETING, instructions="Be polite.", temperature=0.5)
    assert (first.status, first.output_text) == ("completed", "Good morning.") and first.usage.total_tokens > 0, first
    assert last_request(MOCK)["temperature"] == 0.5
    second = api.responses.create(model="mock", input=EVENING, previous_response_id=first.id)
    assert (second.output_text, second.previous_response_id) == ("Good evening.", first.id), second
    check_heard(MOCK, "Good morning.", without=["Be polite."])
    assert api.responses.retrieve(second.id).output_text == "Good evening."


def stream(api):
    with api.responses.stream(model="mock", input=GREETING) as stream:
        kinds, text = [], ""
        for event in stream:
            kinds.append(event.type)
            text += event.delta if event.type == "response.output_text.delta" else ""
        whole = stream.get_final_response()
    assert (text, whole.output_text) == ("Good morning.",) * 2, (text, whole)
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed"), kinds


def function_calls(api, continues):
    weather, whole, ask = Weather(), [user(FORECAST)], {}
    new = whole
    for _ in range(6):
        answer = api.responses.parse(model="mock", input=new, tools=[RESPONSES_TOOL], **ask)
        called = [item for item in answer.output if item.type == "function_call"]
        if not called:
            break
        results = [(item.call_id, weather.weather(item.parsed_arguments["city"])) for item in called]
        new = [{"type": "function_call_output", "call_id": call, "output": result} for call, result in results]
        if continues == "items":
            new = whole = [*whole, *answer.output, *new]
        else:
            ask = {"previous_response_id": answer.id}
    weather.check(MOCK, answer.output_text)


def function_calls_by_items(api):
    function_calls(api, "items")


def function_calls_by_previous_response_id(api):
    function_calls(api, "previous_response_id")


def parse_response(api):
    parsed = api.responses.parse(model="mock", input=TOWN, text_format=Town)
    assert parsed.output_parsed == BONN, parsed
    check_format(MOCK, "json_schema", "people")


def conversations(api):
    conversation = api.conversations.create()
    assert api.conversations.retrieve(conversation.id).id == conversation.id, conversation
    for question, answer in ((GREETING, "Good morning."), (EVENING, "Good evening.")):
        response = api.responses.create(model="mock", input=question, conversation=conversation.id)
        assert (response.output_text, response.conversation.id) == (answer, conversation.id), response
    check_heard(MOCK, "Good morning.")
    assert api.conversations.delete(conversation.id).deleted
    try:
        api.responses.retrieve(response.id)
    except openai.NotFoundError:
        return
    raise AssertionError("it was deleted")


def main():
    api = openai.OpenAI(
        base_url=os.environ["ORACLE_URL"] + "/v1", api_key=os.environ["ORACLE_KEY"], max_retries=0, timeout=30
    )
    title = f"OpenAI's Python SDK {openai.__version__}"
    chat = [tools, streamed_tools, tools_and_format, tool_choice, parse, json_object, image]
    responses = [
        create,
        stream,
        function_calls_by_items,
        function_calls_by_previous_response_id,
        parse_response,
        image_response,
        conversations,
    ]
    sys.exit(run_cases(title, {"chat": api}, chat) + run_cases(title, {"responses": api}, responses))


if __name__ == "__main__":
    main()
