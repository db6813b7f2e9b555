#!/usr/bin/env python3
"""Checks the rows beside it against the projects in target/questions (or the folder given).

    tests/data/questions/check.py [FOLDER]

Of each row: its six columns, id, split, kind and style, and that each place is a file of the
project with the lines named. Of each file: that its rows are all of one split or take turns, the
kinds stand in order and no question stands twice. Prints sums, and of a bad row the id and what is wrong, never its question
(half of them are held out); the exit code is 1 then.
"""

import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SPLITS = ("tune", "final")
KINDS = ("locate", "how", "error", "setting", "docs", "change", "none")
STYLES = ("plain", "paraphrase", "typo", "de", "fr", "es")
PLACE = re.compile(r"(\S+):(\d+)-(\d+)")


def wrong_place(project, place, lines_of):
    """What is wrong with a place, or None."""
    match = PLACE.fullmatch(place)
    if match is None:
        return f"`{place}` is not path:first-last"
    path, first, last = project / match[1], int(match[2]), int(match[3])
    if not path.is_file() or project.resolve() not in path.resolve().parents:
        return f"{match[1]} is no file of the project"
    if path not in lines_of:
        text = path.read_bytes().decode("utf-8", "replace")
        lines_of[path] = text.removesuffix("\n").split("\n")
    lines = lines_of[path]
    if not 1 <= first <= last <= len(lines):
        return f"{place} is outside the {len(lines)} lines"
    if not any(line.strip() for line in lines[first - 1 : last]):
        return f"{place} is blank"
    return None


def check(table, project):
    """The complaints about a file of rows, and its rows."""
    complaints, rows, lines_of, questions = [], [], {}, set()
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        row = line.split("\t")
        name = row[0]
        if len(row) != 6:
            complaints.append(f"{name}: {len(row)} columns")
            continue
        _, split, kind, style, question, places = row
        if name != f"{table.stem}-{len(rows) + 1:02}":
            complaints.append(f"{name}: not the next id")
        if split not in SPLITS or kind not in KINDS or style not in STYLES:
            complaints.append(f"{name}: unknown split, kind or style")
            continue
        if rows and KINDS.index(kind) < KINDS.index(rows[-1][2]):
            complaints.append(f"{name}: the kinds are not in order")
        if not question.strip() or question in questions:
            complaints.append(f"{name}: no question, or one that stands twice")
        if (kind == "none") != (not places):
            complaints.append(f"{name}: kind {kind} with {len(places.split())} places")
        wrong = [wrong_place(project, place, lines_of) for place in places.split()]
        if len(set(places.split())) < len(wrong):
            complaints.append(f"{name}: a place stands twice")
        complaints += [f"{name}: {what}" for what in wrong if what]
        questions.add(question)
        rows.append(row)
    splits = [row[1] for row in rows]
    if len(set(splits)) > 1 and any(a == b for a, b in zip(splits, splits[1:])):
        complaints.append(f"{table.stem}: the splits take no turns")
    return complaints, rows


def main():
    projects = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "questions"
    failed = False
    for table in sorted(HERE.glob("*.tsv")):
        if not (projects / table.stem).is_dir():
            failed = True
            print(f"{table.stem}: not in {projects}; fetch.py brings it", file=sys.stderr)
            continue
        complaints, rows = check(table, projects / table.stem)
        failed |= bool(complaints)
        for complaint in complaints:
            print(complaint, file=sys.stderr)
        splits = collections.Counter(row[1] for row in rows)
        print(
            f"{table.stem}: {len(rows)} rows ({splits['tune']} tune, {splits['final']} final), "
            f"{sum(row[2] == 'none' for row in rows)} without an answer, "
            f"{sum(len(row[5].split()) for row in rows)} places"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
