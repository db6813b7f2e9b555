"""Conversations that a mock model leads by script, the same for each client, and what has to come of them."""

import json
import traceback

from pydantic import BaseModel

from peer import get_lines

SIGNAL = '<signal type="context_sufficient"><sources_found>1</sources_found></signal>'
TEMPERATURES = {"Oslo": -5, "Rome": 12, "Bonn": 19}


def script(*turns):
    """Returns a question that the mock model answers by these turns."""
    return "mock: " + json.dumps({"turns": turns})


def calls(name, *arguments):
    """A turn in which the model calls this tool, once for each of the arguments."""
    return {"tool_calls": [{"name": name, "arguments": each} for each in arguments]}


def says(text):
    return {"reply": f"{text} {SIGNAL}"}


GREETING = script(says("Good morning."))
# Two calls at once, and a third that follows from their results.
FORECAST = script(
    calls("weather", {"city": "Oslo"}, {"city": "Rome"}), calls("weather", {"city": "Bonn"}), says("Bonn is warmest.")
)


class Town(BaseModel):
    """A town."""

    name: str
    people: int


BONN = Town(name="Bonn", people=330000)
# An answer in a format, which has no signal.
TOWN = script({"reply": BONN.model_dump_json()})
# The tool of `FORECAST` as requests have it.
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Returns the temperature in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Weather:
    """The tool of `FORECAST`, which remembers the cities that it was asked for."""

    def __init__(self):
        self.cities = []

    def weather(self, city: str) -> str:
        """Returns the temperature in a city."""
        self.cities.append(city)
        return f"{city}: {TEMPERATURES[city]} C"

    def check(self, mock, answer):
        """Checks the calls, that all results reached the model, and the answer."""
        assert sorted(self.cities) == sorted(TEMPERATURES), self.cities
        check_results(mock, *(f"{city}: {degrees} C" for city, degrees in TEMPERATURES.items()))
        assert answer == "Bonn is warmest.", answer


def last_request(mock):
    return get_lines(f"{mock}/requests")[-1]["body"]


def check_heard(mock, *texts, without=()):
    """Checks that the last request that reached the model has these texts in its messages, and not others."""
    told = json.dumps(last_request(mock)["messages"])
    missing, extra = [text for text in texts if text not in told], [text for text in without if text in told]
    assert not missing and not extra, f"not heard: {missing}, heard: {extra}"


def check_results(mock, *results):
    """Checks that the last request that reached the model has these results of tools."""
    messages = [message for message in last_request(mock)["messages"] if message["role"] == "tool"]
    told = json.dumps(messages)
    assert all(result in told for result in results), told


def check_format(mock, *fields):
    """Checks that the last request that reached the model asks for JSON with these fields."""
    wanted = last_request(mock).get("response_format")
    assert wanted and all(f'"{field}"' in json.dumps(wanted) for field in fields), wanted


def run_cases(client, models, cases):
    """Runs each case with each model, prints a line for each, and returns the number of those that failed."""
    failures = 0
    for kind, model in models.items():
        for case in cases:
            try:
                case(model)
                outcome = "ok"
            except Exception:
                traceback.print_exc()
                outcome, failures = "FAILED", failures + 1
            print(f"{outcome}  {client}, {kind}: {case.__name__}", flush=True)
    return failures
