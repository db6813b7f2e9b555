//! Which commits a question asks for: how many of them, whose, and the first or the last. Pure.

use super::{
    super::super::lexicon::{holds, is_stop, number_of},
    COMMITS, Change, LAST, Token, bare, said_first,
};

/// Takes "how many" of "how many commits".
pub(super) fn taken_count(tokens: &mut Vec<Token<'_>>) -> bool {
    let words = bare(tokens);
    let mut places = 0..words.len();
    let counted = places.find_map(|at| Some((at, said_first(&words[at..], HOW_MANY)?)));
    let counted = counted.filter(|(at, said)| are_there(&words[at + said..]));
    if let Some((at, said)) = counted {
        tokens.drain(at..at + said - 1);
    }
    counted.is_some()
}

/// Whether commits that are there are counted, by what is said behind them, and not those that something
/// shows or may have.
fn are_there(behind: &[String]) -> bool {
    let any = |list: &str| behind.iter().any(|word| holds(list, word));
    let is_asked = behind.first().is_none_or(|word| !holds(DOING, word));
    !any(SHOWN) && (is_asked || any(HAVING_COMMITS))
}

/// Takes the number out of "the last 3 commits".
pub(super) fn taken_number(tokens: &mut Vec<Token<'_>>) -> Option<u64> {
    let noun = tokens
        .iter()
        .position(|token| holds(COMMITS, &token.bare))?;
    let before = noun.saturating_sub(MOST_BEFORE)..noun;
    let is_of_last = tokens[before.clone()]
        .iter()
        .any(|token| holds(LAST, &token.bare));
    let at = before
        .rev()
        .find(|at| number_of(&tokens[*at].bare).is_some())?;
    let number = number_of(&tokens[at].bare).filter(|number| is_of_last && *number > 0)?;
    tokens.remove(at);
    Some(number.into())
}

/// Whether the last commits are looked through for something: "which of the last 20 commits touched it?", and
/// not "the last 20 commits to it".
pub(super) fn is_sample(words: &[String]) -> bool {
    let Some(noun) = words.iter().position(|word| holds(COMMITS, word)) else {
        return false;
    };
    let is_of_them =
        |word: &&String| holds(LAST, word) || number_of(word).is_some() || holds("most", word);
    let them = words[..noun].iter().rev().take_while(is_of_them).count();
    let mut before = words[..noun - them].iter().rev().map(String::as_str);
    let word = before.next().unwrap_or_default();
    let (article, word) = match holds(THE, word) {
        true => (word, before.next().unwrap_or_default()),
        false => ("", word),
    };
    let asks = |word: &str| holds(WHICH_OF, word);
    holds(WITHIN, word)
        || (holds("of von de unter among", word) && before.next().is_some_and(asks))
        || (holds("der des", article) && asks(word))
        || (holds("did do does have has haben ont han", word) && before.next().is_none())
}

/// Which single commit is asked for: "the first commit of 2024".
pub(super) fn one_of_them(words: &[String]) -> Option<Change> {
    words.windows(2).find_map(|pair| match pair {
        [which, noun] if holds(ONE_COMMIT, noun) && holds(FIRST, which) => Some(Change::First),
        [which, noun] if holds(ONE_COMMIT, noun) && holds(LATEST, which) => Some(Change::Latest),
        _ => None,
    })
}

/// Whether it asks what a single commit changed, and not when it was made or by whom: "what did the last commit
/// change?".
pub(super) fn asks_what_it_changed(words: &[String]) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let is_commit = words
        .windows(2)
        .any(|pair| pair[1] == "commit" && one_of_them(pair).is_some());
    let is_first = |word: &String| holds(SHOWING, word);
    let is_asked = (any(WHAT) && any(CHANGING)) || words.first().is_some_and(is_first);
    is_commit && is_asked && !any(BESIDE_IT)
}

