"""`oracle serve` at ORACLE_URL and LangChain's ChatOpenAI, unmodified, by the chat API and by the responses."""

import importlib.metadata
import os
import sys

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

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
    run_cases,
    says,
    script,
)

MOCK = os.environ["MOCK_URL"]
LATER = script(says("Good evening."))


def model(**more):
    return ChatOpenAI(
        model="mock",
        base_url=os.environ["ORACLE_URL"] + "/v1",
        api_key=os.environ["ORACLE_KEY"],
        max_retries=0,
        timeout=30,
        **more,
    )


def invoke(model):
    history = [SystemMessage("Be polite."), HumanMessage(GREETING)]
    answer = model.invoke(history)
    assert answer.text == "Good morning." and answer.usage_metadata["total_tokens"] > 0, answer
    check_heard(MOCK, "Be polite.")
    assert model.invoke([*history, answer, HumanMessage(LATER)]).text == "Good evening."
    check_heard(MOCK, "Good morning.")


def stream(model):
    chunks = list(model.stream(GREETING))
    assert "".join(chunk.text for chunk in chunks) == "Good morning.", chunks
    assert len([chunk for chunk in chunks if chunk.text]) > 1, chunks
    usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert usage and usage[-1]["total_tokens"] > 0, chunks


def bind_tools(model, ask=lambda model, messages: model.invoke(messages)):
    weather = Weather()
    tools = {"weather": tool(weather.weather)}
    messages = [HumanMessage(FORECAST)]
    for _ in range(6):
        answer = ask(model.bind_tools(list(tools.values())), messages)
        if not answer.tool_calls:
            break
        messages.append(answer)
        messages += [tools[call["name"]].invoke(call) for call in answer.tool_calls]
        assert isinstance(messages[-1], ToolMessage), messages
    weather.check(MOCK, answer.text)


def streamed_tools(model):
    def whole(model, messages):
        first, *others = model.stream(messages)
        return sum(others, start=first)

    bind_tools(model, whole)


def function_calling(model):
    question = script(calls("Town", BONN.model_dump()))
    assert model.with_structured_output(Town, method="function_calling").invoke(question) == BONN


def json_mode(model):
    assert model.with_structured_output(Town, method="json_mode").invoke(f"{TOWN} as JSON") == BONN
    check_format(MOCK, "json_object")


def json_schema(model):
    assert model.with_structured_output(Town, method="json_schema").invoke(TOWN) == BONN
    check_format(MOCK, "json_schema", "people")


def main():
    models = {"chat": model(stream_usage=True), "responses": model(use_responses_api=True)}
    version = importlib.metadata.version("langchain-openai")
    cases = (invoke, stream, bind_tools, streamed_tools, function_calling, json_mode, json_schema)
    sys.exit(run_cases(f"LangChain {version}", models, cases))


if __name__ == "__main__":
    main()
