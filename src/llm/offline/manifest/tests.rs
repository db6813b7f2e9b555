//! What manifests and the other files at the top state, and what they do not.

use super::*;
use crate::llm::offline::interest::Tongue;

fn lines(text: &str) -> Lines {
    (1..).zip(text.lines().map(str::to_owned)).collect()
}

/// The lines and the value of what a file states.
fn told(fact: Fact, path: &str, text: &str) -> Option<(u32, u32, String)> {
    let statement = stated(fact, path, &lines(text))?;
    Some((statement.lines.0, statement.lines.1, statement.value))
}

const CARGO: &str = "\
[package]
name = \"shop\"
version = \"1.2.3\" # as published
authors = [
    \"Ann\",
    \"Bo\",
]
license = \"MIT OR Apache-2.0\"

[[bin]]
name = \"till\"

[dependencies]
serde = { version = \"9.9\" }

[dev-dependencies]
tempfile = \"3\"
";

const PACKAGE: &str = r#"{
  "name": "@acme/shop",
  "version": "5.0.1",
  "config": {
    "version": "0.0.0"
  },
  "license": "ISC",
  "author": {
    "name": "Ann"
  },
  "dependencies": {
    "left-pad": "^1.0.0"
  }
}
"#;

#[test]
fn manifests_state_what_is_about_the_project_itself() {
    for (fact, path, text, want) in [
        (Fact::Version, "Cargo.toml", CARGO, Some((3, 3, "1.2.3"))),
        (
            Fact::License,
            "Cargo.toml",
            CARGO,
            Some((8, 8, "MIT OR Apache-2.0")),
        ),
        (Fact::People, "Cargo.toml", CARGO, Some((4, 7, ""))),
        (
            Fact::Needs(None),
            "Cargo.toml",
            "[package]\nrust-version = { workspace = true }\n[workspace.package]\nrust-version = \"1.80\"\n",
            Some((4, 4, "1.80")),
        ),
        (
            Fact::Needs(Some(Tongue::Python)),
            "Cargo.toml",
            "[package]\nrust-version = \"1.80\"\n",
            None,
        ),
        (
            Fact::Needs(Some(Tongue::Node)),
            "package.json",
            "{\n  \"engines\": {\n    \"npm\": \">=9\",\n    \"node\": \">=20\"\n  }\n}\n",
            Some((4, 4, ">=20")),
        ),
        (
            Fact::Needs(Some(Tongue::Node)),
            "package.json",
            "{\n  \"engines\": { \"node\": \">=18\" }\n}\n",
            Some((2, 2, ">=18")),
        ),
        (
            Fact::Needs(Some(Tongue::Node)),
            "package.json",
            "{\n  \"engines\": {\n    \"vscode\": \"^1.80.0\"\n  }\n}\n",
            None,
        ),
        (
            Fact::Needs(Some(Tongue::Python)),
            "pyproject.toml",
            "[tool.poetry.dependencies]\npython = \"^3.11\"\n",
            Some((2, 2, "^3.11")),
        ),
        (
            Fact::Needs(Some(Tongue::Python)),
            "setup.py",
            "setup(\n    name=\"shop\",\n    python_requires=\">=3.9\",\n)\n",
            Some((3, 3, ">=3.9")),
        ),
        (
            Fact::Needs(None),
            "go.mod",
            "module shop\n\ngo 1.22\n",
            Some((3, 3, "1.22")),
        ),
        (
            Fact::Needs(Some(Tongue::Java)),
            "pom.xml",
            "<project>\n  <properties>\n    <java.version>21</java.version>\n  </properties>\n</project>\n",
            Some((3, 3, "21")),
        ),
        (
            Fact::Features,
            "Cargo.toml",
            "[package]\n[features]\ndefault = [\"net\"]\nnet = []\n\n[lib]\n",
            Some((2, 4, "")),
        ),
        (Fact::Dependencies, "Cargo.toml", CARGO, Some((13, 14, ""))),
        (
            Fact::Version,
            "Cargo.toml",
            "[package]\nversion.workspace = true\n[workspace.package]\nversion = \"2.0.0\"\n",
            Some((4, 4, "2.0.0")),
        ),
        (
            Fact::Version,
            "Cargo.toml",
            "[workspace]\n[workspace.dependencies]\nversion = \"2.0.0\"\n",
            None,
        ),
        (
            Fact::Dependencies,
            "Cargo.toml",
            "[package]\n[dependencies.a]\nversion = \"1\"\n\n[dependencies.b]\nversion = \"2\"\n\n[lib]\n",
            Some((2, 6, "")),
        ),
        (
            Fact::Version,
            "package.json",
            PACKAGE,
            Some((3, 3, "5.0.1")),
        ),
        (Fact::License, "package.json", PACKAGE, Some((7, 7, "ISC"))),
        (Fact::People, "package.json", PACKAGE, Some((8, 10, ""))),
        (
            Fact::Dependencies,
            "package.json",
            PACKAGE,
            Some((11, 13, "")),
        ),
        (
            Fact::Version,
            "pyproject.toml",
            "[build-system]\nrequires = []\n[project]\ndynamic = [\"version\"]\n",
            None,
        ),
        (
            Fact::Dependencies,
            "pyproject.toml",
            "[project]\nname = \"x\"\ndependencies = [\n  \"a[b]>=1\",\n  \"c\",\n]\n",
            Some((3, 6, "")),
        ),
        (
            Fact::Dependencies,
            "setup.cfg",
            "[metadata]\nname = x\n[options]\ninstall_requires =\n    a>=1\n    b\npackages = find:\n",
            Some((4, 6, "")),
        ),
        (
            Fact::Version,
            "setup.cfg",
            "[metadata]\nversion = 3.1\n",
            Some((2, 2, "3.1")),
        ),
        (
            Fact::Version,
            "setup.py",
            "from x import y\nsetup(\n    name='x',\n    version='0.9',\n)\n",
            Some((4, 4, "0.9")),
        ),
        (
            Fact::Version,
            "setup.py",
            "setup(name='x', version=\"0.9\", packages=[])\n",
            Some((1, 1, "0.9")),
        ),
        (
            Fact::Version,
            "setup.py",
            "setup(\n  version=__version__,\n)\n",
            None,
        ),
        (
            Fact::Dependencies,
            "go.mod",
            "module x\n\ngo 1.22\n\nrequire (\n\ta.com/b v1.0.0\n)\n",
            Some((5, 7, "")),
        ),
        (
            Fact::Version,
            "pom.xml",
            "<project>\n<parent>\n<version>1</version>\n</parent>\n<version>2.5</version>\n<dependencies>\n<version>3</version>\n</dependencies>\n",
            Some((5, 5, "2.5")),
        ),
        (
            Fact::Dependencies,
            "pom.xml",
            "<project>\n<dependencies>\n<x/>\n</dependencies>\n",
            Some((2, 4, "")),
        ),
        (
            Fact::Version,
            "build.gradle",
            "plugins { id 'java' }\ngroup = 'x'\nversion = '7.1'\n",
            Some((3, 3, "7.1")),
        ),
        (
            Fact::Version,
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.10)\nproject(shop VERSION 4.2.0 LANGUAGES C)\n",
            Some((2, 2, "4.2.0")),
        ),
        (
            Fact::Version,
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.10)\nproject(\n  shop\n  VERSION 4.2.0\n)\n",
            Some((4, 4, "4.2.0")),
        ),
        (
            Fact::Version,
            "CMakeLists.txt",
            "project(shop VERSION ${V})\nset_target_properties(shop PROPERTIES\n  VERSION 7.7.7)\n",
            None,
        ),
        (
            Fact::License,
            "Cargo.toml",
            "[package]\nlicense = { workspace = true }\n[workspace.package]\nlicense = \"MIT\"\n",
            Some((4, 4, "MIT")),
        ),
        (
            Fact::License,
            "pyproject.toml",
            "[project]\nlicense = {text = \"BSD\"}\n",
            Some((2, 2, "BSD")),
        ),
        (
            Fact::License,
            "pyproject.toml",
            "[project]\nlicense = {file = \"LICENSE\"}\n",
            None,
        ),
        (
            Fact::Version,
            "configure.ac",
            "AC_INIT([shop], [1.4], [a@b])\n",
            Some((1, 1, "1.4")),
        ),
        (
            Fact::Version,
            "shop.gemspec",
            "Gem::Specification.new do |s|\n  s.version = '1.1'\nend\n",
            Some((2, 2, "1.1")),
        ),
        (
            Fact::Version,
            "mix.exs",
            "  @version \"1.5\"\n  version: @version,\n",
            Some((1, 1, "1.5")),
        ),
        (
            Fact::Version,
            "meson.build",
            "project('x', 'c', version : '0.3')\n",
            Some((1, 1, "0.3")),
        ),
        (
            Fact::Version,
            "pubspec.yaml",
            "name: x\nversion: 1.0.0+1\n",
            Some((2, 2, "1.0.0+1")),
        ),
        (
            Fact::License,
            "PKG-INFO",
            "Name: x\nLicense-Expression: MIT\n",
            Some((2, 2, "MIT")),
        ),
        (
            Fact::License,
            "LICENSE",
            "\n  The MIT License (MIT)\n\nCopyright\n",
            Some((2, 4, "The MIT License (MIT)")),
        ),
        (
            Fact::License,
            "COPYING",
            "Copyright (c) X\n\nRedistribution is\n",
            Some((1, 3, "")),
        ),
        (Fact::People, "AUTHORS", "Ann\nBo\n", Some((1, 2, ""))),
        (
            Fact::Version,
            "CHANGELOG.md",
            "# Changes\n\n[Keep a Changelog](https://x/en/1.0.0/)\nvar x = 1.5\n\n## v1.4.0\n",
            Some((6, 6, "1.4.0")),
        ),
        (Fact::License, "license.go", "package license\n", None),
        (Fact::Version, "history.js", "1.2.3\n", None),
        (Fact::Version, "VERSION", "1.2.3\n", Some((1, 1, "1.2.3"))),
        (
            Fact::Version,
            "CHANGELOG.md",
            "# Changes\n\n## Unreleased\n\n- Uses a 9.9 now\n\n## [1.4.0] - 2026-01-01\n",
            Some((7, 7, "1.4.0")),
        ),
        (
            Fact::Version,
            "CHANGES.rst",
            "Changes\n=======\n\nRelease 1.8.2\n-------------\n",
            Some((4, 4, "1.8.2")),
        ),
        (
            Fact::Dependencies,
            "requirements.txt",
            "a\nb==1\n",
            Some((1, 2, "")),
        ),
        (Fact::Size, "Cargo.toml", CARGO, None),
        (Fact::Version, "main.rs", "version = \"1.0\"\n", None),
    ] {
        let want =
            want.map(|(first, last, value): (u32, u32, &str)| (first, last, value.to_owned()));
        assert_eq!(told(fact, path, text), want, "{fact:?} {path}: {text}");
    }
}

