"""`oracle serve` at ORACLE_URL and Pydantic AI, unmodified, by the chat API and by the responses."""

import importlib.metadata
import os
import sys

import openai
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

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


def text(model):
    agent = Agent(model, instructions="Be polite.")
    first = agent.run_sync(GREETING)
    assert first.output == "Good morning." and first.usage().total_tokens > 0, first
    check_heard(MOCK, "Be polite.")
    second = agent.run_sync(script(says("Good evening.")), message_history=first.all_messages())
    assert second.output == "Good evening.", second
    check_heard(MOCK, "Good morning.")


def tool(model):
    weather = Weather()
    weather.check(MOCK, Agent(model, tools=[weather.weather]).run_sync(FORECAST).output)


def tool_output(model):
    question = script(calls("final_result", BONN.model_dump()))
    assert Agent(model, output_type=ToolOutput(Town)).run_sync(question).output == BONN


def native_output(model):
    assert Agent(model, output_type=NativeOutput(Town)).run_sync(TOWN).output == BONN
    check_format(MOCK, "json_schema", "people")


def prompted_output(model):
    assert Agent(model, output_type=PromptedOutput(Town)).run_sync(TOWN).output == BONN
    check_format(MOCK, "json_object")


def streamed(model):
    weather = Weather()
    with Agent(model, tools=[weather.weather]).run_stream_sync(FORECAST) as result:
        pieces = list(result.stream_text(delta=True, debounce_by=None))
    assert len(pieces) > 1, pieces
    weather.check(MOCK, "".join(pieces))


def main():
    client = openai.AsyncOpenAI(
        base_url=os.environ["ORACLE_URL"] + "/v1", api_key=os.environ["ORACLE_KEY"], max_retries=0, timeout=30
    )
    provider = OpenAIProvider(openai_client=client)
    models = {
        "chat": OpenAIChatModel("mock", provider=provider),
        "responses": OpenAIResponsesModel("mock", provider=provider),
    }
    version = importlib.metadata.version("pydantic-ai-slim")
    cases = (text, tool, tool_output, native_output, prompted_output, streamed)
    sys.exit(run_cases(f"Pydantic AI {version}", models, cases))


if __name__ == "__main__":
    main()
