//! Rules for the tree itself: crates depend on what they may, imports within a crate point down, files
//! stay short, pure modules stay pure, and documents name what exists.
//!
//! The checks read lines, not syntax: a line that begins with `//` is a comment, and everything
//! else counts. rustfmt, rustc and clippy check the rest.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace, and which others each may depend on.
const CRATES: &[(&str, &str)] = &[
    ("config", ""),
    ("prompts", ""),
    ("src/core", "defaults prompts"),
    ("src/ports", "core"),
    ("src/llm", "core ports"),
    ("src/tool", "core ports"),
    ("src/journal", "core ports"),
    ("src/config", "core defaults llm ports"),
    ("src/runtime", "config core llm ports tool"),
    ("src/control", "core llm ports runtime"),
    ("src/mcp", "control core ports runtime"),
    ("src/http", "config control core llm mcp ports runtime"),
    ("src/mock", "config core llm ports"),
    (
        "src/cli",
        "config control core defaults http journal llm mcp mock ports runtime tool",
    ),
    (
        "src/testkit",
        "control core http journal llm mock ports runtime tool",
    ),
];

/// What a crate of pure rules must not depend on.
const RUNTIMES: &[&str] = &["ractor", "reqwest", "tokio", "tokio-util"];

/// A folder, the root by which paths name its files, and its floors, lowest first: a file imports
/// files of lower floors only, apart from its own folder.
type Floors = (
    &'static str,
    &'static str,
    &'static [&'static [&'static str]],
);

const FLOORS: &[Floors] = &[
    (
        "src/core/",
        "crate::",
        &[&["model"], &["signal"], &["kernel", "prompt", "query"]],
    ),
    (
        "src/ports/",
        "crate::",
        &[&["disk"], &["access", "journal", "llm", "tool"]],
    ),
    ("src/runtime/", "crate::", &[&["actor"], &["app"]]),
    ("src/runtime/actor/", "actor::", ACTOR_FLOORS),
];

/// A message, a state or a setting stands below all that use it.
const ACTOR_FLOORS: &[&[&str]] = &[
    &[
        "approvals",
        "call_progress",
        "clock",
        "deadline",
        "journal_router",
        "mailbox",
        "message",
        "meter",
        "outcome",
        "profile",
        "signal_tracker",
        "task",
        "warnings",
    ],
    &[
        "error",
        "live_session",
        "pool",
        "replay",
        "settings",
        "status",
        "trace",
    ],
    &["bus", "ledger"],
    &["system_log", "text_publisher"],
    &["usage_log"],
    &["protocol"],
    &["classifier", "composer", "gateway", "router"],
    &["recovery", "services"],
    &["handle"],
    &["port", "session"],
    &["shard"],
    &["supervisor"],
];

/// Modules without I/O, clock or runtime, and the names that they must not contain.
const PURE: &[&str] = &["kernel", "model", "query", "signal"];
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::thread",
    "Instant",
    "::now()",
    "now_v7",
];

/// Maximum number of lines in a file, without the test module at its end.
const LONGEST: usize = 800;

struct Source {
    path: String,
    text: String,
}

impl Source {
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..)
            .zip(self.text.lines())
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn module(&self) -> Option<&str> {
        let inner = self.path.strip_prefix("src/core/")?;
        let module = inner.split('/').next()?;
        Some(module.strip_suffix(".rs").unwrap_or(module))
            .filter(|module| !["lib", "main"].contains(module))
    }

    fn is_test(&self) -> bool {
        !self.path.starts_with("src/")
            || self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
    }

    fn tests_begin(&self) -> usize {
        let mut lines = self.code();
        while let Some((number, line)) = lines.next() {
            if line == "#[cfg(test)]" && lines.any(|(_, next)| next == "mod tests {") {
                return number;
            }
        }
        self.text.lines().count() + 1
    }
}

