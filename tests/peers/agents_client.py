"""`oracle serve` at ORACLE_URL and OpenAI's Agents SDK, unmodified, by the responses and by the chat API."""

import asyncio
import functools
import importlib.metadata
import os
import sys

import agents
import openai

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
    run_cases,
    says,
    script,
)

MOCK = os.environ["MOCK_URL"]
HANDOFF = script(calls("transfer_to_clerk", {}), calls("look_up", {"invoice": 7}), says("It is paid."))
agents.set_tracing_disabled(True)


async def run(agent, question, model):
    return await agents.Runner.run(agent, question, run_config=agents.RunConfig(model=model), max_turns=6)


async def answer(model):
    result = await run(agents.Agent("greeter", instructions="Be polite."), GREETING, model)
    assert result.final_output == "Good morning.", result
    check_heard(MOCK, "Be polite.")
    usage = result.context_wrapper.usage
    assert usage.input_tokens > 0 and usage.output_tokens > 0, usage
    follow = result.to_input_list() + [{"role": "user", "content": script(says("Good evening."))}]
    assert (await run(agents.Agent("greeter"), follow, model)).final_output == "Good evening."


async def tool(model):
    weather = Weather()
    agent = agents.Agent("forecaster", tools=[agents.function_tool(weather.weather)])
    weather.check(MOCK, (await run(agent, FORECAST, model)).final_output)


async def handoff(model):
    seen = []

    def look_up(invoice: int) -> str:
        seen.append(invoice)
        return "paid on Monday"

    clerk = agents.Agent("clerk", instructions="You are the clerk.", tools=[agents.function_tool(look_up)])
    result = await run(agents.Agent("porter", instructions="You are the porter.", handoffs=[clerk]), HANDOFF, model)
    assert (result.last_agent.name, seen, result.final_output) == ("clerk", [7], "It is paid."), result
    check_results(MOCK, "paid on Monday")
    check_heard(MOCK, "You are the clerk.", without=["You are the porter."])


async def output_type(model):
    result = await run(agents.Agent("geographer", output_type=Town), TOWN, model)
    assert result.final_output == BONN, result
    check_format(MOCK, "json_schema", "people")


async def streamed(model):
    weather = Weather()
    agent = agents.Agent("forecaster", tools=[agents.function_tool(weather.weather)])
    config = agents.RunConfig(model=model)
    result = agents.Runner.run_streamed(agent, FORECAST, run_config=config, max_turns=6)
    text, items = "", []
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
        elif event.type == "run_item_stream_event":
            items.append(event.name)
    assert text == "Bonn is warmest.", text
    assert items == ["tool_called"] * 2 + ["tool_output"] * 2 + [
        "tool_called",
        "tool_output",
        "message_output_created",
    ], items
    weather.check(MOCK, result.final_output)


async def previous_response_id(model):
    """Oracle keeps the conversation, and the client sends only what is new."""
    agent = agents.Agent("greeter", model=model)
    first = await agents.Runner.run(agent, GREETING)
    second = script(says("Good evening."))
    await agents.Runner.run(agent, second, previous_response_id=first.last_response_id)
    check_heard(MOCK, "Good morning.", "Good evening.")


def main():
    client = openai.AsyncOpenAI(
        base_url=os.environ["ORACLE_URL"] + "/v1", api_key=os.environ["ORACLE_KEY"], max_retries=0, timeout=30
    )
    version = importlib.metadata.version("openai-agents")
    models = {
        "responses": agents.OpenAIResponsesModel("mock", client),
        "chat": agents.OpenAIChatCompletionsModel("mock", client),
    }
    title, loop = f"Agents SDK {version}", asyncio.new_event_loop()

    def whole(case):
        return functools.wraps(case)(lambda model: loop.run_until_complete(case(model)))

    failures = run_cases(title, models, [whole(case) for case in (answer, tool, handoff, output_type, streamed)])
    failures += run_cases(title, {"responses": models["responses"]}, [whole(previous_response_id)])
    sys.exit(failures)


if __name__ == "__main__":
    main()
