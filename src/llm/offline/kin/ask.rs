//! What asks who implements or extends a type, in four languages. Data and look-ups.

use super::super::{
    lexicon::holds,
    term::{Term, TermKind},
};

/// Whether a text asks for those.
pub(in super::super) fn asks(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let said = format!(" {} ", words.join(" "));
    // "How do implementations of it differ?" asks for what they do.
    let asks_how = words.first().is_some_and(|word| holds(HOW, word));
    let is_counted = words.get(1).is_some_and(|word| holds(MANY, word));
    let mut phrases = ASKING.split(" | ").map(|phrase| format!(" {phrase} "));
    (!asks_how || is_counted) && phrases.any(|phrase| said.contains(&phrase))
}

/// Whether a word only says that something is implemented or extended.
pub(in super::super) fn is_said(term: &Term) -> bool {
    matches!(term.kind, TermKind::Weak | TermKind::Word)
        && holds(SAYING, &term.shown.to_lowercase())
}

/// Whether a name is spelt as types are.
pub(in super::super) fn is_type(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(char::is_uppercase)
}

const HOW: &str = "how why when wie warum wieso wann comment pourquoi quand cómo cuándo";
const MANY: &str = "many viele";

const ASKING: &str = "\
    who implements | what implements | which implement | types implement | type implements | classes implement | class \
    implements | structs implement | struct implements | that implement | implementers of | implementors of | \
    implementations of | who inherits | what inherits | classes inherit | class inherits | types inherit | that inherit | \
    inheritors of | who extends | what extends | classes extend | class extends | types extend | that extend | who \
    subclasses | what subclasses | classes subclass | subclasses of | what derives from | who derives from | classes \
    derive from | classes derived from | types derived from | \
    wer implementiert | was implementiert | typen implementieren | klassen implementieren | \
    structs implementieren | klasse implementiert | implementierungen von | wer erbt | was erbt | klassen erben | klasse \
    erbt | unterklassen von | wer erweitert | klassen erweitern | qui implémente | quoi implémente | types implémentent | \
    classes implémentent | classe implémente | implémentations de | qui hérite | classes héritent | classe hérite | sous \
    classes de | qui étend | classes étendent | quién implementa | quiénes implementan | qué implementa | tipos \
    implementan | clases implementan | clase implementa | implementaciones de | quién hereda | qué hereda | clases \
    heredan | clase hereda | subclases de | quién extiende | clases extienden";

const SAYING: &str = "\
    implements implement implementers implementors implementations inherits inherit inheritors extends extend subclasses \
    subclass derives derive derived types type classes class structs struct traits trait interface interfaces \
    implementiert implementieren implementierungen erbt erben unterklassen erweitert erweitern typen klassen klasse \
    implémente implémentent implémentations hérite héritent sous étend étendent classe implementa implementan \
    implementaciones hereda heredan subclases extiende extienden tipos clases clase";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_implements_a_type_is_asked_in_four_languages() {
        for (text, is) in [
            ("who implements Backend?", true),
            ("What implements the Backend trait", true),
            ("which types implement Backend", true),
            ("list all implementations of Backend", true),
            ("how many classes extend Plugin?", true),
            ("what inherits from Plugin?", true),
            ("subclasses of Spider", true),
            ("Wer implementiert Backend?", true),
            ("welche Klassen erben von Spider?", true),
            ("qui implémente Backend ?", true),
            ("qui hérite d'Error ?", true),
            ("¿quién implementa Backend?", true),
            ("qué clases heredan de Spider", true),
            ("how do implementations of Backend differ?", false),
            ("where is Backend implemented?", false),
            ("which settings are derived from Config?", false),
            ("who calls Backend?", false),
            ("implement Backend", false),
        ] {
            assert_eq!(asks(text), is, "{text}");
        }
    }
}
