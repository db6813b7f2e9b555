//! The commands by which a project is built, tested, run and installed: those that its files name, and those that
//! are usual where such a file lies at the top. Pure.

mod documents;

pub(super) use documents::documents;

use super::{evidence::Evidence, interest::Chore, manifest::balance, source::Lines};

/// A command, and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) text: String,
    pub(super) path: String,
    /// The line that names it; none if it is only usual there.
    pub(super) line: Option<u32>,
}

/// How the commands of a file at the top are found.
enum Source {
    /// Scripts of a `package.json`.
    Scripts,
    /// Targets of a Makefile or recipes of a justfile, run by this program.
    Targets(&'static str),
    /// Those that are usual: for each chore one, or none.
    Usual(&'static [(Chore, &'static str)]),
}

/// Files by their names in small letters: those that name commands come first.
const SOURCES: &[(&str, Source)] = &[
    ("package.json", Source::Scripts),
    ("justfile", Source::Targets("just")),
    ("makefile", Source::Targets("make")),
    ("gnumakefile", Source::Targets("make")),
    (
        "cargo.toml",
        Source::Usual(&[
            (Chore::Build, "cargo build"),
            (Chore::Test, "cargo test"),
            (Chore::Run, "cargo run"),
            (Chore::Install, "cargo install --path ."),
            (Chore::Check, "cargo clippy"),
            (Chore::Format, "cargo fmt"),
        ]),
    ),
    (
        "go.mod",
        Source::Usual(&[
            (Chore::Build, "go build ./..."),
            (Chore::Test, "go test ./..."),
            (Chore::Run, "go run ."),
            (Chore::Install, "go install ./..."),
            (Chore::Check, "go vet ./..."),
            (Chore::Format, "gofmt -w ."),
        ]),
    ),
    ("tox.ini", Source::Usual(&[(Chore::Test, "tox")])),
    ("noxfile.py", Source::Usual(&[(Chore::Test, "nox")])),
    (
        "manage.py",
        Source::Usual(&[
            (Chore::Test, "python manage.py test"),
            (Chore::Run, "python manage.py runserver"),
        ]),
    ),
    (
        "pyproject.toml",
        Source::Usual(&[
            (Chore::Build, "python -m build"),
            (Chore::Test, "python -m pytest"),
            (Chore::Install, "pip install ."),
        ]),
    ),
    (
        "setup.py",
        Source::Usual(&[
            (Chore::Build, "python -m build"),
            (Chore::Test, "python -m pytest"),
            (Chore::Install, "pip install ."),
        ]),
    ),
    (
        "cmakelists.txt",
        Source::Usual(&[
            (Chore::Build, "cmake -B build && cmake --build build"),
            (Chore::Test, "ctest --test-dir build"),
            (Chore::Install, "cmake --install build"),
        ]),
    ),
    (
        "meson.build",
        Source::Usual(&[
            (Chore::Build, "meson setup build && meson compile -C build"),
            (Chore::Test, "meson test -C build"),
            (Chore::Install, "meson install -C build"),
        ]),
    ),
    (
        "pom.xml",
        Source::Usual(&[
            (Chore::Build, "mvn package"),
            (Chore::Test, "mvn test"),
            (Chore::Install, "mvn install"),
        ]),
    ),
    (
        "gradlew",
        Source::Usual(&[
            (Chore::Build, "./gradlew build"),
            (Chore::Test, "./gradlew test"),
            (Chore::Run, "./gradlew run"),
        ]),
    ),
    (
        "build.gradle",
        Source::Usual(&[(Chore::Build, "gradle build"), (Chore::Test, "gradle test")]),
    ),
    (
        "build.gradle.kts",
        Source::Usual(&[(Chore::Build, "gradle build"), (Chore::Test, "gradle test")]),
    ),
    (
        "mix.exs",
        Source::Usual(&[
            (Chore::Build, "mix compile"),
            (Chore::Test, "mix test"),
            (Chore::Install, "mix deps.get"),
        ]),
    ),
    (
        "gemfile",
        Source::Usual(&[
            (Chore::Install, "bundle install"),
            (Chore::Test, "bundle exec rake"),
        ]),
    ),
    (
        "composer.json",
        Source::Usual(&[
            (Chore::Install, "composer install"),
            (Chore::Test, "vendor/bin/phpunit"),
        ]),
    ),
    (
        "pubspec.yaml",
        Source::Usual(&[(Chore::Install, "dart pub get"), (Chore::Test, "dart test")]),
    ),
    (
        "package.swift",
        Source::Usual(&[
            (Chore::Build, "swift build"),
            (Chore::Test, "swift test"),
            (Chore::Run, "swift run"),
        ]),
    ),
    (
        "build.zig",
        Source::Usual(&[(Chore::Build, "zig build"), (Chore::Test, "zig build test")]),
    ),
    (
        "dockerfile",
        Source::Usual(&[(Chore::Build, "docker build .")]),
    ),
];