/// Takes the author of "commits by Ann", "Ann's commits" and "what did Ann change?", with whether it is one for
/// certain.
pub(super) fn taken_author(tokens: &mut Vec<Token<'_>>, has_days: bool) -> Option<(String, bool)> {
    let of_commits = tokens.iter().any(|token| holds(COMMITS, &token.bare));
    let certain = |at: usize| behind_by(tokens, at).or_else(|| owner(tokens, at));
    let is_of_changes = of_commits || has_days;
    // What changed in a version, logs of changes tell, and the name is rather that of the project.
    let is_of_version = tokens.iter().any(|token| is_version(&token.bare));
    let asked = |at: usize| match is_of_changes {
        true => doer(tokens, at),
        false if is_of_version => None,
        false => changer(tokens, at),
    };
    let found = (0..tokens.len()).find_map(|at| {
        let named = certain(at).filter(|_| is_of_changes);
        let named = named.map(|named| (named, true));
        named.or_else(|| asked(at).map(|named| (named, of_commits)))
    });
    let ((taken, name), is_certain) = found?;
    tokens.drain(taken);
    Some((name, is_certain))
}

/// `1.1`, `v2.0.3`.
fn is_version(word: &str) -> bool {
    let numbers = word.strip_prefix('v').unwrap_or(word);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.contains('.') && numbers.split('.').all(is_number)
}

