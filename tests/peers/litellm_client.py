"""`oracle serve` and LiteLLM as a client: a chat, a stream, an error.

    python litellm_client.py PATH/TO/oracle
"""

import importlib.metadata
import sys
import tempfile

import litellm

from peer import Place, run, served

litellm.suppress_debug_info = True  # It would speak up about each error.
QUESTION = {"role": "user", "content": "where is parse_invoice?"}


def checks(url):
    def ask(**more):
        headers = {"X-Oracle-Session": "litellm"}
        return litellm.completion(
            # Not `openai/…`: LiteLLM turns messages for that into requests of another API.
            model="hosted_vllm/oracle", api_base=f"{url}/v1", api_key="none", extra_headers=headers, **more
        )

    first = ask(messages=[QUESTION])
    message = first.choices[0].message
    assert "src/parser.rs:3-4" in message.content and first.usage.total_tokens > 0, first
    history = [QUESTION, {"role": "assistant", "content": message.content}]
    more = {"role": "user", "content": "and who reads one?"}
    chunks = list(ask(messages=[*history, more], stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks), chunks
    assert chunks[-1].choices[0].finish_reason == "stop", chunks
    try:
        ask(messages=[QUESTION], n=2)
    except litellm.BadRequestError as error:
        assert "a request yields one answer" in str(error), error
    else:
        sys.exit("two answers were not refused")
    version = importlib.metadata.version("litellm")
    print(f"ok  LiteLLM as a client, {version}")


def main(oracle):
    with tempfile.TemporaryDirectory() as folder:
        with served(Place(oracle, folder), "offline") as url:
            checks(url)


if __name__ == "__main__":
    run(main)
