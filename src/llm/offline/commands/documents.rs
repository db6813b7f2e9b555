//! Commands that documents show as they are to be typed. Pure.

use super::{
    super::{lexicon::holds, source::Lines},
    Chore, Command,
};
use crate::words::is_prose;

/// How what is typed begins, for each chore.
const TYPED: &[(Chore, &[&str])] = &[
    (
        Chore::Test,
        &[
            "cargo test",
            "cargo nextest",
            "npm test",
            "npm run test",
            "yarn test",
            "pnpm test",
            "bun test",
            "deno test",
            "pytest",
            "py.test",
            "python -m pytest",
            "python3 -m pytest",
            "python manage.py test",
            "tox",
            "nox",
            "make test",
            "make check",
            "just test",
            "go test",
            "ctest",
            "bazel test",
            "mvn test",
            "mvn verify",
            "./gradlew test",
            "gradle test",
            "mix test",
            "rake test",
            "bundle exec rake",
            "bundle exec rspec",
            "rspec",
            "dotnet test",
            "swift test",
            "zig build test",
            "meson test",
            "ninja test",
            "sbt test",
            "stack test",
            "cabal test",
            "dart test",
            "flutter test",
            "composer test",
            "vendor/bin/phpunit",
            "./runtests.py",
            "python runtests.py",
        ],
    ),
    (
        Chore::Build,
        &[
            "cargo build",
            "npm run build",
            "yarn build",
            "pnpm build",
            "make",
            "just build",
            "cmake",
            "./configure",
            "ninja",
            "meson",
            "go build",
            "bazel build",
            "mvn package",
            "mvn install",
            "mvn compile",
            "./gradlew build",
            "gradle build",
            "dotnet build",
            "swift build",
            "zig build",
            "docker build",
            "python -m build",
            "python setup.py build",
            "mix compile",
            "sbt compile",
            "stack build",
            "cabal build",
            "tsc",
        ],
    ),
    (
        Chore::Run,
        &[
            "cargo run",
            "npm start",
            "npm run dev",
            "npm run start",
            "yarn dev",
            "yarn start",
            "pnpm dev",
            "pnpm start",
            "go run",
            "python manage.py runserver",
            "flask run",
            "docker run",
            "docker compose up",
            "docker-compose up",
            "./gradlew run",
            "rails server",
            "bin/rails server",
            "mix phx.server",
            "make run",
            "just run",
            "swift run",
        ],
    ),
    (
        Chore::Install,
        &[
            "cargo install",
            "cargo add",
            "npm i",
            "npm install",
            "yarn add",
            "pnpm add",
            "bun add",
            "deno add",
            "pip install",
            "pip3 install",
            "python -m pip install",
            "pipx install",
            "uv add",
            "uv pip install",
            "poetry add",
            "conda install",
            "go get",
            "go install",
            "brew install",
            "apt install",
            "apt-get install",
            "sudo apt install",
            "sudo apt-get install",
            "gem install",
            "bundle add",
            "composer require",
            "make install",
            "sudo make install",
            "docker pull",
            "dotnet add",
        ],
    ),
    (
        Chore::Check,
        &[
            "cargo clippy",
            "npm run lint",
            "yarn lint",
            "pnpm lint",
            "eslint",
            "ruff",
            "flake8",
            "mypy",
            "pre-commit",
            "make lint",
            "just lint",
            "go vet",
            "golangci-lint",
            "tox -e lint",
        ],
    ),
    (
        Chore::Format,
        &[
            "cargo fmt",
            "npm run format",
            "yarn format",
            "make fmt",
            "just fmt",
            "black",
            "ruff format",
            "gofmt",
            "prettier",
        ],
    ),
];

/// The documents that say it to those who begin, in the order in which they are asked.
const DOCUMENTS: &[&str] = &[
    "contributing",
    "develop",
    "hacking",
    "building",
    "testing",
    "install",
    "readme",
];

/// So many words and nothing else are a sentence.
const SENTENCE: usize = 4;

/// Which of some files at the top are such documents: for who takes part first, or for who uses it.
pub(in super::super) fn documents<'a>(chore: Chore, files: &[&'a str]) -> Vec<&'a str> {
    let rank = |file: &str| {
        let lower = file.to_lowercase();
        // A script is none.
        if lower.contains('.') && !is_prose(&lower) {
            return None;
        }
        DOCUMENTS.iter().position(|name| lower.starts_with(name))
    };
    let mut ranked: Vec<(usize, &str)> = files
        .iter()
        .filter_map(|file| Some((rank(file)?, *file)))
        .collect();
    ranked.sort_unstable();
    if matches!(chore, Chore::Install | Chore::Run) {
        ranked.reverse();
    }
    ranked.into_iter().map(|(_, file)| file).collect()
}

