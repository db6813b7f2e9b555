"""Oracle and llama.cpp's server: a second peer that nobody here wrote.

    python llama.py PATH/TO/oracle

A tiny model with random weights is made on the spot, so what it says means nothing. What counts is that Oracle
understands the server: streams, whole replies, usage, cuts by the output limit, a context that is too long.
"""

import os
import sys
import tempfile

import gguf
import numpy

from peer import Place, answers, check, free_port, run, start, until

WIDTH, HIDDEN, HEADS, ROOM = 64, 128, 4, 32768


def write_model(path):
    """One layer over single bytes; the seed is fixed."""
    dice = numpy.random.default_rng(1)
    kinds = gguf.TokenType
    tokens = [(b"<unk>", kinds.UNKNOWN), (b"<s>", kinds.CONTROL), (b"</s>", kinds.CONTROL)]
    tokens += [(b"<0x%02X>" % byte, kinds.BYTE) for byte in range(256)]
    tokens += [(bytes([byte]), kinds.NORMAL) for byte in range(33, 127)]
    tokens += [("\u2581".encode(), kinds.NORMAL)]
    model = gguf.GGUFWriter(path, "llama")
    model.add_context_length(ROOM)
    model.add_embedding_length(WIDTH)
    model.add_block_count(1)
    model.add_feed_forward_length(HIDDEN)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_tokenizer_model("llama")
    model.add_token_list([token for token, _ in tokens])
    model.add_token_scores([0.0] * len(tokens))
    model.add_token_types([kind for _, kind in tokens])
    model.add_unk_token_id(0)
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)

    def tensor(name, *shape):
        values = dice.normal(0, 0.5, shape) if len(shape) == 2 else numpy.ones(shape)
        model.add_tensor(name, values.astype(numpy.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    tensor("output_norm.weight", WIDTH)
    tensor("output.weight", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensor(f"blk.0.{name}.weight", WIDTH, WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        tensor(f"blk.0.{name}.weight", WIDTH)
    tensor("blk.0.ffn_gate.weight", HIDDEN, WIDTH)
    tensor("blk.0.ffn_up.weight", HIDDEN, WIDTH)
    tensor("blk.0.ffn_down.weight", WIDTH, HIDDEN)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def config(url, chain):
    names = ", ".join(f'"{name}"' for name in chain)
    provider = lambda name, stream: f"""
[[providers]]
name = "{name}"
dialect = "openai"
base_url = "{url}/v1"
stream = "{stream}"
[[providers.models]]
name = "tiny"
max_output_tokens = 24
"""
    head = f"[oracle]\nmax_turns = 3\n[model]\nchain = [{names}]\nattempts = 1\n"
    return head + provider("streams", "always") + provider("whole-replies", "never")


def serve(model, room, log):
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", model, "--model_alias", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(room)]
    command += ["--chat_format", "chatml", "--seed", "1"]
    start(command, log, stdout=log)
    url = f"http://127.0.0.1:{port}"
    until("llama.cpp's server", 120, lambda: answers(url + "/v1/models"))
    return url


def checks(place):
    for way in ("streams", "whole-replies"):
        code, told = place.ask(f"{way}/tiny")
        # It never says how it stands: the last turn's text has to do.
        check(f"{way}: turns end, and so does the query", (code, told["outcome"], told["turns"]), (0, "answered", 3))
        replies = [event["payload"] for event in place.events(told["session"]) if event["type"] == "turn.replied"]
        check(f"{way}: turns on record", len(replies), 3)
        for reply in replies:
            used, stop = reply["usage"], reply["stop"]
            assert stop in ("end_turn", "max_tokens") and used["input_tokens"] > 1000, reply
            # Tokens of single bytes: more than the estimate. Streams of this server do not tell them.
            assert way == "streams" or used["input_tokens"] > 8000, used
    print("ok  usage as the server counts it, or estimated where it does not")


def main(oracle):
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "log"), "w") as log:
        model = os.path.join(folder, "tiny.gguf")
        write_model(model)
        served = [serve(model, ROOM, log)]
        place = Place(oracle, folder, lambda chain: config(served[-1], chain))
        checks(place)
        served.append(serve(model, 512, log))
        # In a stream this server breaks off without a word; otherwise it says what is wrong.
        for way, reason in (("streams", "cut"), ("whole-replies", "context")):
            code, told = place.ask(f"{way}/tiny")
            check(f"{way}: too long for it", (code, told["outcome"], told["reason"]), (1, "failed", reason))


if __name__ == "__main__":
    run(main)
