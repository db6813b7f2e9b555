//! Questions whose answer is a list of what notes have, and no passage: to-dos, links and tags, how
//! decisions stand, the newest meeting.
//!
//! By the form of the whole question, since its words are common ones: "which open tasks has Ben?", but
//! not "how are open tasks cancelled?". In the four languages that searches know. Pure.

use super::{
    super::lexicon::{holds, is_stop},
    Interest,
};

mod known;
mod mentions;
mod tasks;

pub(super) use known::{asks_for_use, decides};
pub(in super::super) use known::{asks_what_it_is, is_of_decision};
pub(in super::super) use mentions::is_of_mention;

/// What is to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Listing {
    /// To-dos.
    Tasks(Tasks),
    /// What links to a note.
    Linking,
    /// Links that lead nowhere.
    Broken,
    Tagged,
    /// Notes that mention something.
    Mentioning,
    /// Decisions that stand so, in the word that records have for it.
    Standing(&'static str),
    /// The newest note of a kind.
    Newest(&'static str),
}

/// Which to-dos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Tasks {
    pub(in super::super) state: State,
    /// Whether they are called so as lines of code are marked.
    pub(in super::super) are_marked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum State {
    Open,
    Done,
    All,
}

impl State {
    /// As tools call it.
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::All => "all",
        }
    }
}

/// A word of a question, as it is spelt and in small letters.
#[derive(Debug, Clone)]
struct Said {
    shown: String,
    lower: String,
}

impl Said {
    fn is(&self, list: &str) -> bool {
        holds(list, &self.lower)
    }

    /// Whether it is spelt as the name of somebody.
    fn is_name(&self) -> bool {
        let mut letters = self.shown.chars();
        let begins = letters.next().is_some_and(char::is_uppercase);
        begins && letters.all(|c| c.is_lowercase() || c == '-')
    }
}

impl Listing {
    /// What a question wants to be listed, and by which words, names or days that is told apart.
    pub(in super::super) fn of(question: &str) -> Option<(Self, String)> {
        let said = said(question);
        if said.first().is_none_or(|first| first.is(EXPLAINED)) {
            return None;
        }
        tasks::of(&said)
            .or_else(|| known::of(question, &said))
            .or_else(|| mentions::of(question, &said))
    }
}

impl Interest {
    /// Whether days that a question names are those of what it wants.
    pub(in super::super) fn is_of_days(self, question: &str) -> bool {
        let asks_why = || {
            let mut words = question.split_whitespace();
            words.any(|word| holds(EXPLAINED, &word.to_lowercase()))
        };
        match self {
            Self::History(_) | Self::Settled | Self::Listed(_) => true,
            Self::Notes => !asks_why(),
            Self::Places | Self::Uses | Self::Overview | Self::Facts(_) | Self::HowTo(_) => false,
        }
    }
}

/// What begins a question that wants to be told how something works.
const EXPLAINED: &str = "how why where wie warum wieso wo comment pourquoi où cómo dónde";

/// The words of a question; those that are said in several are one.
fn said(question: &str) -> Vec<Said> {
    let words = question.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '#')));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut said: Vec<Said> = Vec::new();
    let mut rest = &words[..];
    while let [first, behind @ ..] = rest {
        let joined = JOINED.iter().find_map(|(phrase, one)| {
            let parts = phrase.split(' ').count();
            let own = rest.get(..parts)?;
            let is_it = own
                .iter()
                .zip(phrase.split(' '))
                .all(|(a, b)| a.to_lowercase() == b);
            is_it.then_some((*one, parts))
        });
        let (word, used) = joined.unwrap_or((first, 1));
        said.push(Said {
            shown: word.to_owned(),
            lower: word.to_lowercase(),
        });
        rest = if used > 1 {
            rest.get(used..).unwrap_or_default()
        } else {
            behind
        };
    }
    said
}

/// What is one word here, the longer phrases first.
const JOINED: &[(&str, &str)] = &[
    ("how many", "howmany"),
    ("how much", "howmany"),
    ("wie viele", "howmany"),
    ("combien de", "howmany"),
    ("to do list", "todos"),
    ("to do items", "todos"),
    ("to dos", "todos"),
    ("todo list", "todos"),
    ("todo items", "todos"),
    ("todo liste", "todos"),
    ("action items", "todos"),
    ("action item", "todos"),
    ("action points", "todos"),
    ("offene punkte", "todos"),
    ("offenen punkte", "todos"),
    ("open points", "todos"),
    ("choses à faire", "todos"),
    ("liste de tâches", "todos"),
    ("liste des tâches", "todos"),
    ("cosas por hacer", "todos"),
    ("lista de tareas", "todos"),
    ("qu est ce que", "what"),
    ("qu est ce qu", "what"),
    ("est ce que", "what"),
];

/// The words of which a list is made that are in no list of small words here.
fn telling<'a>(said: impl Iterator<Item = &'a Said>, lists: &[&str]) -> String {
    let is_small = |word: &Said| {
        word.lower.chars().count() < 2
            || is_stop(&word.lower)
            || word.is(SMALL)
            || lists.iter().any(|list| word.is(list))
    };
    let words: Vec<&str> = said
        .filter(|word| !is_small(word))
        .map(|word| &*word.shown)
        .collect();
    words.join(" ")
}

/// Small words that no list of words left out has.
const SMALL: &str = "\
    howmany what still left yet right now currently today again everything everyone anyone team we our ours us mine \
    project projekt projet proyecto vault notes note notizen notiz notas nota assigned named called \
    noch alle alles jetzt gerade unser unsere unseren meine meinen mein mir uns hat habe haben muss müssen soll sollen \
    zeig zeige zeigt gib nenne welchen welcher sind bei mich zugewiesen \
    mes mon ma nos notre quelles quels ont encore toutes tous reste restent doit dois doivent montre liste lister \
    mis mi nuestras nuestros cuáles qué tiene tienen tengo tenemos debe debo quedan queda muestra lista listar todas \
    todos todavía aún quién qui quelle";

#[cfg(test)]
mod tests;