/// Which of some files at the top have to be read to know their commands.
pub(super) fn naming<'a>(files: &[&'a str]) -> Vec<&'a str> {
    let names = |file: &&&str| {
        let lower = file.to_lowercase();
        let source = SOURCES.iter().find(|(name, _)| *name == lower);
        source.is_some_and(|(_, source)| !matches!(source, Source::Usual(_)))
    };
    files.iter().filter(names).copied().collect()
}

/// The commands for a chore: of each file that names one, and of the first document that shows one; or else
/// the first that is usual, beside a `package.json`.
pub(super) fn of(chore: Chore, evidence: &Evidence) -> Vec<Command> {
    let files = evidence.top_files();
    let named: Vec<Command> = SOURCES
        .iter()
        .filter_map(|(name, source)| {
            let path = files.iter().find(|file| file.to_lowercase() == *name)?;
            let lines = evidence.files.get(*path)?;
            let found = match source {
                Source::Scripts => script(chore, lines),
                Source::Targets(program) => target(chore, program, lines),
                Source::Usual(_) => None,
            };
            let (line, text) = found?;
            let path = (*path).to_owned();
            Some(Command {
                text,
                path,
                line: Some(line),
            })
        })
        .collect();
    let mut shown = documents(chore, &files).into_iter();
    let shown = shown.find_map(|path| documents::typed(chore, path, evidence.files.get(path)?));
    // Many projects have a `package.json` for their tools alone.
    let is_sure = shown.is_some() || named.iter().any(|one| !one.path.ends_with(".json"));
    if is_sure {
        return named.into_iter().chain(shown).collect();
    }
    let usual = SOURCES.iter().find_map(|(name, source)| {
        let path = files.iter().find(|file| file.to_lowercase() == *name)?;
        let Source::Usual(commands) = source else {
            return None;
        };
        let (_, text) = commands.iter().find(|(of, _)| *of == chore)?;
        Some(Command {
            text: (*text).to_owned(),
            path: (*path).to_owned(),
            line: None,
        })
    });
    // What is usual for its language tells more than a script of its tools.
    match has_other(evidence) {
        true => usual.into_iter().chain(named).collect(),
        false => named.into_iter().chain(usual).collect(),
    }
}

/// Whether a manifest at the top is one of another language than that of a `package.json`.
pub(super) fn has_other(evidence: &Evidence) -> bool {
    let files = evidence.top_files();
    let is_other = |name: &str| {
        SOURCES
            .iter()
            .any(|(known, source)| *known == name && matches!(source, Source::Usual(_)))
    };
    let mut names = files.iter().map(|file| file.to_lowercase());
    names.any(|name| !matches!(&*name, "dockerfile" | "tox.ini" | "noxfile.py") && is_other(&name))
}

/// How scripts and targets are called that do it, the likeliest first.
const fn names(chore: Chore) -> &'static [&'static str] {
    match chore {
        Chore::Build => &["build", "compile", "all", "dist"],
        Chore::Test => &["test", "tests", "check", "unit"],
        Chore::Run => &["start", "dev", "serve", "run"],
        Chore::Install => &["install", "setup", "bootstrap"],
        Chore::Check => &["lint", "check"],
        Chore::Format => &["format", "fmt", "prettier"],
        Chore::Contribute => &["setup", "dev", "bootstrap"],
    }
}

