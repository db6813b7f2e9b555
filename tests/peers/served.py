"""Runs a command with `oracle serve` beside it, whose address is ORACLE_URL and for which ORACLE_KEY is a key.

    python served.py PATH/TO/oracle COMMAND...
"""

import os
import subprocess
import sys
import tempfile

from peer import Place, run, served


def main(oracle):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(oracle, folder)
        key = place.key("peer")
        with served(place, "offline") as url:
            environment = {**os.environ, "ORACLE_URL": url, "ORACLE_KEY": key}
            done = subprocess.run(sys.argv[2:], env=environment, timeout=300)
            if done.returncode != 0:
                sys.exit(f"{' '.join(sys.argv[2:])}: exit code {done.returncode}")


if __name__ == "__main__":
    run(main)
