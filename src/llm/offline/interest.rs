//! Where a question is to be looked up besides the files: in the history, in notes, where a name is used, or
//! in no single place because it is about the whole.
//!
//! By the words of the question, in the four languages that searches know. What is spelt as a name is
//! one: "where is Decision defined?" is not about what was decided. Pure.

use super::lexicon::holds;

mod bounds;

pub(super) use bounds::Bounds;

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
    pub(super) const fn is_of_history(self) -> bool {
        matches!(self, Self::History(_))
    }

    /// Of a question as it was put, without its quotations.
    pub(super) fn of(question: &str) -> Self {
        let (bounds, question) = Bounds::taken_from(question);
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
        } else if bounds.is_counted || (bounds.has_days() && asks_what_happened(&words)) {
            Self::History(Change::Latest)
        } else if has_phrase(&said, OVERVIEW) {
            Self::Overview
        } else if asks_for_users(&words, &said) {
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
    [
        BEGUN, CHANGED, TO_BEGIN, TO_CHANGE, OF_HISTORY, NEWEST, HAPPENED,
    ]
    .iter()
    .chain(DONE.iter().map(|(done, _)| done))
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

/// Whether the word only says that a name is used.
pub(super) fn is_use(word: &str) -> bool {
    holds(USED, word) || holds(TO_USE, word)
}

/// "How are users of it told?" asks for what happens to them.
fn asks_for_users(words: &[String], said: &str) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let asks_how = words.first().is_some_and(|word| holds(HOW, word));
    let asks_how_many = words.get(1).is_some_and(|word| holds(MANY, word));
    let is_about_how = asks_how && !asks_how_many;
    (has_phrase(said, USERS) && !is_about_how) || (any(WHERE) && any(USED))
}

/// Whether what was done is asked for, and not what was noted of it: of certain days that is what commits say.
fn asks_what_happened(words: &[String]) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let is_ordered = words.first().is_some_and(|word| holds(ORDERED, word));
    // "What happens to what was changed today" asks how it works.
    let begins_clause = |at: usize| {
        let is_relative = holds(RELATIVE, &words[at]) && !holds(POINTING, &words[at - 1]);
        holds(SUBORDINATE, &words[at]) || holds("si quand falls", &words[at]) || is_relative
    };
    let end = (1..words.len()).find(|at| !is_ordered && begins_clause(*at));
    let clause = &words[..end.unwrap_or(words.len())];
    let says = |list: &str| clause.iter().any(|word| holds(list, word));
    let beside = |list: &str| clause.iter().skip(1).any(|word| holds(list, word));
    let happened = [BEGUN, CHANGED, TO_CHANGE, OF_HISTORY, HAPPENED];
    words.first().is_some_and(|word| holds(WHAT, word))
        && (happened.iter().any(|list| says(list))
            || DONE.iter().any(|(done, was)| says(done) && beside(was)))
        && !any(SETTLED)
        && !any(RECORDS)
        && !any(RECORDED)
}

fn change_in(words: &[String], said: &str) -> Option<Change> {
    let asked = (0..words.len()).find_map(|at| asked_of_people(words, at));
    let asked = asked.or_else(|| {
        let behind = ASKING
            .split(" | ")
            .filter_map(|phrase| behind_phrase(said, phrase));
        behind
            .into_iter()
            .find_map(|clause| change_of(clause.split_whitespace()))
    });
    let named = || has_phrase(said, NAMING).then(|| of_naming(words));
    let change = asked.or_else(named)?;
    Some(match words.iter().any(|word| holds(LAST, word)) {
        true => Change::Latest,
        false => change,
    })
}

fn of_naming(words: &[String]) -> Change {
    match words.iter().any(|word| holds(BEGUN, word)) {
        true => Change::First,
        false => Change::Latest,
    }
}