/// The first command of a document that does it.
pub(super) fn typed(chore: Chore, path: &str, lines: &Lines) -> Option<Command> {
    let (_, known) = TYPED.iter().find(|(of, _)| *of == chore)?;
    let mut is_fenced = false;
    lines.iter().find_map(|(line, text)| {
        let said = text.trim();
        if said.starts_with("```") || said.starts_with("~~~") {
            is_fenced = !is_fenced;
            return None;
        }
        let is_prompted = said.starts_with("$ ");
        if !is_fenced && !is_prompted && !text.starts_with(['\t', ' ']) {
            return None;
        }
        let command = without_prompt(said);
        let is_known = known.iter().any(|begins| {
            let rest = command.strip_prefix(begins);
            rest.is_some_and(|rest| {
                (rest.is_empty() || rest.starts_with([' ', '\t'])) && !does_else(chore, rest)
            })
        });
        // Outside of a fence, a line that is set in may be a sentence: "make sure that it works".
        let is_sentence = !is_fenced && !is_prompted && reads_as_sentence(command);
        (is_known && !is_sentence).then(|| Command {
            text: command
                .split("  #")
                .next()
                .unwrap_or(command)
                .trim()
                .to_owned(),
            path: path.to_owned(),
            line: Some(*line),
        })
    })
}

/// Whether what stands behind a command makes it one for something else: `make test` builds nothing.
fn does_else(chore: Chore, rest: &str) -> bool {
    let others = match chore {
        Chore::Build => "test tests check clean install --install lint fmt format run docs bench",
        Chore::Test => "lint docs format fmt clean",
        Chore::Check => "format fmt",
        Chore::Run | Chore::Install | Chore::Format | Chore::Contribute => "",
    };
    rest.split_whitespace().any(|word| holds(others, word))
}

/// Whether it is made of nothing but words, and several, or ends as sentences do.
fn reads_as_sentence(text: &str) -> bool {
    let is_word = |word: &str| word.chars().all(char::is_alphabetic);
    let mut words = text.split_whitespace();
    let are_many = words.clone().count() >= SENTENCE && words.all(is_word);
    are_many || text.ends_with(['.', ':', ','])
}

fn without_prompt(text: &str) -> &str {
    let text = text.trim_start_matches('`');
    text.strip_prefix("$ ")
        .or_else(|| text.strip_prefix("> "))
        .unwrap_or(text)
        .trim_end_matches('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_typed_is_told_from_what_is_said() {
        for (chore, text, want) in [
            (
                Chore::Test,
                "Run:\n```sh\ncargo run -- x\ncargo test --all\n```\n",
                Some((4, "cargo test --all")),
            ),
            (
                Chore::Run,
                "```sh\ncargo run -- x\ncargo test\n```\n",
                Some((2, "cargo run -- x")),
            ),
            (
                Chore::Build,
                "Then\n\n    $ make -j4\n",
                Some((3, "make -j4")),
            ),
            (
                Chore::Build,
                "make is needed\n\n  make sure that it works well\n",
                None,
            ),
            (
                Chore::Test,
                "::\n\n    tox  # all of them\n",
                Some((3, "tox")),
            ),
            (Chore::Test, "cargo test is what you type\n", None),
            (
                Chore::Build,
                "```\nmake test\nmake -j4 all\n```\n",
                Some((3, "make -j4 all")),
            ),
            (Chore::Build, "  make a pull request and wait\n", None),
            (
                Chore::Check,
                "```\nruff format\nruff check\n```\n",
                Some((3, "ruff check")),
            ),
            (Chore::Contribute, "```\ncargo test\n```\n", None),
        ] {
            let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
            let found = typed(chore, "README.md", &lines);
            let found = found.map(|one| (one.line.unwrap_or_default(), one.text));
            assert_eq!(
                found,
                want.map(|(at, text)| (at, text.to_owned())),
                "{chore:?} {text}"
            );
        }
    }

    #[test]
    fn who_takes_part_reads_another_document_first_than_who_uses_it() {
        let files = ["README.md", "install.sh", "src.md", "CONTRIBUTING.rst"];
        assert_eq!(
            documents(Chore::Test, &files),
            ["CONTRIBUTING.rst", "README.md"]
        );
        assert_eq!(
            documents(Chore::Install, &files),
            ["README.md", "CONTRIBUTING.rst"]
        );
    }
}
