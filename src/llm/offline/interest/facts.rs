//! Questions for what every project says of itself: its version, its license, who is behind it, what it
//! depends on, how large it is and in which languages. Pure.

use super::{super::lexicon::holds, has_phrase, is_whole};

/// What is asked of the project as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Fact {
    Version,
    License,
    People,
    Dependencies,
    /// The versions that it needs of a language, or of whichever it is written in.
    Needs(Option<Tongue>),
    /// The parts of it that are built by default.
    Features,
    Size,
}

/// A language whose version manifests ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tongue {
    Rust,
    Python,
    Node,
    Go,
    Java,
    Ruby,
    Elixir,
}

impl Tongue {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Rust, "rust rustc cargo msrv"),
        (Self::Python, "python"),
        (Self::Node, "node nodejs js npm"),
        (Self::Go, "go golang"),
        (Self::Java, "java jdk jvm"),
        (Self::Ruby, "ruby"),
        (Self::Elixir, "elixir"),
    ];

    /// The one whose version these words ask for: "which Python version", "version of Go".
    fn asked(said: &str) -> Option<Self> {
        let words: Vec<&str> = said.split_whitespace().collect();
        let of = |word: &str| {
            let mut all = Self::ALL.iter();
            all.find(|(_, names)| holds(names, word)).map(|(of, _)| *of)
        };
        let beside = words.windows(2).find_map(|two| match *two {
            [name, version] if holds(VERSIONS, version) => of(name),
            _ => None,
        });
        let behind = words.windows(3).find_map(|three| match *three {
            [version, "of" | "von" | "de", name] if holds(VERSIONS, version) => of(name),
            // "Node.js version" are three words.
            ["node", "js", version] if holds(VERSIONS, version) => Some(Self::Node),
            _ => None,
        });
        beside.or(behind).or_else(|| {
            let mut words = words.iter();
            words.any(|word| *word == "msrv").then_some(Self::Rust)
        })
    }
}

impl Fact {
    /// By the words of a question, in small letters with one blank around each.
    pub(super) fn asked(said: &str) -> Option<Self> {
        let first = said.split_whitespace().next().unwrap_or_default();
        if let Some(tongue) = Tongue::asked(said) {
            let needs = Self::Needs(Some(tongue));
            let has = |list: &str| said.split_whitespace().any(|word| holds(list, word));
            let is_asked = (holds(WHICH, first) || has(NEEDED)) && !has(OTHERWISE);
            return Some(needs).filter(|needs| is_asked && needs.is_asked_by(first, said));
        }
        let mut facts = ASKED.iter();
        let is_alone = |word: &str| word == said.trim();
        facts
            .find(|(fact, phrases)| {
                has_phrase(said, phrases) || fact.alone().iter().any(|word| is_alone(word))
            })
            .map(|(fact, _)| *fact)
            .filter(|fact| fact.is_asked_by(first, said))
    }

    /// Whether a question that begins so asks what a project states, and not how code goes about it.
    fn is_asked_by(self, first: &str, said: &str) -> bool {
        let has = |list: &str| said.split_whitespace().any(|word| holds(list, word));
        let is_explained = holds(EXPLAINED, first);
        match self {
            Self::Size => true,
            Self::License => {
                let is_stated = !is_explained || has("licensed licenced lizenziert");
                is_stated && !has(IN_CODE)
            }
            Self::Version | Self::People | Self::Dependencies | Self::Needs(_) | Self::Features => {
                !is_explained && !holds(PLACED, first)
            }
        }
    }

    /// Words that ask for it by themselves.
    const fn alone(self) -> &'static [&'static str] {
        match self {
            Self::Version => &["version"],
            Self::License => &["license", "licence", "lizenz"],
            Self::People => &["authors", "author", "maintainers", "maintainer"],
            Self::Dependencies => &["dependencies", "abhängigkeiten"],
            Self::Needs(_) | Self::Features => &[],
            Self::Size => &["size", "languages"],
        }
    }

    /// In words for people.
    pub(in super::super) const fn named(self) -> &'static str {
        match self {
            Self::Version => "the version of the project",
            Self::License => "the license of the project",
            Self::People => "who is behind the project",
            Self::Dependencies => "what the project depends on",
            Self::Needs(_) => "which version of its language the project needs",
            Self::Features => "which features the project has by default",
            Self::Size => "how large the project is",
        }
    }
}

