//! Words that nobody looks for, and the languages that they tell.

use super::near::apart;

/// A language that questions are understood in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
}

pub(super) const OTHERS: [Language; 3] = [Language::German, Language::French, Language::Spanish];

const ENGLISH: &str = "\
    a about actually after all also always am an and any anybody are aren around as at be because \
    been before being between both but by can cannot could couldn currently d did didn do does \
    doesn doing don done during each either else et etc ever every everything exactly few find \
    for from get gets give gives go goes got had has hasn have having he hello help her here hey \
    hi his how however i if in into is isn it its itself just know last least less let like ll \
    locate look m made many may me mean means might mine more most much must my need needs no \
    not nothing now of off ok on once one only onto or other our out over own per place please \
    quite re really rather s said same say says see shall she should show since so some somebody \
    someone something somewhere still such t tell than thank thanks that the their them then \
    there these they thing things this those though through to too under until up upon us use \
    used uses using ve very via want wants was wasn way we well were what when where whether \
    which while who whole whom whose why will with within without won would wouldn yes yet you \
    your wheres hows whats";

const GERMAN: &str = "\
    aber alle als am an auch auf aus bei beim bin bis da damit dann das dass dem den denn der des \
    die dies diese dieser dieses doch durch ein eine einem einen einer eines er es für gegen gibt \
    haben hat ich ihr im in ins ist ja kann kein keine können man mein mich mir mit muss nach \
    nicht noch nur oder ob ohne pro sehr sein seine sich sie sind so soll über um und unter vom \
    von vor wann war warum was welche welchem welchen welcher welches wenn wer werde werden wie \
    wieso wir wird wo wofür woher wohin womit wurde wurden zu zum zur zwischen mache macht bedeutet \
    geschieht passiert gehört stehen steht";

const FRENCH: &str = "\
    a ai alors au aucun aussi aux avec avoir c ce cela celui ces cet cette chaque comme comment d \
    dans de des deux dois doit donc du elle elles en est et eu eux faire fait faut il ils j je l la \
    le les leur leurs lors m ma mais mes moi mon n ne ni nos notre nous on ont ou où par pas peut \
    peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa se sera ses \
    si son sont sous sur t ta te toi ton tout toute toutes trop tu un une va vers veut veux vos \
    votre vous y à être était étant était";

const SPANISH: &str = "\
    a al algo como con cual cuál cuáles cuando cuándo cuánto cómo de debe debo del desde donde \
    dónde dos e el ella ellos en entre era es esa ese eso esta estas este esto estos está están fue \
    ha hace hacer haciendo hago han hasta hay la las le les lo los me mi mis mucho muy más ni no \
    nos o os otra otro para pero poco por porque pasa puede puedo que quien quién qué se sea ser si sin \
    sobre solo son su sus también te tiene tienen toda todo todos tras tu tus un una uno unos y ya \
    yo él sí";

fn list(language: Language) -> &'static str {
    match language {
        Language::English => ENGLISH,
        Language::German => GERMAN,
        Language::French => FRENCH,
        Language::Spanish => SPANISH,
    }
}

/// Whether nobody looks for this lower-cased word in a question of that language.
pub(super) fn is_common(language: Language, word: &str) -> bool {
    list(language)
        .split_ascii_whitespace()
        .any(|entry| entry == word)
}

/// The language of a question, by its common words; English in doubt.
pub(super) fn language_of(words: &[String]) -> Language {
    let count = |language| {
        words
            .iter()
            .filter(|word| is_common(language, word))
            .count()
    };
    let mut best = (Language::English, count(Language::English));
    for language in OTHERS {
        let here = count(language);
        if here > best.1 {
            best = (language, here);
        }
    }
    best.0
}

/// Words by which questions begin, and that are misspelt most.
const BEGIN: [&str; 9] = [
    "where", "which", "what", "when", "does", "how", "should", "there", "with",
];

/// Whether an English word is a misspelt one by which questions begin.
pub(super) fn is_misspelt_common(language: Language, word: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let misspelt = |begin: &str| {
        let swapped = word.len() >= 3 && letters(word) == letters(begin);
        let left_out = begin.len() >= 5 && word.len() >= 4 && apart(word, begin, 1).is_some();
        swapped || left_out
    };
    language == Language::English && BEGIN.iter().any(|begin| misspelt(begin))
}

/// Words that help to choose between places but that nobody misses.
const WEAK: &str = "\
    add added api apply applied behave behavior behaviour call called calls case cause caused causes change changed \
    check checked checks class classes code codebase come comes compare contain contains correct cover covers \
    create created decide decides declared default define defined defines definition describe \
    described detail details difference different directory documentation documented entry exist \
    exists explain fail fails feature field fields file files first fix folder function functions \
    handle handled handles happen happening happens implement implementation implemented \
    implements inside keep keeps kind kinds line lines lives located logic main make makes \
    making meaning method methods module modules name named names new next number option options \
    part parts point possible print printed prints program project properly purpose put raise raised raises reason repo repository \
    responsible return returns role run runs section set sets setting settings sort source start \
    starts step steps stuff struct support supported supports summarise summarize summary switch take taken takes throw thrown time turn \
    turned turns type types understand value values variable versus work working works write written wrong";

/// Words that only say that something is asked about, and would be found by themselves in names.
const HOLLOW: &str = "\
    declaration declared define defined defines definition happen happened happening happens \
    implemented located work working works";

/// Whether this lower-cased English word says nothing beside one that does.
pub(super) fn is_hollow(word: &str) -> bool {
    HOLLOW.split_ascii_whitespace().any(|entry| entry == word)
}

/// Whether nobody would miss this lower-cased English word.
pub(super) fn is_weak(word: &str) -> bool {
    WEAK.split_ascii_whitespace().any(|entry| entry == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_question_is_told_by_its_small_words() {
        for (question, language) in [
            ("where is the parser", Language::English),
            ("wo wird der parser aufgerufen", Language::German),
            ("où est le parser", Language::French),
            ("dónde está el parser", Language::Spanish),
            ("parser", Language::English),
        ] {
            let words: Vec<String> = question.split(' ').map(str::to_owned).collect();
            assert_eq!(language_of(&words), language, "{question}");
        }
    }

    #[test]
    fn small_words_are_left_out() {
        assert!(is_common(Language::English, "where"));
        assert!(is_common(Language::German, "wird"));
        assert!(!is_common(Language::English, "parser"));
        for (word, misspelt) in [
            ("hwo", true),
            ("wehre", true),
            ("wher", true),
            ("who", true),
            ("tower", false),
        ] {
            assert_eq!(
                is_misspelt_common(Language::English, word),
                misspelt,
                "{word}"
            );
        }
        assert!(is_weak("function") && !is_weak("gateway"));
    }
}
