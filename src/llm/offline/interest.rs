//! Where a question is to be looked up besides the files: in the history, in notes, where a name is used, or
//! in no single place because it is about the whole.
//!
//! By the words of the question, in the four languages that searches know. What is spelt as a name is
//! one: "where is Decision defined?" is not about what was decided. Pure.

use super::lexicon::holds;

/// What a question wants to hear about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Places that say it.
    Places,
    /// Where a name is used.
    Uses,
    /// What was noted.
    Notes,
    /// What was decided or agreed.
    Settled,
    /// Who changed something, when and why.
    History(Change),
    /// What the project is and how it is laid out.
    Overview,
}

/// Which change of several answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    First,
    Latest,
}

impl Interest {
    /// Of a question as it was put, without its quotations.
    pub(super) fn of(question: &str) -> Self {
        let words: Vec<String> = question
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .enumerate()
            .map(|(at, word)| match at > 0 && is_name(word) {
                true => NAME.to_owned(),
                false => word.to_lowercase(),
            })
            .collect();
        let said = format!(" {} ", words.join(" "));
        let any = |list: &str| words.iter().any(|word| holds(list, word));
        if let Some(change) = change_in(&words, &said) {
            Self::History(change)
        } else if has_phrase(&said, OVERVIEW) {
            Self::Overview
        } else if has_phrase(&said, USERS) || (any(WHERE) && any(USED)) {
            Self::Uses
        } else if any(SETTLED) {
            Self::Settled
        } else if any(RECORDS) || (has_phrase(&said, NOTES) && !said.contains(" release notes ")) {
            Self::Notes
        } else {
            Self::Places
        }
    }
}

/// What stands for a name, which no list of words has.
const NAME: &str = "·";

/// Whether a word inside a question is spelt as names are and its English word is one of ours: nouns of
/// other languages may begin with a capital.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.any(char::is_lowercase)
        && holds(ENGLISH_NOUNS, &word.to_lowercase())
}

/// Whether the word only says where something was written down.
pub(super) fn is_noted(word: &str) -> bool {
    holds(RECORDED, word)
}

/// Whether the word only says that something was changed, so that it is in no message by itself.
pub(super) fn is_change(word: &str) -> bool {
    [BEGUN, CHANGED, TO_BEGIN, TO_CHANGE, OF_HISTORY]
        .iter()
        .any(|list| holds(list, word))
}

/// Whether the word only says that the whole is meant.
pub(super) fn is_whole(word: &str) -> bool {
    holds(WHOLE, word)
}

/// Whether the word only says that something was decided or agreed.
pub(super) fn is_settled(word: &str) -> bool {
    holds(SETTLED, word)
}

fn change_in(words: &[String], said: &str) -> Option<Change> {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    // "When is it removed?" asks how it works; "when was it?" what happened.
    let did = words.iter().any(|word| word == "did");
    let begun = any(BEGUN) || (did && any(TO_BEGIN));
    let changed = any(CHANGED) || (did && any(TO_CHANGE));
    let asks = has_phrase(said, ASKING) && (begun || changed);
    let names = has_phrase(said, NAMING);
    (asks || names).then(|| match begun && !any(LAST) {
        true => Change::First,
        false => Change::Latest,
    })
}

fn has_phrase(said: &str, phrases: &str) -> bool {
    phrases.split(" | ").any(|phrase| {
        said.match_indices(phrase)
            .any(|(at, _)| said[..at].ends_with(' ') && said[at + phrase.len()..].starts_with(' '))
    })
}

const LAST: &str = "last latest zuletzt";

const ASKING: &str = "\
    who | whose | when was | when were | when did | when has | when have | why was | why \
    were | why did | how long ago | wer | wann wurde | \
    wann wurden | wann hat | warum wurde | warum wurden | qui a | quand a | quand ont | pourquoi \
    a | quién | cuándo se | por qué se";

/// What asks for commits by itself.
const NAMING: &str = "\
    git log | git blame | git history | commit history | history of commits | commit log | last \
    commit | last commits | latest commit | latest commits | recent commit | recent commits | \
    newest commit | first commit | which commit | which commits | what commit | recent changes | \
    latest changes | last changes | changed recently | changed lately | changed last | letzter \
    commit | letzte commits | letzten commits | letzte änderungen | letzten änderungen | dernier \
    commit | derniers commits | derniers changements | último commit | últimos commits | últimos \
    cambios";

/// What begins with a change.
const BEGUN: &str = "\
    added introduced created wrote written first invented hinzugefügt \
    eingeführt geschrieben angelegt ajouté introduit écrit créé añadió agregó introdujo escribió \
    creó";

const CHANGED: &str = "\
    changed removed deleted renamed fixed broke touched modified moved reverted replaced \
    rewritten merged committed geändert entfernt gelöscht umbenannt behoben modifié supprimé renommé corrigé cambió eliminó \
    quitó renombró corrigió";

/// The same behind "did".
const TO_BEGIN: &str = "add introduce create write";
const TO_CHANGE: &str = "change remove delete rename fix modify move revert replace merge";

const OF_HISTORY: &str = "\
    commit commits git log blame history last latest recent recently lately newest changes \
    author zuletzt änderungen cambios changements";

