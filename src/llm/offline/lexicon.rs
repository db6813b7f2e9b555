//! Word lists of the offline model: what asks for a deed, what says nothing, what begins small talk
//! (`talk`).
//!
//! Data and look-ups, no rules. All entries are lower-case.

mod talk;

pub(super) use talk::{Chat, chat_in};

/// Words that are never looked for; with common ones of other languages, so that questions in them
/// are not all gaps.
const STOP: &str = "\
    a about actually after all also always am an and any are aren around as at be because been \
    before being between but by can cannot could couldn currently des did didn do does doesn \
    doing don done during each either else et etc ever every exactly find for from give had has \
    hasn have he hello help her here hey hi his how however if in into is isn it its just know \
    last least les let like list ll locate look made many may me mean means might mine more most \
    much must my need no not now of off ok on once one only onto or oracle other our out over \
    per place please quite re really said say says second see shall she should show since so \
    some somewhere such tell than thank thanks that the their them then there these they thing \
    things this those through to too under until up upon us ve very want was wasn we well were \
    what when where whether which while who whole whom whose why will with within without won \
    would wouldn yes yet you your aber als auf aus avec bei cette como con cual dans das dass \
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

/// Verbs that ask for a deed when a request begins with them.
const DEEDS: &str = "\
    add append apply build bump change commit convert copy create delete deploy disable drop \
    edit enable execute extend extract fix format generate implement improve insert install make \
    merge migrate modify move note optimise optimize patch port publish push refactor release \
    remember remove rename reorganize replace restart revert rewrite run save schedule send \
    simplify split store test undo uninstall update upgrade write";

/// What may stand before the deed; longer ones first.
const POLITE: &[&str] = &[
    "i would like you to",
    "i'd like you to",
    "i want you to",
    "i need you to",
    "would you please",
    "could you please",
    "can you please",
    "will you please",
    "please could you",
    "please can you",
    "would you",
    "could you",
    "can you",
    "will you",
    "go ahead and",
    "let us",
    "let's",
    "lets",
    "please",
    "now",
    "then",
    "also",
    "and",
    "ok",
    "okay",
    "hi",
    "hello",
    "hey",
    "oracle",
];

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

/// Those of them that are nouns as well, and what stands before an object.
const NOUNS_TOO: &str = "\
    build change copy deploy export extract fix format insert merge move note patch port publish \
    push release run schedule split stop store test update upgrade";
const BEFORE_OBJECTS: &str = "\
    a all an any both cargo each every everything for her his in into it its me my our some that \
    the their them these this those us your";

/// Whether the word may also begin a phrase about a thing.
pub(super) fn is_noun_too(word: &str) -> bool {
    holds(NOUNS_TOO, word)
}

/// Whether what stands behind a deed is what it is done to.
pub(super) fn begins_object(word: &str) -> bool {
    holds(BEFORE_OBJECTS, word)
}

/// Words that stand for what was talked about before.
const PRONOUNS: &str = "it that this them those these its es das dies le la ça lo eso esto";

/// Words that ask for a file to be shown.
const SHOWING: &str =
    "cat display head less open print read show tail view öffne zeige ouvre montre abre muestra";

/// Whether the word only asks for a file to be shown.
pub(super) fn is_showing(word: &str) -> bool {
    holds(SHOWING, word)
}

/// Whether the word stands for what was talked about before.
pub(super) fn is_pronoun(word: &str) -> bool {
    holds(PRONOUNS, word)
}

/// Whether the word stands for a thing that was talked about before, and hardly for anything else.
pub(super) fn is_it(word: &str) -> bool {
    holds("it its them", word)
}

/// Whether a request that begins with the word asks for a deed.
pub(super) fn is_deed(word: &str) -> bool {
    holds(DEEDS, word)
}

/// The text without the polite words before it, and whether there were any. Lower-case.
pub(super) fn without_politeness(text: &str) -> (&str, bool) {
    let mut rest = text.trim_start();
    let mut polite = false;
    while let Some(behind) = POLITE.iter().find_map(|words| behind_word(rest, words)) {
        rest = behind;
        polite = true;
    }
    (rest, polite)
}

fn behind_word<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(words)?;
    let ends = rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ',' | '!' | ':'));
    ends.then(|| rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`'))
}
