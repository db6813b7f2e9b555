//! Questions whether a file is there, by its own name or by what such files are called: "is there a Dockerfile?",
//! "gibt es eine CI-Konfiguration?". Only if nothing else is said. Pure.

use super::{super::lexicon::holds, files};

mod known;

use known::{KNOWN, Known};

/// A file that may be there, or one of several that serve the same end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Presence {
    /// In words for people.
    pub(in super::super) named: String,
    /// What it is asked of, if that is not said to be the project: "does axum have a README?".
    pub(in super::super) of: Option<String>,
    /// Places in which it may lie: globs for all folders, and hidden ones, which are only shown by their names.
    pub(in super::super) places: Vec<String>,
}

impl Presence {
    /// If that is all that is asked for.
    pub(super) fn asked(plain: &str) -> Option<Self> {
        let tokens: Vec<&str> = plain.split_whitespace().map(bare).collect();
        let tokens = tokens.into_iter().filter(|token| !token.is_empty());
        let tokens: Vec<&str> = tokens.collect();
        let lower: Vec<String> = tokens
            .iter()
            .map(|token| token.to_lowercase().replace('’', "'"))
            .collect();
        let (begun, subject) = opening(&lower)?;
        let of = subject.map(|at| tokens[at].to_owned());
        let presence = Self::named(&tokens[begun..], &lower[begun..])?;
        Some(Self { of, ..presence })
    }

    /// Of another one, if nothing else is said: "and a Jenkinsfile?".
    pub(super) fn asked_too(plain: &str) -> Option<Self> {
        let behind = super::also(plain)?;
        Self::asked(&format!("is there {behind}"))
    }

    /// By the words that name it.
    fn named(tokens: &[&str], lower: &[String]) -> Option<Self> {
        let is_wanted = |at: &usize| !holds(BESIDE, &lower[*at]);
        let said: Vec<usize> = (0..tokens.len()).filter(is_wanted).collect();
        let said_lower: Vec<&str> = said.iter().map(|at| lower[*at].as_str()).collect();
        let of_file = || match *said.as_slice() {
            [at] if is_file(tokens[at]) => Some(Self::of_file(tokens[at])),
            _ => None,
        };
        Self::called(&said_lower.join(" ")).or_else(of_file)
    }

    fn of_file(path: &str) -> Self {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        // What is hidden or ignored is shown by its whole path alone.
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (format!("**/{folder}/"), name),
            None => (String::new(), path),
        };
        let names = spellings(name).into_iter();
        let names: Vec<String> = names.map(|name| format!("{folder}{name}")).collect();
        let globs = (!is_hidden).then(|| format!("{{{}}}", names.join(",")));
        Self {
            named: format!("`{path}`"),
            of: None,
            places: globs.into_iter().chain([path.to_owned()]).collect(),
        }
    }

    fn called(said: &str) -> Option<Self> {
        let said = said
            .replace(['-', '_'], " ")
            .replace("d'", "")
            .replace("l'", "");
        let is_called = |known: &&Known| known.called.split(" | ").any(|one| one == said);
        let known = KNOWN.iter().find(is_called)?;
        let globs = (!known.glob.is_empty()).then_some(known.glob);
        let places = globs.into_iter().chain(known.hidden.iter().copied());
        Some(Self {
            named: known.named.to_owned(),
            of: None,
            places: places.map(str::to_owned).collect(),
        })
    }
}

/// A name as it may be spelt in a file system that tells small letters from capitals, as people do not: `readme.md` is
/// `README.md`, `cargo.toml` is `Cargo.toml`.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    if !name.contains(char::is_uppercase) {
        let (stem, ending) = match name.find('.') {
            Some(dot) => name.split_at(dot),
            None => (name, ""),
        };
        let mut letters = stem.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let capitalised: String = first.chain(letters).collect();
        all.push(format!("{}{ending}", stem.to_uppercase()));
        all.push(format!("{capitalised}{ending}"));
        all.dedup();
    }
    all
}

/// Without what stands around a word, but with the dot that hides a file.
fn bare(token: &str) -> &str {
    let token = token.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
    token.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_')
}

