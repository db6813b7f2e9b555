#!/usr/bin/env python3
"""Puts the projects that the questions are about into target/questions (or the folder given).

    tests/data/questions/fetch.py [FOLDER]

Each comes from its own registry by that registry's client (cargo, npm, pip), in one exact version;
archives and the files unpacked from them are compared with the SHA-256 written below. A project
that is there already and right is left alone, so a second run needs no network. Nothing of the
projects is installed, and only pip runs a build step of one (it asks an sdist for its metadata).
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

# name: version, SHA-256 of the archive, SHA-256 of the files (see `tree_digest`). The archive of a
# crate is unpacked by cargo, after comparing it with the checksum of the index or the lock file.
PINNED = {
    "axum": (
        "0.8.9",
        None,
        "1abdc9d9999fec01cf876a17ec409c4613fdeb2d98a6467643ae2f4db58a2d53",
    ),
    "fastify": (
        "5.6.1",
        "51d4b0dbe007229304d036d47c33603d26de58abbabc1ffde9b2f6b0c882d3a8",
        "5e457287e65b0b22c4b4aa190d00515fa1ef7fc296e10040b6b09940a115ba20",
    ),
    "sphinx": (
        "9.0.4",
        "594ef59d042972abbc581d8baa577404abe4e6c3b04ef61bd7fc2acbd51f3fa3",
        "6f8dfd08515dfc3dc873d15f200792b890e8396c4eeebaf373d52d673dbec8a4",
    ),
    "tokio": (
        "1.54.1",
        None,
        "20bf9642148f7dceaf7da857248dc809cdd257d89f1db2d59564cf02053284bd",
    ),
    "eslint": (
        "9.39.1",
        "470c0b8b46a7dd5b0bdc63bf6b4c8793e8521c5350491a9522fa5c9c73bf9218",
        "825dbd713859279c718022280dcff0b139f77fbd64f1dcf59863896930b2f7ab",
    ),
    "django": (
        "5.2.8",
        "23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f",
        "72e2b8b0b30f3a51af1ec5327a268c9ad47f96d5f2c79bdfda8c93ec8b1469f1",
    ),
    "rdkafka": (
        "4.10.0+2.12.1",
        None,
        "9475b4c75a5a1e5e6ed92f1a4f5c0ee352d30693d12a7e4c43ade054ea7cda8a",
    ),
    "diesel": (
        "2.3.14",
        None,
        "02f425ae1ec22af6b8ec1d171d3f023ab16e40065fa9f771c01dddbe0c8464cd",
    ),
    "rxjs": (
        "7.8.2",
        "2312f8ffd9726ffd7bd53ea12c5f13663d09a3dc3326f448c70b88f5ef6fac82",
        "a83a616a3e7a02caf72c6ac92c899c80183bc288535fa9cf1dcb886d365490d4",
    ),
    "scrapy": (
        "2.19.0",
        "34130726582b64c91531162ab277c4053e558876d49ba219cb43679e71d80a87",
        "2a26de1894a43a91a58592a8a0ac791322e40008badb35323594f3720c83a142",
    ),
    "libgit2": (
        "0.18.8+1.9.7",
        None,
        "0b8ccc13b0c0224384685f56e7ee00f3f9ef0806e07213da6c31fb9ea86a2063",
    ),
    "rustls": (
        "0.23.46",
        None,
        "6644a9ff7226e1f4f428077a5c37736c0264986f1c938a6aad8817ef28fbaa02",
    ),
    "webpack": (
        "5.112.2",
        "fb618a5eba0f16fa43ed720cc4634df4e88c65d594c0e0ad2c5c0c9be4057dfe",
        "0e201049deee8ebd00f1c38c098ad40992eb9171cc829685e9d4d3324e6df7e9",
    ),
    "celery": (
        "5.7.0",
        "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0",
        "cbf65e195f9c9474ab3111fc86c8f82cdcf1b512922ded753e5036067c2eca82",
    ),
    "rocksdb": (
        "0.17.3+10.4.2",
        None,
        "5623ecc0c2df680659d85bbb746071bd45024b8b7f693ac3b41c75875fa3eafb",
    ),
}


class Failed(Exception):
    """Told to the user in one line; the exit code is 1."""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tree_digest(folder):
    """Over the sorted lines of path, NUL and SHA-256 of each file; `.cargo-ok` is only a mark."""
    lines = []
    for path in folder.rglob("*"):
        if path.is_file() and path.name != ".cargo-ok":
            lines.append(f"{path.relative_to(folder).as_posix()}\0{digest(path.read_bytes())}")
    return digest("\n".join(sorted(lines)).encode())


def run(command, cwd):
    if shutil.which(command[0]) is None:
        raise Failed(f"`{command[0]}` is not installed")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        errors = [line for line in said if line.lower().startswith(("error", "npm err"))]
        why = errors[0] if errors else said[-1]
        raise Failed(f"`{' '.join(command)}` failed, the first time it needs a network: {why}")
    return done.stdout


def cargo_source(crate, workspace, version, options):
    """Where cargo keeps the sources of a crate for this workspace, if it uses the version."""
    told = run(["cargo", "metadata", "--format-version", "1", *options], workspace)
    for package in json.loads(told)["packages"]:
        if package["name"] == crate and package["version"] == version:
            return pathlib.Path(package["manifest_path"]).parent
    return None


def from_cargo(crate, version, _archive_sum, scratch):
    """The sources that the build uses; of crates and versions that it doesn't, cargo gets them."""
    try:
        found = cargo_source(crate, ROOT, version, ["--locked"])
    except Failed:
        found = None
    if found is None:
        (scratch / "src").mkdir()
        (scratch / "src" / "lib.rs").touch()
        (scratch / "Cargo.toml").write_text(
            '[package]\nname = "questions"\nversion = "0.0.0"\nedition = "2021"\n\n'
            f'[dependencies]\n{crate} = "={version}"\n\n[workspace]\n'
        )
        found = cargo_source(crate, scratch, version, [])
    if found is None:
        raise Failed(f"cargo does not know {crate} {version}")
    copy = scratch / crate
    shutil.copytree(found, copy, ignore=shutil.ignore_patterns(".cargo-ok"))
    return copy