/// "What did Ann change?", and nothing else that people do.
fn changer(tokens: &[Token<'_>], at: usize) -> Option<Named> {
    let word = |at: usize| tokens.get(at).map_or("", |token| &*token.bare);
    let (range, name) = doer(tokens, at).filter(|_| at == 1 && holds("what was", word(0)))?;
    holds(CHANGES, word(range.end)).then_some((range, name))
}

/// Which words say it, and a name.
type Named = (std::ops::Range<usize>, String);

/// "commits by Ann", "changed by Ann Lee".
fn behind_by(tokens: &[Token<'_>], at: usize) -> Option<Named> {
    let [before, by, ..] = tokens.get(at..)? else {
        return None;
    };
    // "By the person Ann" is by Ann.
    let word = |at: usize| tokens.get(at).map_or("", |token| &*token.bare);
    let noun = at + 2 + usize::from(holds("the der dem le la el", word(at + 2)));
    let begin = match holds(CALLED, word(noun)) {
        true => noun + 1,
        false => at + 2,
    };
    let first = tokens.get(begin)?;
    let is_made = |token: &Token<'_>| holds(COMMITS, &token.bare) || holds(MADE, &token.bare);
    let is_by = holds("by par por", &by.bare);
    let is_known = is_by && !is_stop(&first.bare) && !holds(NO_AUTHORS, &first.bare);
    let is_plain = holds(COMMITS, &before.bare) && first.bare.chars().all(char::is_alphanumeric);
    let is_named = match is_by {
        true => tokens[..=at].iter().any(is_made),
        false => is_made(before) && holds("from of von de", &by.bare),
    };
    let is_author = (is_named && is_capital(first)) || (is_known && is_plain);
    if !is_author {
        return None;
    }
    let words = names_at(tokens, begin).max(1);
    Some((at + 1..begin + words, named(&tokens[begin..][..words])))
}

/// "Ann's last commits".
fn owner(tokens: &[Token<'_>], at: usize) -> Option<Named> {
    let token = &tokens[at];
    let behind = tokens[at + 1..].iter().take(MOST_BEFORE + 1);
    let is_of_commits = behind
        .map(|token| &token.bare)
        .any(|word| holds(COMMITS, word));
    let name = bare_name(token.word);
    let name = name
        .strip_suffix("'s")
        .or_else(|| name.strip_suffix("’s"))?;
    (is_of_commits && is_capital(token)).then(|| (at..at + 1, name.to_owned()))
}

/// "did Ann change", "commits did ann make", "a fait Ann".
fn doer(tokens: &[Token<'_>], at: usize) -> Option<Named> {
    let word = |at: usize| tokens.get(at).map_or("", |token| &*token.bare);
    let after_commits = at > 0 && holds(COMMITS, word(at - 1)) && word(at) == "did";
    let words = match names_at(tokens, at + 1) {
        0 if after_commits && !is_stop(word(at + 1)) && !word(at + 1).is_empty() => 1,
        words => words,
    };
    let is_done = holds("did has hat have", word(at)) && holds(DOES, word(at + 1 + words));
    let is_done_by = holds("fait hizo", word(at));
    ((is_done || is_done_by) && words > 0).then(|| {
        let of = at + 1..at + 1 + words;
        (of.clone(), named(&tokens[of]))
    })
}

/// How many words from here on are spelt as names of people are.
fn names_at(tokens: &[Token<'_>], at: usize) -> usize {
    let rest = tokens.get(at..).unwrap_or_default();
    let names = rest.iter().take_while(|token| is_capital(token)).count();
    // What ends a part of a sentence ends a name.
    let ends = rest
        .iter()
        .take(names)
        .position(|token| token.word.ends_with([',', ';', '?', '.']));
    ends.map_or(names, |end| end + 1).min(MOST_NAMES)
}

fn is_capital(token: &Token<'_>) -> bool {
    let name = bare_name(token.word);
    let is_of_code = name.contains([':', '_', '/', '(', '<']);
    name.starts_with(char::is_uppercase) && !is_of_code && !holds(PRONOUNS, &token.bare)
}

fn bare_name(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn named(tokens: &[Token<'_>]) -> String {
    let names: Vec<&str> = tokens.iter().map(|token| bare_name(token.word)).collect();
    names.join(" ")
}

/// So near before commits their number stands.
const MOST_BEFORE: usize = 3;

/// What asks for the number of commits, with those as its last word.
const HOW_MANY: &str = "\
    how many commits | number of commits | count of commits | count the commits | wie viele commits | wieviele \
    commits | anzahl der commits | combien de commits | nombre de commits | cuántos commits | número de commits";

/// What behind commits tells that they are not those of the history, and what does so unless it is the
/// project that has them.
const SHOWN: &str = "\
    can could may might must should will would allowed shown returned displayed listed per returns shows lists kann \
    können darf dürfen soll sollen erlaubt angezeigt gezeigt pro liefert zeigt peut peuvent affichés puede pueden \
    muestra muestran";
const DOING: &str = "do does";
const HAVING_COMMITS: &str = "we i you they project repo repository codebase";

const THE: &str = "the a our my der den dem des die les los las";
/// What the last commits are looked through by.
const WHICH_OF: &str = "\
    which any some many none all one each what welche welcher welches viele lesquels lequel combien cuáles cuál cuántos \
    alguno";
const WITHIN: &str = "in within among across over dans en";

const ONE_COMMIT: &str = "commit change änderung changement cambio";
const FIRST: &str = "first earliest oldest erste erster ersten erstes premier primer primero";
const LATEST: &str = "last latest newest recent letzte letzter letzten neueste dernier último";

/// What was made by somebody.
const MADE: &str = "\
    made done committed changed added removed deleted fixed renamed authored written pushed gemacht geändert faits \
    hechos";
/// What somebody did.
const DOES: &str = "\
    make made do done change changed add added commit committed fix fixed remove removed delete deleted rename renamed \
    write written push pushed gemacht geändert hinzugefügt entfernt behoben gelöscht";
/// What somebody did to the project, whatever else is said of it.
const CHANGES: &str =
    "change changed commit fix remove delete rename geändert entfernt behoben gelöscht";

/// What asks for the contents of a commit, and by which words.
const WHAT: &str = "\
    what which was welche que quoi quels quelles qu'est-ce qu'a qué cuáles tell describe explain";
const CHANGING: &str = "\
    change changes changed do done did contain contains touch touched modify modified add added remove removed happened \
    geändert ändert änderte macht gemacht enthält changé modifié fait contient cambió cambiado modificó hizo contiene";
const SHOWING: &str = "\
    show describe explain summarize summarise zeig zeige erkläre montre montre-moi explique muestra muéstrame explica";
/// What asks for something beside it.
const BESIDE_IT: &str = "\
    who when why since between before after until than wer wann warum seit zwischen vor nach bis quand pourquoi depuis \
    entre avant après quién cuándo desde antes después";

/// What is no name, and what commits are told apart by besides their authors.
const PRONOUNS: &str =
    "i you he she it we they who ich du er sie es wir ihr je tu il elle nous vous ils yo tú";
const CALLED: &str = "author person user developer contributor committer autor auteur";
const NO_AUTHORS: &str = "\
    day days week weeks month months year years date author authors file files folder path hash name type version size \
    person people count number email id default hand mistake accident tag branch user users default which whom what";

/// Most words of a name.
const MOST_NAMES: usize = 3;