/// Returns the first segments of every path after `root`, such as `crate::`, groups included.
fn modules_named(source: &Source, root: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let lines: Vec<(usize, &str)> = source.code().collect();
    for (at, (number, line)) in lines.iter().enumerate() {
        for (start, _) in line.match_indices(root) {
            let rest = &line[start + root.len()..];
            if line[..start].ends_with('$') {
                continue;
            }
            if let Some(group) = rest.strip_prefix('{') {
                let following = lines[at + 1..].iter().map(|(_, line)| *line);
                let text: String = std::iter::once(group).chain(following).collect();
                found.extend(group_members(&text).map(|module| (*number, module)));
            } else {
                found.push((*number, first_word(rest)));
            }
        }
    }
    found
}

fn first_word(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Splits the members of a group that was opened before `text`.
fn group_members(text: &str) -> impl Iterator<Item = String> {
    let mut depth = 0_i32;
    let mut members = vec![String::new()];
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            _ if depth < 0 => break,
            ',' if depth == 0 => members.push(String::new()),
            _ => members.last_mut().unwrap().push(c),
        }
    }
    members
        .into_iter()
        .map(|m| first_word(&m))
        .filter(|m| !m.is_empty())
}

fn files_import_lower_floors(source: &Source) -> Vec<String> {
    let here = |floors: &&Floors| source.path.starts_with(floors.0);
    let within = |floors| imports_of_higher_floors(source, floors);
    FLOORS.iter().filter(here).flat_map(within).collect()
}

fn imports_of_higher_floors(source: &Source, (folder, root, floors): &Floors) -> Vec<String> {
    let inner = source.path.strip_prefix(folder).unwrap_or_default();
    let floor_of = |module: &str| floors.iter().position(|floor| floor.contains(&module));
    let own = first_word(inner);
    // The root joins all; the test kit is behind its feature.
    if ["lib", "testkit"].contains(&own.as_str()) {
        return Vec::new();
    }
    let Some(floor) = floor_of(&own) else {
        return vec![format!("{}: `{own}` has no floor", source.path)];
    };
    let mut found = modules_named(source, root);
    if !inner.contains('/') {
        found.extend(modules_named(source, "super::"));
    }
    let tests = source.tests_begin();
    found.retain(|(line, module)| {
        !source.is_test()
            && *line < tests
            && *module != own
            && floor_of(module).is_some_and(|to| to >= floor)
    });
    let told = found.into_iter().map(|(line, module)| {
        format!("{}:{line}: `{own}` must not import `{module}`", source.path)
    });
    told.collect()
}

fn pure_modules_stay_pure(source: &Source) -> Vec<String> {
    let tests = source.tests_begin();
    if source.is_test() || !source.module().is_some_and(|module| PURE.contains(&module)) {
        return Vec::new();
    }
    let found = source
        .code()
        .filter(|(number, line)| *number < tests && IMPURE.iter().any(|name| line.contains(name)));
    found
        .map(|(number, line)| format!("{}:{number}: impure: {line}", source.path))
        .collect()
}

fn stays_short(source: &Source) -> Vec<String> {
    let lines = source.tests_begin() - 1;
    let long = (lines > LONGEST).then(|| format!("{}: {lines} lines, over {LONGEST}", source.path));
    long.into_iter().collect()
}

/// A file that no `mod` line declares is not compiled, and its tests never run.
fn is_declared(path: &str, sources: &[Source]) -> bool {
    let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
    let folder = Path::new(path).parent().unwrap().to_str().unwrap();
    let is_root = |path: &str| {
        path.ends_with("/lib.rs") || ["src/main.rs", "tests/it/main.rs"].contains(&path)
    };
    is_root(path)
        || sources.iter().any(|parent| {
            let inside = match parent.path.as_str() {
                root if is_root(root) => root.rsplit_once('/').unwrap().0,
                other => other.strip_suffix(".rs").unwrap(),
            };
            inside == folder
                && parent
                    .code()
                    .any(|(_, l)| l.ends_with(&format!("mod {name};")))
        })
}

fn commands(text: &str, select: impl Fn(&str) -> Option<String>) -> Vec<String> {
    text.lines().filter_map(select).collect()
}

