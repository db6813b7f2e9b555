"""Runs what a document says is to be typed: its blocks of a language with a word in them, from standard input.

    python documents.py DOCUMENT LANGUAGE WORD INTERPRETER...

The server's address stands in place of the default one, and ORACLE_KEY in the environment. A block of `text` behind
one says what it prints, with `…` for what may be anything.
"""

import os
import re
import subprocess
import sys

DEFAULT = "http://127.0.0.1:7770"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def main(document, language, word, *interpreter):
    with open(document) as file:
        blocks = BLOCK.findall(file.read())
    blocks = [(code, printed) for kind, code, printed in blocks if kind == language and word in code]
    if not blocks:
        sys.exit(f"{document} has nothing in {language} with {word}")
    for code, printed in blocks:
        code = code.replace(DEFAULT, os.environ["ORACLE_URL"])
        done = subprocess.run(interpreter, input=code, capture_output=True, text=True, timeout=60)
        wanted = ".*?".join(re.escape(part) for part in printed.strip().split("…"))
        said = done.stdout.strip()
        if done.returncode != 0 or (printed and not re.fullmatch(wanted, said, re.DOTALL)):
            sys.exit(f"{document}:\n{code}\nexit code {done.returncode}, it printed\n{said}\n{done.stderr}")
    print(f"ok  {document}: {len(blocks)} blocks of {language} with {word}")


if __name__ == "__main__":
    main(*sys.argv[1:])