/// What asks about the whole.
const OVERVIEW: &str = "\
    overview | architecture of | project structure | repository structure | repo structure | \
    code structure | code layout | repository layout | repo layout | project layout | what is \
    this project | what is this repo | what is this repository | what is this code | what is \
    this codebase | what is this about | what is the project about | what s this project | what \
    s this repo | what does this project | what does this repo | what does this repository | \
    what does this code do | what does this codebase | what does this program do | what does \
    this library do | what does this tool do | what does this package do | how is this project | \
    how is this repo | how is this repository | how is the code organised | how is the code \
    organized | how is the code structured | how is the project organised | how is the project \
    organized | how is the project structured | how is the project laid out | how is the \
    repository organised | how is the repository organized | main modules | main components | \
    main parts | where do i start | where do i begin | where should i start | where should i \
    begin | where to start | where to begin | about this project | about this repo | about this \
    repository | about this codebase | explain this project | explain this repo | explain this \
    codebase | summarise this project | summarize this project | summarise this repo | summarize \
    this repo | describe this project | was ist das für ein projekt | worum geht es in diesem \
    projekt | was macht dieses projekt | überblick | wie ist das projekt aufgebaut | wie ist der \
    code aufgebaut | vue d ensemble | que fait ce projet | de quoi parle ce projet | structure \
    du projet | qué hace este proyecto | de qué trata este proyecto | qué es este proyecto | \
    estructura del proyecto";

/// Words that say the whole, and are no focus.
const WHOLE: &str = "\
    overview architecture project projects repository repo codebase code structure structured \
    layout organised organized laid modules components parts main program library tool package \
    start begin explain describe summarise summarize projekt projekts überblick aufgebaut projet \
    proyecto estructura ensemble vue short brief quick";

/// What asks who uses something.
const USERS: &str = "\
    who calls | what calls | who uses | what uses | which function calls | which functions call | which code \
    calls | which code uses | which files use | which file uses | callers of | callers | usages of | usage of | \
    uses of | users of | references to | call sites | who references | what references | who imports | what \
    imports | which files import | what depends on | wer ruft | wer benutzt | wer verwendet | wer nutzt | qui \
    appelle | qui utilise | quién llama | quién usa | quién utiliza";

/// The same, in two words.
const WHERE: &str = "where wo où dónde";
const USED: &str = "\
    used called referenced imported instantiated invoked verwendet benutzt aufgerufen genutzt utilisé utilisée \
    appelé appelée usa utiliza llama";

/// What asks for what was written down.
const NOTES: &str = "\
    my notes | our notes | the notes | these notes | in notes | notes on | notes about | notes say | notes from | note \
    on | note about | was noted | i noted | we noted | notizen | notiz | mes notes | nos notes | les notes | notes sur | \
    mis notas | nuestras notas | las notas | notas sobre | why do we | why did we | why don t we | why are we | \
    warum verwenden wir | warum benutzen wir | warum nutzen wir | warum haben wir | pourquoi utilisons | pourquoi avons | \
    por qué usamos | por qué tenemos";

/// The words of it that say no more.
const RECORDED: &str = "note notes noted notiz notizen nota notas";

/// What is written down to be found again.
const RECORDS: &str = "adr adrs rationale diary";

/// English words of these lists that may as well be names of types.
const ENGLISH_NOUNS: &str = "\
    note notes adr rationale diary decision decisions meeting meetings overview commit commits history change \
    changes project repository package module modules component components structure library tool program \
    author log latest recent layout";

/// What was settled, and where.
const SETTLED: &str = "\
    decision decisions decided meeting meetings agreed entscheidung entscheidungen entschieden \
    beschlossen besprechung décision décisions décidé réunion decisión decisiones decidió reunión";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_tell_where_they_are_to_be_looked_up() {
        use Interest::{History, Notes, Overview, Places, Settled, Uses};
        let (first, latest) = (History(Change::First), History(Change::Latest));
        for (question, interest) in [
            ("where is the parser?", Places),
            ("when is a session removed?", Places),
            ("who calls parse_config?", Uses),
            ("where is back_off used?", Uses),
            ("wo wird back_off aufgerufen?", Uses),
            ("what is back_off used for?", Places),
            ("what are methods called that end it?", Places),
            ("where is Decision defined?", Places),
            ("what does Overview do?", Places),
            ("where are release notes generated?", Places),
            ("why do we keep orders in SQLite?", Notes),
            ("who may write to the journal?", Places),
            ("why was my request dropped?", Places),
            ("how does the last attempt end?", Places),
            ("since which version is there a cache?", Places),
            ("what does the commit method do?", Places),
            ("when was the cache added?", first),
            ("who wrote the parser?", first),
            ("who last changed the parser?", latest),
            ("when did you add the cache", first),
            ("why was the retry removed?", latest),
            ("show me the last commits", latest),
            ("what has been changed recently?", latest),
            ("git blame of src/main.rs", latest),
            ("which commit introduced max_turns", first),
            ("wann wurde der cache eingeführt?", first),
            ("qui a modifié le cache ?", latest),
            ("¿cuándo se añadió la caché?", first),
            ("what is this project about?", Overview),
            ("give me an overview of the journal", Overview),
            ("how is the code organised?", Overview),
            ("wie ist das projekt aufgebaut?", Overview),
            ("what was decided about sqlite?", Settled),
            ("notes of the last meeting", Settled),
            ("notes on the release", Notes),
            ("was steht in den notizen zum umzug?", Notes),
            ("", Places),
        ] {
            assert_eq!(Interest::of(question), interest, "{question}");
        }
    }

    #[test]
    fn words_that_say_only_that_are_no_subject() {
        assert!(is_change("added") && is_change("commits") && !is_change("cache"));
        assert!(is_whole("project") && !is_whole("cache"));
        assert!(is_settled("agreed") && !is_settled("notes"));
        assert!(is_noted("notes") && is_name("Meeting") && !is_name("meeting") && !is_name("ADR"));
    }
}