fn read_tree(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            read_tree(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    read_tree(&root.join("src"), &mut paths);
    read_tree(&root.join("tests/it"), &mut paths);
    let source = |path: PathBuf| Source {
        path: path
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .replace('\\', "/"),
        text: fs::read_to_string(path).unwrap(),
    };
    paths.into_iter().map(source).collect()
}

#[test]
fn source_tree_follows_the_layout_rules() {
    let sources = sources();
    let rules = [
        files_import_lower_floors,
        pure_modules_stay_pure,
        stays_short,
    ];
    let mut found: Vec<String> = sources
        .iter()
        .flat_map(|source| rules.iter().flat_map(|rule| rule(source)))
        .collect();
    let lost = sources
        .iter()
        .filter(|source| !is_declared(&source.path, &sources));
    found.extend(lost.map(|source| format!("{}: no file declares it", source.path)));
    // A rule for what is not there would hold for ever.
    let exists = |place: &str| {
        let inside = |source: &Source| source.path.strip_prefix(place).map(str::to_owned);
        let mut rests = sources.iter().filter_map(inside);
        rests.any(|rest| rest.starts_with(['.', '/']))
    };
    let floors = FLOORS.iter().flat_map(|(folder, _, floors)| {
        let names = floors.iter().copied().flatten();
        names.map(move |name| format!("{folder}{name}"))
    });
    let pure = PURE.iter().map(|module| format!("src/core/{module}"));
    let absent = floors.chain(pure).filter(|place| !exists(place));
    found.extend(absent.map(|place| format!("{place}: a rule names it, but it is not there")));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn manifest(folder: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let text = fs::read_to_string(path.join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

#[test]
fn crates_depend_on_lower_crates_only() {
    for (folder, allowed) in CRATES {
        let manifest = manifest(folder);
        let names = manifest.get("dependencies").and_then(toml::Value::as_table);
        let names = || names.into_iter().flat_map(toml::Table::keys);
        let ours: Vec<&str> = names()
            .filter_map(|name| name.strip_prefix("oracle-"))
            .collect();
        assert_eq!(ours.join(" "), *allowed, "{folder}");
        let found: Vec<_> = names()
            .filter(|name| RUNTIMES.contains(&name.as_str()))
            .collect();
        assert!(
            *folder != "src/core" || found.is_empty(),
            "{folder}: {found:?}"
        );
    }
    let listed: Vec<&str> = CRATES.iter().map(|(folder, _)| *folder).collect();
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let folder = folder.unwrap();
        let path = format!("src/{}", folder.file_name().to_str().unwrap());
        let is_folder = folder.file_type().unwrap().is_dir();
        assert!(!is_folder || listed.contains(&&*path), "no rule for {path}");
    }
    let mut built = listed;
    built.retain(|folder| *folder != "src/testkit");
    built.push(".");
    built.sort_unstable();
    let workspace = manifest(".").remove("workspace").unwrap();
    let mut members: Vec<&str> = workspace["default-members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(toml::Value::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(members, built, "what `cargo build` and `cargo test` take");
}

#[test]
fn contributing_and_ci_run_the_same_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let section = guide.split("## Checking\n").nth(1).unwrap();
    let mut blocks = section.split("```").skip(1).step_by(2);
    for script in [".ci/run", ".ci/long"] {
        let ci = fs::read_to_string(root.join(script)).unwrap();
        let block = blocks.next().unwrap();
        let told = commands(block.trim_start_matches("sh\n"), |line| {
            Some(line.to_owned())
        });
        let run = commands(&ci, |line| {
            let step = line.trim_start().strip_prefix("step '")?;
            Some(step.strip_suffix('\'')?.to_owned())
        });
        assert_eq!(told, run, "{script}");
    }
}

/// Relative links must lead to files, and a Rust file named in backticks must exist below `src` or
/// the root.
#[test]
fn documents_name_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = sources();
    let docs = fs::read_dir(root.join("docs")).unwrap();
    let mut documents: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents
        .extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut missing = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        let folder = document.parent().unwrap();
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        let dead = links.filter(|link| !link.contains(':') && !folder.join(link).exists());
        let files = text.split('`').skip(1).step_by(2).filter(|name| {
            let is_file = name.ends_with(".rs") && !name.contains([' ', '*']);
            is_file && !root.join(name).exists()
        });
        let lost = files.filter(|name| {
            let end = format!("/{name}");
            !sources.iter().any(|source| source.path.ends_with(&end))
        });
        missing.extend(
            dead.chain(lost)
                .map(|name| format!("{}: {name}", document.display())),
        );
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Entries are `it/MODULE::name` and `MODULE::name`; a test may move within its module.
#[test]
fn tests_named_in_the_readme_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("tests/README.md")).unwrap();
    let sources = sources();
    let named: Vec<(&str, &str)> = list
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|entry| entry.split_once("::"))
        .collect();
    assert!(named.len() > 300, "the list names {} tests", named.len());
    let rows = list.lines().filter(|row| row.starts_with("| "));
    let rows = rows.filter(|row| *row != "| behavior | shown by |");
    let bare: Vec<&str> = rows
        .filter(|row| !row.ends_with("` |") && !row.contains("` in `"))
        .collect();
    assert!(bare.is_empty(), "rows without a test: {bare:?}");
    let exists = |module: &str, name: &str| {
        let module = if module.starts_with("it/") {
            format!("tests/{module}")
        } else {
            format!("/{module}")
        };
        let line = format!("fn {name}(");
        let root = if module.starts_with('/') {
            "src/"
        } else {
            "tests/"
        };
        let inside = |path: &str| {
            path.starts_with(root)
                && path
                    .match_indices(&module)
                    .any(|(at, _)| path[at + module.len()..].starts_with(['.', '/']))
        };
        sources
            .iter()
            .any(|source| inside(&source.path) && source.text.contains(&line))
    };
    let missing: Vec<_> = named
        .into_iter()
        .filter(|(r, n)| *r != "it/MODULE" && *r != "MODULE" && !exists(r, n))
        .collect();
    assert!(
        missing.is_empty(),
        "tests/README.md names tests that do not exist: {missing:?}"
    );
}

