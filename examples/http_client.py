"""A conversation with a running `oracle serve`, by OpenAI's Python SDK.

    pip install openai
    oracle serve                      # in the project that it is to answer about
    python examples/http_client.py "where is the retry limit set?" "and who reads it?"

ORACLE_URL says where the server is, if it is not on this machine at its usual port, and ORACLE_KEY is the key, if the
server asks for one (`oracle keys create`).
"""

import os
import sys

import openai

URL = os.environ.get("ORACLE_URL", "http://127.0.0.1:7770")
KEY = os.environ.get("ORACLE_KEY", "none")
SESSION = "http-client"


def main():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
    for question in sys.argv[1:] or ["What is this project about?"]:
        print(f"> {question}")
        stream = client.chat.completions.create(
            model="oracle",
            messages=[{"role": "user", "content": question}],
            stream=True,
            stream_options={"include_usage": True},
            # The session keeps the conversation, so only what is new is sent. Without these headers the
            # messages are all there is, and nothing is kept.
            extra_headers={"X-Oracle-Session": SESSION, "X-Oracle-History": "tail"},
        )
        told, usage = {}, None
        for chunk in stream:
            for choice in chunk.choices:
                print(choice.delta.content or "", end="", flush=True)
            told = getattr(chunk, "oracle", told)  # How the query ended stands in the chunk that ends it.
            usage = chunk.usage or usage
        print(f"\n[{told['outcome']}: query {told['query']} of {told['session']}, {usage.total_tokens} tokens]\n")


if __name__ == "__main__":
    try:
        main()
    except openai.APIConnectionError:
        sys.exit(f"no server at {URL}: start one with `oracle serve`")
    except openai.APIError as error:  # A refusal, or a query that failed after its stream began.
        sys.exit(f"{error.code}: {error.message}")