/// "Who added it?": the change has to be what "who" did, and not what comes after it.
fn asked_of_people(words: &[String], at: usize) -> Option<Change> {
    let behind = words.get(at + 1..)?;
    let is_of_somebody = at > 1 && holds(ARTICLES, &words[at - 2]);
    if !holds(WHO, words.get(at)?) || is_of_somebody {
        return None;
    }
    let beside = behind.iter().take_while(|word| holds(BESIDE, word)).count();
    let (beside, behind) = behind.split_at(beside);
    let has = |list: &str| beside.iter().any(|word| holds(list, word));
    let most = match (
        has("hat haben hatte"),
        words[at] == "qui" && !has("a ont avait"),
    ) {
        // "Wer hat den Cache hinzugefügt": the verb is the last word.
        (true, _) => behind.len(),
        (false, true) => 0,
        (false, false) => 1,
    };
    // "Who did add it?"
    let did = beside.iter().filter(|word| *word == "did");
    change_of(did.chain(behind.iter().take(most)).map(String::as_str))
}

/// The change that a clause asks for, before what else it says of the time.
fn change_of<'a>(clause: impl Iterator<Item = &'a str>) -> Option<Change> {
    let clause: Vec<&str> = clause
        .take_while(|word| !holds(SUBORDINATE, word))
        .collect();
    let any = |list: &str| clause.iter().any(|word| holds(list, word));
    // "When is it removed?" asks how it works; "when was it?" what happened.
    let did = any("did");
    if any(BEGUN) || (did && any(TO_BEGIN)) {
        Some(Change::First)
    } else if any(CHANGED) || (did && any(TO_CHANGE)) {
        Some(Change::Latest)
    } else {
        None
    }
}

/// What stands behind a phrase; "did" again, if it ends so.
fn behind_phrase<'a>(said: &'a str, phrase: &str) -> Option<&'a str> {
    let mut places = said.match_indices(phrase);
    let (at, _) = places
        .find(|(at, _)| said[..*at].ends_with(' ') && said[at + phrase.len()..].starts_with(' '))?;
    let kept = if phrase.ends_with("did") {
        "did".len()
    } else {
        0
    };
    Some(&said[at + phrase.len() - kept..])
}

fn has_phrase(said: &str, phrases: &str) -> bool {
    phrases.split(" | ").any(|phrase| {
        said.match_indices(phrase)
            .any(|(at, _)| said[..at].ends_with(' ') && said[at + phrase.len()..].starts_with(' '))
    })
}

const LAST: &str = "last latest zuletzt";

/// Who did something, and what may stand between that and what they did.
const WHO: &str = "who wer qui quién quiénes quien quienes";
const BESIDE: &str = "\
    actually all also did else even ever exactly first had has have initially it just last lately latest most originally \
    previously recently really s that was were hat haben hatte zuletzt zuerst ursprünglich a ont avait l le la les \
    récemment dernièrement initialement ha han había lo los las fue el que";

/// What stands before a noun of which "who" tells more: "the user who added an item".
const ARTICLES: &str = "the a an every each la le une el";

/// What asks for a change that is told behind it.
const ASKING: &str = "\
    whose | by whom | when was | when were | when did | when has | when have | why was | why \
    were | why did | how long ago | von wem | wann wurde | \
    wann wurden | wann hat | warum wurde | warum wurden | par qui | quand a | quand ont | pourquoi \
    a | por quién | cuándo se | por qué se";

/// What begins a clause that tells only the time or the cause.
const SUBORDINATE: &str = "\
    after because before if once unless until when whenever while nachdem sobald bevor wenn während weil \
    après lorsque dès avant después cuando antes mientras";

/// What asks for commits by itself.
const NAMING: &str = "\
    git log | git blame | git history | commit history | history of commits | commit log | last \
    commit | last commits | latest commit | latest commits | recent commit | recent commits | \
    newest commit | first commit | which commit | which commits | what commit | \
    welcher commit | welche commits | quel commit | quels commits | qué commit | qué commits | recent changes | \
    latest changes | last changes | changed recently | changed lately | changed last | letzter \
    commit | letzte commits | letzten commits | letzte änderungen | letzten änderungen | dernier \
    commit | derniers commits | derniers changements | último commit | últimos commits | últimos \
    cambios";