#[test]
fn imports_are_found_in_paths_and_groups() {
    let text = "use crate::{\n    model::{A, B},\n    prompt,\n};\n// crate::llm\nfn f() { crate::query::g() }\n";
    let source = Source {
        path: "src/core/kernel/phase.rs".into(),
        text: text.into(),
    };
    let modules: Vec<String> = modules_named(&source, "crate::")
        .into_iter()
        .map(|(_, module)| module)
        .collect();
    assert_eq!(modules, ["model", "prompt", "query"]);
    assert_eq!(
        files_import_lower_floors(&source),
        [
            "src/core/kernel/phase.rs:1: `kernel` must not import `prompt`",
            "src/core/kernel/phase.rs:6: `kernel` must not import `query`",
        ]
    );
}

#[test]
fn imports_of_higher_floors_of_actor_are_found() {
    let source = |path: &str, text: &str| Source {
        path: path.into(),
        text: text.into(),
    };
    for (path, text, wrong) in [
        (
            "src/runtime/actor/bus.rs",
            "use super::{\n    pool::Pool,\n    shard::ShardActor,\n};\n",
            "shard",
        ),
        (
            "src/runtime/actor/session/work.rs",
            "use crate::{\n    actor::{\n        task::Task,\n        supervisor::System,\n    },\n};\n",
            "supervisor",
        ),
        (
            "src/runtime/actor/gateway/queue.rs",
            "fn f() { crate::actor::handle::g() }\n",
            "handle",
        ),
        (
            "src/runtime/actor/gateway/queue.rs",
            "use super::{shard, Ticket};\n",
            "",
        ),
        ("src/runtime/actor/unknown.rs", "", "unknown"),
    ] {
        let found = files_import_lower_floors(&source(path, text));
        let expected = usize::from(!wrong.is_empty());
        assert_eq!(found.len(), expected, "{path}: {found:?}");
        assert!(found.iter().all(|told| told.contains(wrong)), "{found:?}");
    }
}