def from_npm(package, version, archive_sum, scratch):
    run(["npm", "pack", f"{package}@{version}", "--loglevel=error"], scratch)
    return unpack(scratch / f"{package}-{version}.tgz", archive_sum, scratch)


def from_pip(package, version, archive_sum, scratch):
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    only = ["--ignore-requires-python", "--no-binary", package]
    run([*pip, *only, f"{package}=={version}"], scratch)
    return unpack(scratch / f"{package}-{version}.tar.gz", archive_sum, scratch)


def unpack(archive, archive_sum, scratch):
    if digest(archive.read_bytes()) != archive_sum:
        raise Failed(f"{archive.name} is not the archive that was pinned")
    unpacked = scratch / "unpacked"
    with tarfile.open(archive) as tar:
        # Without the filter (old Pythons) the checksum above is what vouches for the names.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(unpacked, **safe)
    (folder,) = unpacked.iterdir()
    return folder


# Where each comes from, and its name there.
SOURCES = {
    "axum": (from_cargo, "axum"),
    "fastify": (from_npm, "fastify"),
    "sphinx": (from_pip, "sphinx"),
    "tokio": (from_cargo, "tokio"),
    "eslint": (from_npm, "eslint"),
    "django": (from_pip, "django"),
    "rdkafka": (from_cargo, "rdkafka-sys"),
    "diesel": (from_cargo, "diesel"),
    "rxjs": (from_npm, "rxjs"),
    "scrapy": (from_pip, "scrapy"),
    "libgit2": (from_cargo, "libgit2-sys"),
    "rustls": (from_cargo, "rustls"),
    "webpack": (from_npm, "webpack"),
    "celery": (from_pip, "celery"),
    "rocksdb": (from_cargo, "librocksdb-sys"),
}


def fetch(name, into):
    version, archive_sum, files_sum = PINNED[name]
    place = into / name
    if place.exists():
        if tree_digest(place) != files_sum:
            raise Failed(f"{place} holds something else; remove it and run this again")
        return f"{name} {version}: there already"
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        come_from, package = SOURCES[name]
        folder = come_from(package, version, archive_sum, pathlib.Path(scratch))
        if tree_digest(folder) != files_sum:
            raise Failed("the files are not those that were pinned")
        folder.rename(place)
    return f"{name} {version}: fetched into {place}"


def main():
    into = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "questions"
    into.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in PINNED:
        try:
            print(fetch(name, into))
        except (Failed, OSError) as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