#[test]
fn what_is_longer_than_what_is_shown_is_cut() {
    let text = format!("[dependencies]\n{}", "x = \"1\"\n".repeat(100));
    let statement = stated(Fact::Dependencies, "Cargo.toml", &lines(&text)).unwrap();
    assert_eq!((statement.lines, statement.is_cut), ((1, MOST_LINES), true));
}

#[test]
fn the_likeliest_files_come_first() {
    let files = [
        "CHANGELOG.md",
        "package.json",
        "LICENSE-MIT",
        "Cargo.toml",
        "src/Cargo.toml",
        "x.rs",
        "VERSION",
    ];
    for (fact, want) in [
        (
            Fact::Version,
            &["Cargo.toml", "package.json", "CHANGELOG.md", "VERSION"][..],
        ),
        (
            Fact::License,
            &["LICENSE-MIT", "Cargo.toml", "package.json"],
        ),
        (Fact::Dependencies, &["Cargo.toml", "package.json"]),
        (Fact::Size, &[]),
    ] {
        assert_eq!(telling(fact, files.into_iter()), want, "{fact:?}");
    }
}

#[test]
fn a_project_is_known_by_what_its_manifest_calls_it() {
    for (name, path, text, want) in [
        ("shop", "Cargo.toml", CARGO, true),
        ("Shop", "package.json", PACKAGE, true),
        ("serde", "Cargo.toml", CARGO, false),
        (
            "till",
            "Cargo.toml",
            "[package]\nname = \"shop\"\n[[bin]]\nname = \"till\"\n",
            false,
        ),
        (
            "shop",
            "CMakeLists.txt",
            "project(shop VERSION 1.0)\n",
            true,
        ),
        ("libgit2", "CMakeLists.txt", "project(libgit2\n", true),
    ] {
        assert_eq!(is_called(name, path, &lines(text)), want, "{name} {path}");
    }
}

#[test]
fn the_version_of_something_else_is_none_of_the_project() {
    for (text, want) in [
        ("__version__ = \"1.2\"", Some("1.2")),
        ("export const VERSION = 'v3.4.5';", Some("3.4.5")),
        ("MIN_PYTHON_VERSION = \"3.8\"", None),
        ("version = \"two\"", None),
    ] {
        assert_eq!(plain::version_in(text).as_deref(), want, "{text}");
    }
}