fn is_file(token: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_hidden = || {
        let name = token.trim_start_matches("./").split('/');
        let mut hidden = name.filter(|part| part.len() > 2 && part.starts_with('.'));
        hidden.any(|part| part[1..].starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let is_named = || files::in_word(token).is_some_and(|file| file.lines().is_none());
    let is_known = || holds(WITHOUT_ENDING, token);
    token.chars().all(is_part) && !token.contains("..") && (is_hidden() || is_named() || is_known())
}

/// How many words of a question only ask whether something is there, and which of them names whose it is, if that is
/// not the project.
fn opening(lower: &[String]) -> Option<(usize, Option<usize>)> {
    let word = |at: usize| lower.get(at).map_or("", |word| word.as_str());
    let begins = |phrase: &&&str| {
        let mut words = phrase.split(' ').enumerate();
        words.all(|(at, wanted)| word(at) == wanted)
    };
    if let Some(phrase) = OPENINGS.iter().find(begins) {
        return Some((phrase.split(' ').count(), None));
    }
    // "Does this project have", "hat das Projekt", "le projet a-t-il", "tiene el proyecto".
    let (_, ends) = ASKING.iter().find(|(asks, _)| *asks == word(0))?;
    let project = (1..4).find(|at| !holds(BEFORE_PROJECT, word(*at)))?;
    let is_project = holds(PROJECT, word(project));
    match ends.is_empty() {
        true => is_project.then_some((project + 1, None)),
        false => {
            let subject = (!is_project).then_some(project);
            holds(ends, word(project + 1)).then_some((project + 2, subject))
        }
    }
}

/// Files without an ending, by their very names.
const WITHOUT_ENDING: &str = "\
    Berksfile Brewfile Caddyfile Capfile Cartfile Earthfile Fastfile Gemfile Guardfile Jenkinsfile Pipfile Podfile Procfile \
    Puppetfile Rakefile Snakefile Thorfile Tiltfile Vagrantfile";

const OPENINGS: &[&str] = &[
    "is there",
    "are there",
    "do we have",
    "do you have",
    "does it have",
    "does this have",
    "does it contain",
    "gibt es",
    "gibt's",
    "haben wir",
    "hat es",
    "existiert",
    "y a-t-il",
    "y a t-il",
    "y a t il",
    "est-ce qu'il y a",
    "il y a",
    "existe-t-il",
    "a-t-on",
    "hay",
    "existe",
    "tiene un",
    "tiene una",
    "tenemos",
];

/// What begins a question for something that the project has, and what stands behind the project then.
const ASKING: &[(&str, &str)] = &[
    ("does", "have contain include ship provide"),
    ("hat", ""),
    ("enthält", ""),
    ("le", "a-t-il contient-il"),
    ("ce", "a-t-il contient-il"),
    ("tiene", ""),
];
const BEFORE_PROJECT: &str = "the this our a das dieses dies unser le ce el este nuestro";
const PROJECT: &str = "\
    project repo repository codebase projekt repository projet dépôt proyecto repositorio";

/// What says no more than that a file is meant, or where.
const BESIDE: &str = "\
    a an any the some file files here in this project repo repository codebase root top folder at of already yet called named \
    its own for it \
    ein eine einen der die das datei hier im diesem projekt namens \
    un une le la les des fichier ici dans ce projet dépôt appelé nommé de du pour \
    una el archivo fichero aquí este proyecto repositorio llamado en para";

#[cfg(test)]
mod tests {
    use super::super::Question;

    #[test]
    fn whether_a_file_is_there_is_asked_in_four_languages() {
        for (text, named) in [
            ("is there a Dockerfile?", Some("Dockerfile")),
            ("Is there a docker-compose file here?", Some("Compose file")),
            (
                "is there a docker-compose.yml?",
                Some("`docker-compose.yml`"),
            ),
            ("does this project have a Makefile?", Some("Makefile")),
            ("does it have a CI configuration", Some("CI configuration")),
            (
                "does axum have a CONTRIBUTING guide?",
                Some("CONTRIBUTING guide"),
            ),
            (
                "hi, do we have a code of conduct in this repo?",
                Some("code of conduct"),
            ),
            ("is there a security policy?", Some("security policy")),
            ("is there a `.gitignore`?", Some("`.gitignore`")),
            (
                "is there a file called tsconfig.json",
                Some("`tsconfig.json`"),
            ),
            ("is there a src/main.rs?", Some("`src/main.rs`")),
            ("gibt es ein Dockerfile?", Some("Dockerfile")),
            (
                "Gibt es hier eine CI-Konfiguration?",
                Some("CI configuration"),
            ),
            ("hat dieses Projekt eine Lizenz?", Some("license")),
            ("y a-t-il un Dockerfile ?", Some("Dockerfile")),
            (
                "est-ce qu’il y a un fichier .editorconfig ?",
                Some("`.editorconfig`"),
            ),
            (
                "ce projet a-t-il un guide de contribution ?",
                Some("CONTRIBUTING guide"),
            ),
            (
                "y a-t-il une configuration d'intégration continue ?",
                Some("CI configuration"),
            ),
            ("¿hay un Makefile?", Some("Makefile")),
            ("¿tiene este proyecto un archivo README?", Some("README")),
            ("is there a Jenkinsfile?", Some("`Jenkinsfile`")),
            ("is there a compose?", None),
            ("is there a profile?", None),
            ("is there security here?", None),
            ("is there a way to read the license?", None),
            ("is there a Dockerfile parser?", None),
            ("is there a list of bulk reformatting commits?", None),
            ("does the Router have a README in the docs of tokio?", None),
            ("where is the Dockerfile?", None),
            ("is there a reply.send?", None),
            ("which license does it have?", None),
            ("is there a cache?", None),
        ] {
            let question = Question::read(text, &[], None);
            let got = question.presence.as_ref().map(|one| &*one.named);
            assert_eq!(got, named, "{text}");
        }
    }

    #[test]
    fn whose_file_is_asked_for_is_kept_unless_it_is_the_project() {
        for (text, previous, named, of) in [
            ("does the repo have a README?", None, Some("README"), None),
            (
                "does axum have a README?",
                None,
                Some("README"),
                Some("axum"),
            ),
            ("is there a README?", None, Some("README"), None),
            (
                "and a Jenkinsfile?",
                Some("is there a README?"),
                Some("`Jenkinsfile`"),
                None,
            ),
            ("and a Jenkinsfile?", Some("who calls it?"), None, None),
            (
                "show me the whole file",
                Some("is there a README?"),
                Some("README"),
                None,
            ),
            ("and a cache?", Some("is there a README?"), None, None),
        ] {
            let presence = Question::read(text, &[], previous).presence;
            let got = presence.as_ref().map(|one| &*one.named);
            assert_eq!(got, named, "{text}");
            let got = presence.as_ref().and_then(|one| one.of.as_deref());
            assert_eq!(got, of, "{text}");
        }
    }

    #[test]
    fn a_file_is_looked_for_in_all_folders_and_a_hidden_one_by_its_path() {
        for (text, places) in [
            (
                "is there a tsconfig.json?",
                &[
                    "{tsconfig.json,TSCONFIG.json,Tsconfig.json}",
                    "tsconfig.json",
                ][..],
            ),
            ("is there a Cargo.toml?", &["{Cargo.toml}", "Cargo.toml"]),
            (
                "is there a src/a.rs?",
                &["{**/src/a.rs,**/src/A.rs}", "src/a.rs"],
            ),
            ("is there a Jenkinsfile?", &["{Jenkinsfile}", "Jenkinsfile"]),
            (
                "is there a .github/dependabot.yml?",
                &[".github/dependabot.yml"],
            ),
            (
                "is there a justfile?",
                &["{justfile,Justfile}", ".justfile"],
            ),
        ] {
            let presence = Question::read(text, &[], None).presence.unwrap();
            assert_eq!(presence.places, places, "{text}");
        }
    }
}
