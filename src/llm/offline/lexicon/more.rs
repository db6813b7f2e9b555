//! What asks for more of what was talked about, and names nothing by itself: "show me the code", "go on".
//!
//! Data and look-ups. All entries are lower-case.

use super::{super::words::words, holds, without_politeness};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum More {
    /// All of what was shown in part.
    Whole,
    /// What comes next.
    Further,
    /// What was before that.
    Before,
}

/// What a text asks for that consists of nothing else.
pub(in super::super) fn more_in(text: &str) -> Option<More> {
    let lower = text.to_lowercase();
    let (asked, _) = without_politeness(lower.trim());
    let said: Vec<&str> = words(asked).filter(|word| !word.is_empty()).collect();
    let phrase = said.join(" ");
    let is_one_of = |list: &str| list.split(" | ").any(|known| known == phrase);
    let has = |list: &str| said.iter().any(|word| holds(list, word));
    let is_known = |word: &&str| {
        [SHOW, THING, BESIDE, ALL]
            .iter()
            .any(|list| holds(list, word))
    };
    let is_whole = || {
        let is_shown = has(SHOW) && (has(THING) || has(POINTING) || has(ALL));
        (is_shown || (has(THING) && has(ALL))) && said.iter().all(is_known)
    };
    if is_one_of(BEFORE) {
        Some(More::Before)
    } else if is_one_of(FURTHER) {
        Some(More::Further)
    } else {
        (is_whole() || asks_how(text)).then_some(More::Whole)
    }
}

/// Whether a text only asks how that works, of which all of it is the answer of who explains nothing.
pub(in super::super) fn asks_how(text: &str) -> bool {
    let lower = text.to_lowercase();
    let (asked, _) = without_politeness(lower.trim());
    let said: Vec<&str> = words(asked).filter(|word| !word.is_empty()).collect();
    let said = match &*said {
        ["and" | "und" | "et" | "y", said @ ..] => said,
        said => said,
    };
    let phrase = said.join(" ");
    WORKS.split(" | ").any(|known| known == phrase)
}

const WORKS: &str = "\
    how does it work | how does that work | how does this work | how is it done | how does it do that | what does it do | \
    what does that do | wie funktioniert das | wie funktioniert es | wie geht das | was macht es | was macht das | \
    comment ça marche | comment cela fonctionne | comment ça fonctionne | que fait il | qu est ce que ça fait | \
    cómo funciona | cómo funciona eso | qué hace | qué hace eso";

const FURTHER: &str = "\
    go on | continue | next | keep going | go ahead | and next | more please | show more | weiter | mach weiter | weiter so | \
    mach bitte weiter | continue s il te plaît | continuez | encore | la suite | sigue | continúa | siguiente | \
    more | show me more | show me more please | zeig mir bitte mehr | and more | any more | the next ones | show me the next ones | mehr | zeig mir mehr | zeig mehr | \
    noch mehr | die nächsten | plus | montre moi plus | montre m en plus | les suivants | más | muéstrame más | los siguientes";

const BEFORE: &str = "\
    and before that | before that | what about before that | what came before that | what was before that | and before | \
    and earlier | earlier | older | older ones | the older ones | earlier ones | show me older ones | und davor | davor | \
    was war davor | und vorher | und früher | ältere | et avant | et avant ça | et avant cela | avant ça | avant cela | \
    plus anciens | y antes | y antes de eso | antes de eso";

const SHOW: &str = "\
    show see print display give open view quote zeig zeige sehen montre montrez voir muestra muéstrame muestrame ver";

const THING: &str = "\
    code source file function method class struct definition implementation body snippet datei fichier archivo quelltext quellcode funktion methode \
    klasse fonction méthode función método clase código codigo";

const ALL: &str = "\
    whole full entire complete all ganze ganzen ganz vollständigen vollständige tout toute entier entière todo toda \
    completo completa";

const POINTING: &str = "it this es das le la lo";

const BESIDE: &str = "\
    me us the its it this of a actual in for please can could may i you let now just want to would like d mir uns den die \
    das der bitte kann ich es moi nous le la les el lo los puedo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_more_names_nothing() {
        for (text, more) in [
            ("show me the code", Some(More::Whole)),
            (
                "Can you show me the whole function, please?",
                Some(More::Whole),
            ),
            ("the full definition", Some(More::Whole)),
            ("show it", Some(More::Whole)),
            ("I want to see the implementation", Some(More::Whole)),
            ("Zeig mir den ganzen Code", Some(More::Whole)),
            ("montre-moi le code", Some(More::Whole)),
            ("muéstrame el código", Some(More::Whole)),
            ("go on", Some(More::Further)),
            ("weiter", Some(More::Further)),
            ("Show me more, please", Some(More::Further)),
            ("zeig mir mehr", Some(More::Further)),
            ("and before that?", Some(More::Before)),
            ("Und davor?", Some(More::Before)),
            ("et avant ça ?", Some(More::Before)),
            ("¿y antes de eso?", Some(More::Before)),
            ("show me more of the journal", None),
            ("where is the code?", None),
            ("show me the code of the journal", None),
            ("how does it work?", Some(More::Whole)),
            ("Und wie funktioniert das?", Some(More::Whole)),
            ("comment ça marche ?", Some(More::Whole)),
            ("how does the journal work?", None),
            ("show me the session", None),
            ("the function", None),
            ("show me", None),
            ("", None),
        ] {
            assert_eq!(more_in(text), more, "{text}");
        }
    }
}
