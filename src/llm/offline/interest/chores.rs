//! Questions for how a project is built, tested, run or installed: what is asked first of all of it. Pure.

use super::{super::lexicon::holds, has_phrase, is_whole};

/// What is to be done with the project as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Chore {
    Build,
    Test,
    Run,
    Install,
    /// To look for faults without running it.
    Check,
    /// To put its code into form.
    Format,
    /// To take part in its making.
    Contribute,
}

impl Chore {
    /// By the words of a question, in small letters with one blank around each.
    pub(super) fn asked(said: &str) -> Option<Self> {
        let asks_how = has_phrase(said, HOW);
        let is_named = has_phrase(said, NAMED);
        (asks_how || is_named)
            .then(|| Self::in_words(said))
            .flatten()
    }

    /// What these words are about, if it is one of them.
    pub(in super::super) fn in_words(said: &str) -> Option<Self> {
        let has = |list: &str| said.split_whitespace().any(|word| holds(list, word));
        let mut chores = WORDS.iter();
        chores
            .find(|(_, words)| has(words))
            .map(|(chore, _)| *chore)
    }

    /// What headings of it say, as they begin.
    pub(in super::super) const fn headings(self) -> &'static [&'static str] {
        match self {
            Self::Build => &[
                "build",
                "compil",
                "from source",
                "develop",
                "getting started",
            ],
            Self::Test => &["test"],
            Self::Run => &["run", "usage", "start", "quick", "use", "using"],
            Self::Install => &[
                "install",
                "setup",
                "set up",
                "setting up",
                "getting started",
                "quick",
            ],
            Self::Check => &["lint", "check", "style"],
            Self::Format => &["format", "style"],
            Self::Contribute => &["contribut", "develop", "hacking", "pull request"],
        }
    }

    /// In words for people, behind "how".
    pub(in super::super) const fn named(self) -> &'static str {
        match self {
            Self::Build => "it is built",
            Self::Test => "its tests are run",
            Self::Run => "it is run",
            Self::Install => "it is installed",
            Self::Check => "it is checked",
            Self::Format => "its code is formatted",
            Self::Contribute => "one contributes to it",
        }
    }
}

/// Whether the word only says what is to be done, or with what.
pub(in super::super) fn is_of_chore(word: &str) -> bool {
    holds(SAID, word) || WORDS.iter().any(|(_, words)| holds(words, word)) || is_whole(word)
}

/// Whether an order that begins so is one for a command: who adds a test, runs none.
pub(super) fn is_begun_by(word: &str) -> bool {
    holds(ORDERS, word)
}

const ORDERS: &str = "\
    run execute build compile install start launch lint format test führe starte baue bau kompiliere installiere teste lance \
    lancez exécute exécutez construis compile installe ejecuta construye compila instala";

const HOW: &str = "\
    how do i | how do we | how do you | how can i | how can we | how can you | how should i | how would i | how could i | how does one | how to | \
    how is this | how is the project | how is the code | how are the tests | how are tests | command to | commands to | steps to | way to | what do i need to | wie baue | wie kompiliere | wie teste | wie starte | wie installiere | wie kann \
    ich | wie kann man | wie führe | wie lasse | wie wird das projekt | wie wird dieses | wie werden die tests | comment | cómo";

const NAMED: &str = "\
    test command | build command | tests command | build instructions | install instructions | installation instructions | \
    setup instructions | running the tests | running tests | run the tests | run tests | run the test suite | build steps | development setup | set it up";

/// What is done, the more telling words first: who runs the tests, tests.
const WORDS: &[(Chore, &str)] = &[
    (
        Chore::Test,
        "test tests testing tested testsuite teste testen tester pruebas probar",
    ),
    (
        Chore::Install,
        "install installed installation installing setup installiere installieren installer instalar instalo",
    ),
    (
        Chore::Build,
        "build built building compile compiled compiling baue bauen gebaut kompiliere kompilieren kompiliert compiler construire compilar \
         compilo construir",
    ),
    (Chore::Check, "lint linter linting"),
    (
        Chore::Format,
        "format formatted formatting formatter formatiere",
    ),
    (
        Chore::Contribute,
        "contribute contributing mitmachen beitragen contribuer contribuir",
    ),
    (
        Chore::Run,
        "run running start launch execute starte starten ausführen ausgeführt lancer démarrer ejecutar ejecuto iniciar arrancar",
    ),
];

const SAID: &str = "\
    command commands steps step instructions need single one all unit integration local locally own source sources scratch suite software \
    app application everything machine set up with using do way best correct proper properly führe aus lasse laufen einzelnen \
    alle lokal von hand ganze ganzen das projekt diesem dieses app anwendung programm programme locale proyecto todas todos las los";

#[cfg(test)]
mod tests {
    use super::super::Interest;
    use super::*;

    #[test]
    fn what_is_done_with_a_project_is_asked_in_many_ways() {
        for (question, chore) in [
            ("how do I build it?", Chore::Build),
            ("How to build this project from source?", Chore::Build),
            ("how do I run the tests?", Chore::Test),
            ("how can I run a single test", Chore::Test),
            ("what is the test command?", Chore::Test),
            ("run the tests", Chore::Test),
            ("How do I install this?", Chore::Install),
            (
                "how do I set it up locally? installation steps",
                Chore::Install,
            ),
            ("How do I run it?", Chore::Run),
            ("how do I start the app?", Chore::Run),
            ("How do I contribute?", Chore::Contribute),
            ("how do I lint and format the code?", Chore::Check),
            ("how do I format the code?", Chore::Format),
            ("Wie baue ich das Projekt?", Chore::Build),
            ("Wie starte ich die Tests?", Chore::Test),
            ("Comment lancer les tests ?", Chore::Test),
            ("¿Cómo compilo este proyecto?", Chore::Build),
        ] {
            assert_eq!(Interest::of(question), Interest::HowTo(chore), "{question}");
        }
        for question in [
            "where are the tests of the journal?",
            "which tests cover back_off?",
            "what builds the index?",
            "how are commands run?",
            "how are all sources built?",
            "how is it compiled?",
        ] {
            assert_eq!(Interest::of(question), Interest::Places, "{question}");
        }
    }
}
