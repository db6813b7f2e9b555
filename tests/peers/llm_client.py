"""`oracle serve` at ORACLE_URL and `llm`, unmodified: its command with a tool, and its Python API."""

import importlib.metadata
import os
import subprocess
import sys
import tempfile

from scripted import BONN, FORECAST, GREETING, TOWN, Town, Weather, check_format, check_heard, run_cases, says, script

MOCK = os.environ["MOCK_URL"]
MODEL = f"""
- model_id: oracle-mock
  model_name: mock
  api_base: {os.environ["ORACLE_URL"]}/v1
  api_key_name: oracle
  supports_tools: true
  supports_schema: true
"""
FUNCTIONS = """
from scripted import Weather

def weather(city: str) -> str:
    "Returns the temperature in a city."
    with open("cities", "a") as file:
        print(city, file=file)
    return Weather().weather(city)
"""


def command(folder):
    """The model is in `extra-openai-models.yaml`, and the function is a tool."""
    with open(f"{folder}/functions.py", "w") as file:
        file.write(FUNCTIONS)
    ask = ["-m", "oracle-mock", "--key", os.environ["ORACLE_KEY"], "--functions", "functions.py", FORECAST]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    done = subprocess.run(
        [sys.executable, "-m", "llm", *ask], capture_output=True, text=True, timeout=60, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    weather = Weather()
    with open(f"{folder}/cities") as file:
        weather.cities = file.read().split()
    weather.check(MOCK, done.stdout.strip())


def conversation(model):
    talk = model.conversation()
    assert talk.prompt(GREETING, stream=False).text().strip() == "Good morning."
    pieces = list(talk.prompt(script(says("Good evening."))))
    assert len(pieces) > 1 and "".join(pieces).strip() == "Good evening.", pieces
    check_heard(MOCK, "Good morning.")


def tool(model):
    weather = Weather()
    weather.check(MOCK, model.chain(FORECAST, tools=[weather.weather]).text().strip())


def schema(model):
    assert Town.model_validate_json(model.prompt(TOWN, schema=Town).text()) == BONN
    check_format(MOCK, "json_schema", "people")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LLM_USER_PATH"] = folder
        with open(f"{folder}/extra-openai-models.yaml", "w") as file:
            file.write(MODEL)
        import llm  # It reads the folder's name when it is imported.

        model = llm.get_model("oracle-mock")
        model.key = os.environ["ORACLE_KEY"]
        title = f"llm {importlib.metadata.version('llm')}"
        failures = run_cases(title, {"API": model}, [conversation, tool, schema])
        sys.exit(failures + run_cases(title, {"command": folder}, [command]))


if __name__ == "__main__":
    main()
