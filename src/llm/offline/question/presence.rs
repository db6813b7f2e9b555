//! Questions whether a file is there, by its own name or by what such files are called: "is there a Dockerfile?",
//! "gibt es eine CI-Konfiguration?". Only if nothing else is said. Pure.

use super::{super::lexicon::holds, files};

/// A file that may be there, or one of several that serve the same end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Presence {
    /// In words for people.
    pub(in super::super) named: String,
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
        let begun = opening(&lower)?;
        let is_wanted = |at: &usize| !holds(BESIDE, &lower[*at]);
        let said: Vec<usize> = (begun..tokens.len()).filter(is_wanted).collect();
        let is_file = |at: usize| is_file(tokens[at]);
        match *said.as_slice() {
            [at] if is_file(at) => Some(Self::of_file(tokens[at])),
            _ => {
                let said: Vec<&str> = said.iter().map(|at| lower[*at].as_str()).collect();
                Self::called(&said.join(" "))
            }
        }
    }

    fn of_file(path: &str) -> Self {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        // What is hidden or ignored is shown by its whole path alone.
        let glob = match path.contains('/') {
            true => format!("{{**/{path}}}"),
            false => format!("{{{path}}}"),
        };
        let globs = (!is_hidden).then_some(glob);
        Self {
            named: format!("`{path}`"),
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
            places: places.map(str::to_owned).collect(),
        })
    }
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
    token.chars().all(is_part) && !token.contains("..") && (is_hidden() || is_named())
}

/// How many words of a question only ask whether something is there.
fn opening(lower: &[String]) -> Option<usize> {
    let word = |at: usize| lower.get(at).map_or("", |word| word.as_str());
    let begins = |phrase: &&&str| {
        let mut words = phrase.split(' ').enumerate();
        words.all(|(at, wanted)| word(at) == wanted)
    };
    if let Some(phrase) = OPENINGS.iter().find(begins) {
        return Some(phrase.split(' ').count());
    }
    // "Does this project have", "hat das Projekt", "le projet a-t-il", "tiene el proyecto".
    let (_, ends) = ASKING.iter().find(|(asks, _)| *asks == word(0))?;
    let project = (1..4).find(|at| !holds(BEFORE_PROJECT, word(*at)))?;
    match ends.is_empty() {
        true => holds(PROJECT, word(project)).then_some(project + 1),
        false => holds(ends, word(project + 1)).then_some(project + 2),
    }
}

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

/// Files that most projects have, as people call them.
struct Known {
    /// In small letters, without hyphens.
    called: &'static str,
    named: &'static str,
    /// None if it is always hidden.
    glob: &'static str,
    hidden: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known {
        called: "dockerfile | dockerfiles | docker image | containerfile",
        named: "Dockerfile",
        glob: "{Dockerfile,Dockerfile.*,dockerfile,*.Dockerfile,*.dockerfile,Containerfile}",
        hidden: &[],
    },
    Known {
        called: "docker compose | docker compose configuration | docker compose config | compose | docker compose setup",
        named: "Compose file",
        glob: "{docker-compose*.yml,docker-compose*.yaml,compose.yml,compose.yaml}",
        hidden: &[],
    },
    Known {
        called: "makefile | makefiles",
        named: "Makefile",
        glob: "{Makefile,makefile,GNUmakefile}",
        hidden: &[],
    },
    Known {
        called: "justfile | just",
        named: "justfile",
        glob: "{justfile,Justfile}",
        hidden: &[".justfile"],
    },
    Known {
        called: "readme | read me | liesmich | léeme | lisez moi",
        named: "README",
        glob: "{README,README.*,Readme.*,readme.*}",
        hidden: &[".github/README.md"],
    },
    Known {
        called: "contributing | contributing guide | contribution guide | contributing guidelines | contribution guidelines | \
                 contributor guide | contributors guide | beitragsleitfaden | anleitung zum mitmachen | guide contribution | guía \
                 contribución | guía contribuir | guide contributeurs",
        named: "CONTRIBUTING guide",
        glob: "{CONTRIBUTING,CONTRIBUTING.*,Contributing.*,contributing.*}",
        hidden: &[".github/CONTRIBUTING.md"],
    },
    Known {
        called: "license | licence | lizenz | lizenzdatei | licencia | license text | licence text",
        named: "license",
        glob: "{LICENSE,LICENSE[.-]*,LICENCE,LICENCE[.-]*,License,License.*,license,license.txt,license.md,COPYING,COPYING.*,UNLICENSE}",
        hidden: &[],
    },
    Known {
        called: "changelog | change log | changelogs | release notes | änderungsprotokoll | journal modifications | registro cambios",
        named: "change log",
        glob: "{CHANGELOG,CHANGELOG.*,Changelog,Changelog.*,changelog.*,ChangeLog,CHANGES,CHANGES.*,HISTORY,HISTORY.*,NEWS,NEWS.*,RELEASES.md}",
        hidden: &[],
    },
    Known {
        called: "code conduct | conduct | verhaltenskodex | code conduite | código conducta",
        named: "code of conduct",
        glob: "{CODE_OF_CONDUCT,CODE_OF_CONDUCT.*,code_of_conduct.*,code-of-conduct.*,CODE-OF-CONDUCT.*}",
        hidden: &[".github/CODE_OF_CONDUCT.md"],
    },
    Known {
        called: "security policy | security.md | sicherheitsrichtlinie | politique sécurité | política seguridad",
        named: "security policy",
        glob: "{SECURITY,SECURITY.*,security.md}",
        hidden: &[".github/SECURITY.md"],
    },
    Known {
        called: "codeowners | code owners",
        named: "CODEOWNERS",
        glob: "{CODEOWNERS}",
        hidden: &[".github/CODEOWNERS"],
    },
    Known {
        called: "gitignore",
        named: "`.gitignore`",
        glob: "",
        hidden: &[".gitignore"],
    },
    Known {
        called: "editorconfig | editor config",
        named: "`.editorconfig`",
        glob: "",
        hidden: &[".editorconfig"],
    },
    Known {
        called: "ci | ci configuration | ci config | ci pipeline | ci pipelines | ci setup | ci workflow | ci workflows | continuous \
                 integration | ci konfiguration | configuration ci | configuration intégration continue | intégration continue | \
                 configuración ci | integración continua | configuración integración continua",
        named: "CI configuration",
        glob: "{Jenkinsfile,azure-pipelines.yml,azure-pipelines.yaml,appveyor.yml,bitbucket-pipelines.yml,cloudbuild.yaml}",
        hidden: &[
            ".github/workflows",
            ".gitlab-ci.yml",
            ".circleci",
            ".travis.yml",
            ".cirrus.yml",
        ],
    },
    Known {
        called: "github actions | github workflow | github workflows | github action",
        named: "GitHub workflow",
        glob: "",
        hidden: &[".github/workflows"],
    },
];

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
    fn a_file_is_looked_for_in_all_folders_and_a_hidden_one_by_its_path() {
        for (text, places) in [
            (
                "is there a tsconfig.json?",
                &["{tsconfig.json}", "tsconfig.json"][..],
            ),
            ("is there a src/a.rs?", &["{**/src/a.rs}", "src/a.rs"]),
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
