# /// script
# dependencies = ["litellm==1.110.2"]
# ///
"""Writes config/models.toml from the table of models that the Python package litellm ships (MIT licence).

    uv run config/update_models.py [--from TABLE.json] [--output FILE]

Without --from, it reads the table of the installed package. The output is the same for the same table. To
take a newer one, change the version above and DATE below. Facts that the table does not state are left out.
"""

import argparse
import importlib.metadata
import json
import re
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = "model_prices_and_context_window_backup.json"
# The day of this version of the table.
DATE = "2026-11-28"

# litellm's name of a provider, and ours.
PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "gemini",
    "azure": "azure",
    "azure_ai": "azure",
    "xai": "xai",
    "groq": "groq",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "cerebras": "cerebras",
    "moonshot": "moonshot",
    "dashscope": "dashscope",
}
# OpenRouter charges what these vendors do, and the table does not list it: their names there.
ROUTED = {"anthropic": "anthropic", "openai": "openai", "gemini": "google", "xai": "x-ai"}
# Fine-tuned models, classes of sizes, copies for a region, and models that are not for conversations.
OMITTED = re.compile(
    r"^ft:|^together-ai-|^container$|/(eu|us|us-gov|apac|global|global-standard)/|^(eu|us|us-gov|apac|global|global-standard)/"
    r"|audio|image|realtime|-tts|-live|transcribe|lyria|voxtral|prompt-guard|safeguard|computer-use|robotics"
)
# Windows, sent and received, of models for which the table has only what can be sent.
WINDOWS = {400_000, 1_050_000}
RATES = {
    "input": "input_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "output": "output_cost_per_token",
}
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{4})$")


def dollars(rate):
    """US dollars per million tokens, exactly."""
    return (Decimal(str(rate)) * 1_000_000).quantize(Decimal("0.000001"))


def rates(entry, suffix=""):
    found = {key: entry.get(name + suffix) for key, name in RATES.items()}
    found = {key: dollars(rate) for key, rate in found.items() if rate is not None}
    # A price of 0 stands for one that is not known.
    if not found.get("input") or not found.get("output"):
        return {}
    if not found.get("cache_write"):
        found.pop("cache_write", None)
    return found


def tiers(entry):
    """Rates above a number of sent tokens, which hold for the whole call."""
    above = [re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key) for key in entry]
    found = {1000 * int(match[1]): rates(entry, f"_above_{match[1]}k_tokens") for match in above if match}
    for tier in entry.get("tiered_pricing", [])[1:]:
        found[int(tier["range"][0])] = rates(tier)
    return [{"above": tokens, **price} for tokens, price in sorted(found.items()) if price]


def price(entry):
    ranges = entry.get("tiered_pricing")
    found = rates({**entry, **ranges[0]} if ranges else entry)
    return {**found, "tiers": tiers(entry)} if found else {}


def window(provider, entry):
    sent, received = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    if provider in ("openai", "azure") and sent and received and sent + received in WINDOWS:
        return sent + received
    return sent


def longest_reply(entry):
    """A limit as large as the window is none, and servers refuse it beside a prompt."""
    sent, received = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    return None if sent and received and received >= sent else received


def sampling(provider, name, entry):
    """Whether it takes a temperature. OpenAI's models do not while they reason."""
    if provider in ("openai", "azure") and re.match(r"gpt-|o\d|codex", name):
        reasons = entry.get("supports_reasoning") and entry.get("default_reasoning_effort") != "none"
        return False if reasons else None
    return entry.get("supports_sampling_params")


def forced_tools(entry):
    stated = entry.get("supports_forced_tool_use")
    return False if entry.get("supports_tool_choice") is False else stated


def facts(provider, name, entry, own_name):
    day = str(entry.get("deprecation_date") or "")
    successor = entry.get("successor_model")
    return {
        "context_window": window(provider, entry),
        "max_output_tokens": longest_reply(entry),
        "images": entry.get("supports_vision"),
        "tools": False if entry.get("supports_function_calling") is False else None,
        "forced_tools": forced_tools(entry),
        "sampling": sampling(provider, name, entry),
        "always_thinks": entry.get("thinking_always_on") or None,
        **price(entry),
        "retires": day if DAY.fullmatch(day) else None,
        "successor": successor and own_name(successor),
    }


def models(table):
    """Facts by our names."""

    def own_name(name):
        """Our provider and model, without litellm's prefix and Fireworks' path."""
        entry = table.get(name, {})
        provider = PROVIDERS.get(entry.get("litellm_provider"))
        prefix = f"{entry.get('litellm_provider')}/"
        return provider and f"{provider}/{name.removeprefix(prefix)}"

    found = {}
    for name, entry in sorted(table.items()):
        full = own_name(name)
        if full is None or entry.get("mode") not in ("chat", "responses"):
            continue
        provider, model = full.split("/", 1)
        if OMITTED.search(model) or not re.fullmatch(r"[!-~]+", model) or re.search(r"[\"'`,*]", model):
            continue
        found.setdefault(full, facts(provider, model, entry, own_name))
    for full, known in list(found.items()):
        provider, model = full.split("/", 1)
        if provider in ROUTED and not DATED.search(model):
            # OpenRouter writes versions of Claude with a dot.
            routed = re.sub(r"(\d)-(\d)$", r"\1.\2", model) if provider == "anthropic" else model
            name = f"openrouter/{ROUTED[provider]}/{routed}"
            found.setdefault(name, {**known, "successor": None})
    found["ollama/*"] = {"input": Decimal(0), "output": Decimal(0)}
    return found


def written(value):
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        pairs = ((key, item) for key, item in value.items() if item not in (None, [], ""))
        return f"{{ {', '.join(f'{key} = {written(item)}' for key, item in pairs)} }}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return json.dumps(value) if isinstance(value, str) else str(int(value))


HEAD = """\
# Models of known providers: what fits into them, what they take, what they cost in US dollars for a million
# tokens, and when they retire. Written by config/update_models.py from the table of {source}; do not edit.
# The keys are those of `[[providers.models]]` in config/oracle.toml. A `*` at the end of a name stands for
# any ending, and a fact that is not here is unknown. Put your own facts into `[[providers.models]]`, or into
# a file that `budget.prices` names. One model a line, because each is parsed when it is used.
date = "{date}"
source = "{source}"
price = [
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="table", type=Path, help="another version of litellm's table")
    parser.add_argument("--date", default=DATE, help="the day of that table (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "config/models.toml")
    options = parser.parse_args()
    source = "litellm" if options.table else f"litellm {importlib.metadata.version('litellm')}"
    package = None if options.table else Path(find_spec("litellm").submodule_search_locations[0])
    table = json.loads((options.table or package / TABLE).read_text())
    found = models(table)
    lines = [f"  {written({'model': name, **known})},\n" for name, known in sorted(found.items())]
    options.output.write_text(HEAD.format(source=source, date=options.date) + "".join(lines) + "]\n")
    print(f"{len(lines)} models")


if __name__ == "__main__":
    main()