/// What begins with a change.
const BEGUN: &str = "\
    added introduced created wrote written first invented hinzugefügt \
    eingeführt geschrieben schrieb angelegt ajouté introduit écrit créé añadió agregó introdujo escribió \
    creó añadido agregado introducido escrito creado";

const CHANGED: &str = "\
    changed removed deleted renamed fixed broke touched modified moved reverted replaced \
    rewritten merged committed geändert änderte \
    entfernt entfernte gelöscht löschte umbenannt behoben modifié supprimé renommé corrigé cambió modificó \
    eliminó borró quitó renombró corrigió cambiado modificado eliminado borrado quitado renombrado \
    corregido";

/// The same behind "did".
const TO_BEGIN: &str = "add introduce create write";
const TO_CHANGE: &str = "change remove delete rename fix modify move revert replace merge";

const OF_HISTORY: &str = "\
    commit commits git log blame history last latest recent recently lately newest changes \
    author zuletzt änderungen cambios changements";

/// Which commits: says no more beside them, and asks for none by itself.
const NEWEST: &str = "\
    letzte letzten letzter neueste neuesten jüngste jüngsten dernier derniers dernière dernières récent récents último \
    últimos última últimas reciente recientes";

/// What asks for what was done, and how that is said besides.
const WHAT: &str = "\
    what which who list show give tell any anything did commits changes was welche welcher wer zeig zeige liste que \
    quoi quels quelles qui qu qué cuáles quién quiénes muestra";
const HAPPENED: &str = "\
    happened new geschehen neu neues changé passé nouveau pasó hecho hizo nuevo";
/// What says so only beside a word of what is past: "what was done", but not "what is done".
const DONE: &[(&str, &str)] = &[
    ("done made did", "was were has have had did"),
    ("passiert gemacht getan", "ist wurde wurden hat habe haben"),
    ("fait", "a ont été avons avez"),
];

/// What asks for all of something, whatever clause tells of which.
const ORDERED: &str = "list show give tell any anything zeig zeige liste muestra";
/// What begins a clause about a thing, unless it stands behind what points to the change itself.
const RELATIVE: &str = "that which who whose qui que";
const POINTING: &str = "it is was ce est es lo";

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
    imports | which files import | what depends on | wer ruft | was ruft | wer benutzt | wer verwendet | wer nutzt | \
    wer importiert | qui appelle | qui l appelle | qui le appelle | qui la appelle | qui les appelle | qui \
    utilise | qui l utilise | qui les utilise | qui importe | qui l importe | qui les importe | quién llama | \
    quién lo llama | quién la llama | quién los llama | quién las llama | quién usa | quién lo usa | quién la \
    usa | quién los usa | quién las usa | quién utiliza | quién lo utiliza | quién la utiliza | quién \
    importa | quién lo importa | quién la importa";

/// What asks for what happens, unless it asks for a number.
const HOW: &str = "how why wie warum wieso weshalb comment pourquoi cómo";
const MANY: &str = "many much viele";

/// Words of them that say no more.
const TO_USE: &str = "\
    calls uses callers usages usage references imports depends ruft auf benutzt verwendet nutzt importiert \
    appelle utilise importe usa utiliza importa";

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
    note notes adr rationale diary decision decisions meeting meetings overview commit history change \
    changes project repository package module modules component components structure library tool program \
    author log latest recent layout";

/// What was settled, and where.
const SETTLED: &str = "\
    decision decisions decided meeting meetings agreed entscheidung entscheidungen entschieden \
    beschlossen besprechung décision décisions décidé réunion decisión decisiones decidió reunión";

#[cfg(test)]
mod tests;