/// Whether the word only says which fact is asked for, or that it is one of the project.
pub(in super::super) fn is_of_fact(word: &str) -> bool {
    holds(SAID, word) || is_whole(word)
}

const ASKED: &[(Fact, &str)] = &[
    (
        Fact::Version,
        "what version is | which version is this | which version is it | what version of | which version of | what version are | \
         which version are | version do i | version do we | what version do | what is the version | what s the version | whats the version | \
         what is the current version | what s the current version | current version | latest version | version number | project version | \
         version are we | version am i | version is this | version is it | welche version | aktuelle version | quelle version | version \
         actuelle | qué versión | versión actual",
    ),
    (
        Fact::License,
        "what license | which license | what licence | which licence | what is the license | what is the licence | what s the license | \
         what s the licence | where is the license | where is the licence | show the license | show the licence | licensed | licenced | its \
         license | license of | licence of | license does | licence does | project license | welche lizenz | lizenz hat | unter welcher \
         lizenz | wo ist die lizenz | was ist die lizenz | lizenziert | quelle licence | quelle est la licence | où est la licence | qué licencia | \
         cuál es la licencia | dónde está la licencia",
    ),
    (
        Fact::People,
        "who maintains | who is the maintainer | who are the maintainers | who s the maintainer | the maintainers | who is \
         the author | who are the authors | who s the author | the authors | who is behind | who s behind | who develops | who wrote this project | \
         who wrote this library | who wrote this program | who wrote this tool | who wrote this code | who wrote this repo | who wrote \
         this package | who made this | who created this project | who created this library | who owns this | \
         wer hat das geschrieben | wer hat dieses projekt | wer pflegt | wer ist der autor | wer sind die autoren | qui \
         maintient | qui est l auteur | qui sont les auteurs | quién mantiene | quién es el autor",
    ),
    (
        Fact::Dependencies,
        "the dependencies | which dependencies | what dependencies | its dependencies | list dependencies | all dependencies \
         | external dependencies | direct dependencies | runtime dependencies | project dependencies | dependencies of | dependencies does | does it \
         depend on | project depend on | this depend on | which libraries | what libraries | third party libraries | which packages does | \
         what packages does | which crates does | what crates does | welche abhängigkeiten | die abhängigkeiten | \
         abhängigkeiten hat | quelles dépendances | les dépendances | qué dependencias | las dependencias",
    ),
    (
        Fact::Needs(None),
        "language version | version of its language | minimum supported version | sprachversion",
    ),
    (
        Fact::Features,
        "default features | features are default | features are enabled by default | features are on by default | features enabled by default | cargo \
         features | feature flags does this | feature flags are there | standard features | fonctionnalités par défaut | características por \
         defecto",
    ),
    (
        Fact::Size,
        "how big is this | how big is the project | how big is the repo | how big is the repository | how big is the codebase | how large is \
         this | how large is the project | how large is the repo | how large is the repository | how large is the codebase | how many files \
         are there | how many files does this | how many files does the project | how many files has this | how many files are in | how many \
         source files | how many lines are there | how many lines does this | how many lines of code | how many lines are in | lines of code | \
         loc | what languages is this | which languages is this | what language is this | which language is this | what languages are used | \
         which languages are used | what languages does this | which languages does this | programming language | programming languages | \
         written in | wie groß ist das projekt | wie groß ist dieses | wie viele dateien gibt | wie viele dateien hat | wie viele zeilen gibt | wie \
         viele zeilen hat | in welcher sprache ist | in welchen sprachen ist | programmiersprache | programmiersprachen | combien de \
         fichiers y | combien de lignes y | en quelle langue est | en quel langage | quels langages | cuántos archivos hay | cuántas líneas hay | en qué \
         lenguaje | qué lenguajes",
    ),
];

/// What asks for a version that is needed, and what for something else of it.
const WHICH: &str = "\
    which what whats minimum minimal msrv welche welcher quelle quel qué cuál rust rustc python node go golang java ruby elixir";
