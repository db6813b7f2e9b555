//! Word lists of the offline model: what says nothing, what asks for a deed (`deeds`), what goes on about
//! something (`pronouns`) or asks for more of it (`more`), what is small talk (`talk`) or about the conversation (`recall`), what names days
//! (`times`), what is no part of a project (`prose`).
//!
//! Data and look-ups, no rules. All entries are lower-case.

mod deeds;
mod more;
mod pronouns;
mod prose;
mod recall;
mod talk;
mod times;

pub(super) use deeds::{deed_in, is_left_of_deed, without_politeness};
pub(super) use more::{More, asks_how, more_in};
pub(super) use pronouns::{is_pronoun, says_it};
pub(super) use prose::is_prose;
pub(super) use recall::{Recall, recall_in};
pub(super) use talk::{Chat, chat_in, without_talk};
pub(super) use times::{DAYS_BACK, TIMES, month_called, month_of, number_of, unit_of, weekday_of};

/// Words that are never looked for; with common ones of other languages, so that questions in them
/// are not all gaps.
const STOP: &str = "\
    a about actually after all also always am an and any are aren around as at be because been \
    before being between but by can cannot could couldn currently des did didn do does doesn \
    doing don done during each either else et etc ever every exactly find for from give had has \
    hasn have he hello help her here hey hi his how however if in into is isn it its just know \
    last least les let like list ll locate look made many may me mean means might meant mine more most \
    much must my need no not now of off ok on once one only onto or oracle other our out over \
    per place please quite re really said say says second see shall she should show since so \
    some somewhere sorry such tell than thank thanks that the their them then there these they thing \
    things this those through to too under until up upon us ve very want was wasn we well were \
    what when where whether which while who whole whom whose why will with within without won \
    would wouldn yes yet you your aber als auf aus avec bei bitte cette como con cual dans das dass \
    dem den der die donde du dónde ein eine einen einer el en es est esta está est-ce für gibt \
    hay ich im ist kann la las le los man mit nach nicht oder où para pour pourquoi que quel \
    quelle qué sich sind son sont sur todo una und une von warum welche wenn werden wie wird wo \
    wurde zu zum zur";

/// Words that help to choose between places but that nobody misses.
const WEAK: &str = "\
    add added api behave behavior behaviour call called calls cause caused causes change changed check checked \
    checks class classes code codebase come comes compare contain contains cover covers create created \
    declared default define defined defines definition describe described detail details \
    difference directory documentation documented entry exist exists explain field fields file \
    files folder function functions get gets go goes handle handled handles happen happening \
    happens implement implementation implemented implements inside kept kind line lines lives \
    located main make makes meaning method methods module modules name named names number part \
    parts point possible print printed prints program project purpose put raise raised raises reason repo repository responsible return \
    returns role section set sets source start starts step steps struct summarise summarize \
    summary support supported supports take takes throw throws thrown type types understand use used uses using value values variable way work \
    working works write written";

/// Whether a list of words, parted by spaces, has this one.
pub(super) fn holds(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| entry == word)
}

/// Whether the word is never looked for.
pub(super) fn is_stop(word: &str) -> bool {
    holds(STOP, word)
}

/// Whether nobody would miss the word.
pub(super) fn is_weak(word: &str) -> bool {
    holds(WEAK, word)
}

/// Words that ask for a file to be shown.
const SHOWING: &str =
    "cat display head less open print read show tail view öffne zeige ouvre montre abre muestra";

/// Whether the word only asks for a file to be shown.
pub(super) fn is_showing(word: &str) -> bool {
    holds(SHOWING, word)
}
