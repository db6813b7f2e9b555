"""Runs a command with `oracle serve` beside it, whose address is ORACLE_URL and for which ORACLE_KEY is a key.

    python served.py PATH/TO/oracle COMMAND...

The model `oracle` is the offline one. Behind the model `mock` is a mock model, whose address is MOCK_URL.
"""

import os
import subprocess
import sys
import tempfile

from peer import Place, mocked, run, served


def main(oracle, *command):
    with tempfile.TemporaryDirectory() as folder, mocked(oracle, "--strict") as (mock, config):
        place = Place(oracle, folder, lambda chain: config, "warn")
        key = place.key("peer")
        with served(place, "offline") as url:
            environment = {**os.environ, "ORACLE_URL": url, "ORACLE_KEY": key, "MOCK_URL": mock}
            done = subprocess.run(command, env=environment, timeout=300)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: exit code {done.returncode}")


if __name__ == "__main__":
    run(main)