const NEEDED: &str = "\
    need needs needed require requires required support supported supports minimum msrv braucht benötigt nötig requiert nécessaire \
    necesita requiere";
const OTHERWISE: &str = "mean means meaning there called differ difference";
/// What a version of a language is asked for as.
const VERSIONS: &str = "version versions versión versiones";
/// What asks how something works, and not what a project states.
const EXPLAINED: &str = "how why wie warum wieso comment pourquoi cómo";
const PLACED: &str = "where wo où dónde";
/// What is done with a license in code.
const IN_CODE: &str = "check checks checked require required header headers key server used uses come comes verwendet geprüft sert sirve";

const SAID: &str = "\
    version versions current latest newest number license licence licensed licenced licenses licences author authors \
    maintainer maintainers maintains maintain maintained behind wrote written made created creates develops developed \
    develop owns owner dependencies dependency depends depend libraries packages crates crate third party external direct runtime dev \
    language languages programming programmed files file lines line loc big large size many much on use uses used using \
    have does need needs require requires required software app application \
    rust rustc cargo msrv python node nodejs js npm go golang java jdk jvm ruby elixir minimum minimal minimale minimal lowest oldest \
    supported feature features flags default enabled \
    aktuelle lizenz lizenziert autor autoren pflegt geschrieben abhängigkeiten groß viele dateien zeilen sprache sprachen \
    programmiersprache programmiersprachen hat dieses diesem das actuelle licence auteur auteurs maintient dépendances fichiers lignes langue \
    langage langages écrit versión actual licencia mantiene dependencias archivos líneas lenguaje lenguajes escrito";

#[cfg(test)]
mod tests {
    use super::super::Interest;
    use super::*;

    #[test]
    fn what_every_project_says_of_itself_is_asked_in_many_ways() {
        for (question, fact) in [
            ("What version is this?", Fact::Version),
            ("which version of tokio is this?", Fact::Version),
            ("what's the current version", Fact::Version),
            ("Welche Version ist das?", Fact::Version),
            ("what license is this under?", Fact::License),
            ("licence?", Fact::License),
            ("How is this project licensed?", Fact::License),
            ("where is the license?", Fact::License),
            ("Quelle est la licence ?", Fact::License),
            ("who maintains this project?", Fact::People),
            ("Who are the authors?", Fact::People),
            ("who wrote this library?", Fact::People),
            ("what are the dependencies?", Fact::Dependencies),
            ("What does this project depend on?", Fact::Dependencies),
            ("¿Cuáles son las dependencias?", Fact::Dependencies),
            ("how many files are there?", Fact::Size),
            ("In welcher Sprache ist das geschrieben?", Fact::Size),
            ("What is this written in?", Fact::Size),
            (
                "which Rust version does this need?",
                Fact::Needs(Some(Tongue::Rust)),
            ),
            ("which language version does it need?", Fact::Needs(None)),
            ("what is the MSRV?", Fact::Needs(Some(Tongue::Rust))),
            (
                "what version of Python does it require?",
                Fact::Needs(Some(Tongue::Python)),
            ),
            ("minimum Node.js version?", Fact::Needs(Some(Tongue::Node))),
            (
                "Welche Go-Version braucht das Projekt?",
                Fact::Needs(Some(Tongue::Go)),
            ),
            ("what are the default features?", Fact::Features),
            ("which features are enabled by default?", Fact::Features),
        ] {
            assert_eq!(Interest::of(question), Interest::Facts(fact), "{question}");
        }
        for question in [
            "who wrote src/lib.rs?",
            "what depends on the journal?",
            "where is the protocol of the session?",
            "since which version is there a cache?",
            "in which version was the cache added?",
            "how does the license check work?",
            "what does the license check do?",
            "where is the license used?",
            "¿cómo funciona la licencia?",
            "how is the version number checked?",
            "where are the dependencies created?",
            "how are the authors created?",
            "how many files are open?",
            "how many files does it open?",
            "how big is the file?",
            "which languages are supported?",
            "where is the python version checked?",
            "what does node version mean?",
            "is there a rust version of this?",
            "how does it find the version of node?",
        ] {
            let is_fact = matches!(Interest::of(question), Interest::Facts(_));
            assert!(!is_fact, "{question}");
        }
    }
}