/// A script of a `package.json`: its line and what runs it.
fn script(chore: Chore, lines: &Lines) -> Option<(u32, String)> {
    let opens = |text: &str| {
        let behind = text.trim_start().strip_prefix("\"scripts\"");
        behind.is_some_and(|behind| behind.trim_start().starts_with(':'))
    };
    let (&start, _) = lines.iter().find(|(_, text)| opens(text))?;
    // Up to the line that closes it; what comes behind are no scripts.
    let mut open = 0;
    let inside = lines.range(start..).take_while(|(at, text)| {
        let is_inside = **at == start || open > 0;
        open += balance(text);
        is_inside
    });
    let inside: Vec<(u32, &str)> = inside.map(|(at, text)| (*at, text.as_str())).collect();
    let names_it = |text: &str, name: &str| {
        let key = format!("\"{name}\"");
        let mut parts = text.split(key.as_str()).skip(1);
        parts.any(|behind| behind.trim_start().starts_with(':'))
    };
    let mut scripts = names(chore).iter();
    let (line, name) = scripts.find_map(|name| {
        let (line, _) = inside.iter().find(|(_, text)| names_it(text, name))?;
        Some((*line, *name))
    })?;
    let text = match name {
        "test" | "start" => format!("npm {name}"),
        name => format!("npm run {name}"),
    };
    Some((line, text))
}

/// A target of a Makefile or a recipe: its line and what runs it.
fn target(chore: Chore, program: &str, lines: &Lines) -> Option<(u32, String)> {
    let is_of = |text: &str, name: &str| {
        let rest = text.strip_prefix(name).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
    };
    // `make check` runs the tests of most projects.
    let is_its = |name: &&&str| chore != Chore::Check || **name != "check";
    names(chore).iter().filter(is_its).find_map(|name| {
        let mut known = lines.iter();
        let (at, _) = known.find(|(_, text)| is_of(text, name))?;
        Some((*at, format!("{program} {name}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(files: &[(&str, &str)]) -> Evidence {
        let mut evidence = Evidence::default();
        for (path, text) in files {
            let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
            evidence.files.insert((*path).to_owned(), lines);
        }
        evidence
    }

    #[test]
    fn commands_that_files_name_come_before_those_that_are_usual() {
        let package = "{\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"tap\"\n  },\n  \"start\": 1\n}\n";
        let make = "CHECK := x\ncheck: all\n\t./t\n\nbuild:=no\nall:\n";
        for (chore, files, want) in [
            (
                Chore::Test,
                &[("package.json", package), ("Cargo.toml", "")][..],
                &[("cargo test", None), ("npm test", Some(4))][..],
            ),
            (
                Chore::Build,
                &[("package.json", package)],
                &[("npm run build", Some(3))],
            ),
            (Chore::Run, &[("package.json", package)], &[]),
            (
                Chore::Build,
                &[(
                    "package.json",
                    "{\n  \"scripts\": { \"lint\": \"x\" },\n  \"build\": {\n    \"build\": 1\n  }\n}\n",
                )],
                &[],
            ),
            (
                Chore::Check,
                &[(
                    "package.json",
                    "{\n  \"scripts\": { \"lint\": \"x\" },\n  \"build\": {}\n}\n",
                )],
                &[("npm run lint", Some(2))],
            ),
            (
                Chore::Run,
                &[("package.json", package), ("Cargo.toml", "")],
                &[("cargo run", None)],
            ),
            (
                Chore::Test,
                &[("Makefile", make)],
                &[("make check", Some(2))],
            ),
            (
                Chore::Build,
                &[("Makefile", make)],
                &[("make all", Some(6))],
            ),
            (
                Chore::Test,
                &[("Makefile", make), ("package.json", package)],
                &[("npm test", Some(4)), ("make check", Some(2))],
            ),
            (
                Chore::Test,
                &[("tox.ini", ""), ("setup.py", "")],
                &[("tox", None)],
            ),
            (Chore::Test, &[("src/Cargo.toml", "")], &[]),
            (Chore::Test, &[], &[]),
        ] {
            let found = of(chore, &evidence(files));
            let found: Vec<(&str, Option<u32>)> = found
                .iter()
                .map(|one| (one.text.as_str(), one.line))
                .collect();
            assert_eq!(found, want, "{chore:?} {files:?}");
        }
        assert_eq!(
            naming(&["Cargo.toml", "Makefile", "package.json"]),
            ["Makefile", "package.json"]
        );
    }
}
