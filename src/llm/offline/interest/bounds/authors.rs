//! Whether a question asks who made commits, and how many each: "who committed most?", "who are the contributors?". Pure.

use super::{
    super::super::lexicon::{holds, number_of},
    super::lists::{BEGUN, CHANGED, WHO},
    COMMITS, Token, bare,
};

/// Takes what asks for authors, with how many of them are wanted.
pub(super) fn taken_authors(tokens: &mut Vec<Token<'_>>) -> Option<Option<u64>> {
    let words = bare(tokens);
    let is_it = |list: &str, word: &String| holds(list, word);
    let asks = match words.first() {
        Some(first) if holds(WHO, first) || first == "who's" => who_made_most(&words),
        Some(_) => lists_people(&words),
        None => false,
    };
    if !asks {
        return None;
    }
    let number = words
        .windows(2)
        .find(|pair| is_it(PEOPLE, &pair[1]) && number_of(&pair[0]).is_some_and(|it| it > 0));
    let number = number.map(|pair| pair[0].clone());
    let says_no_more = |word: &String| {
        [WHO, PEOPLE, AUTHOR, MADE, MOST, BESIDE, LISTING]
            .iter()
            .any(|list| is_it(list, word))
            || Some(word) == number.as_ref()
    };
    tokens.retain(|token| !says_no_more(&token.bare));
    Some(number.and_then(|number| number_of(&number)).map(Into::into))
}

/// "Who committed most?", "who has the most commits?", "who changed it most often?", "who contributed?": and not "who
/// committed most recently?".
fn who_made_most(words: &[String]) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let is_most = (1..words.len()).any(|at| {
        // "Plus" alone is no superlative.
        let is_whole = words[at] != "plus" || words[at - 1] == "le";
        holds(MOST, &words[at]) && is_whole && is_of_commits(&words[at], &words[at + 1..])
    });
    let is_done = [MADE, CHANGED, BEGUN].into_iter().any(any);
    let are_people = any(PEOPLE) && words.iter().all(|word| is_small(word));
    let contributed = words.get(1..3).is_some_and(|behind| {
        holds("contributed contributes", &behind[0]) && holds("to here", &behind[1])
    });
    let alone = words.len() == 2 && holds("contributed contributes", &words[1]);
    (is_most && is_done) || are_people || contributed || alone
}

/// Whether the most of all is that of commits, by what stands behind it: "the most commits", "most often", and not "the
/// most files".
fn is_of_commits(most: &str, behind: &[String]) -> bool {
    let Some((first, rest)) = behind.split_first() else {
        return true;
    };
    // "Le plus de commits" are the most commits, but "most of the commits" are not.
    let (noun, is_part) = match (most, first.as_str(), rest.first()) {
        ("plus", "de", Some(noun)) => (noun, true),
        _ => (first, false),
    };
    let is_counted = holds(COMMITS, noun) || holds(MADE, noun);
    // "Most changed file", but "am meisten geändert".
    let is_verb = most != "most" && holds(CHANGED, noun);
    let is_path = noun.contains(['/', '.']);
    is_counted || (!is_part && (noun.is_empty() || is_verb || is_path || holds(BEHIND, noun)))
}

/// "List the contributors", "top 3 committers", "commits by author".
fn lists_people(words: &[String]) -> bool {
    let is_small = words.iter().all(|word| is_small(word));
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let by_author = words.last_chunk().is_some_and(|[what, by, whom]| {
        let is_by = holds("by per pro par por", by);
        holds("commits commit", what) && is_by && holds(AUTHOR, whom)
    });
    by_author || (is_small && any(PEOPLE))
}

/// Whether the word says no more than that people are asked for.
fn is_small(word: &str) -> bool {
    let lists = [WHO, PEOPLE, MADE, MOST, BESIDE, LISTING];
    lists.into_iter().any(|list| holds(list, word)) || number_of(word).is_some()
}

/// Who makes commits.
const PEOPLE: &str = "\
    contributors contributor committers committer mitwirkenden mitwirkende beitragenden contributeurs contributrices \
    contribuidores colaboradores contribuyentes";
const AUTHOR: &str = "author authors contributor committer person autor auteur";
/// What they do.
const MADE: &str = "\
    committed commits commit made make contributed contributes contributions contribution committet beigetragen \
    contribué contribuyó contribuido hizo fait";
const MOST: &str = "most meisten plus más";
/// What may stand behind "most" that says nothing of what is counted.
const BEHIND: &str = "\
    a after all among at before by during ever for frequently from here in inside often on our over overall since \
    so the there this through to under until with within \
    am an auf aus bei beim bis dem den der hier häufigsten im ins seit vom von zu zum zur \
    au aux avant dans depuis en ici la le les sur souvent al aquí desde el hasta los las";
/// What may stand beside it.
const BESIDE: &str = "\
    are is was were has have did who's the a all of this to by per pro par por project repo repository codebase our main active often top here there so far \
    hat haben am sind die der das dieses projekt projekts sont les le la a ont ce projet souvent son los las el lo ha \
    han este proyecto";
const LISTING: &str = "\
    list show give name tell which what me us please zeig zeige nenne mir liste montre moi quels muestra dame cuáles";

#[cfg(test)]
mod tests {
    use super::super::Bounds;

    #[test]
    fn authors_are_asked_for_in_many_ways() {
        for (question, rest, number) in [
            ("who committed most?", "", None),
            ("Who has the most commits?", "", None),
            ("who made the most commits in 2025?", "", None),
            ("who are the contributors?", "", None),
            ("who contributed to this project?", "", None),
            ("list all contributors", "", None),
            ("top 3 contributors", "", Some(3)),
            ("contributors", "", None),
            ("commits by author", "", None),
            (
                "who changed src/lib.rs most often?",
                "changed src/lib.rs",
                None,
            ),
            ("who contributed to the parser?", "parser?", None),
            ("wer hat am meisten committet?", "", None),
            ("wer sind die Mitwirkenden?", "", None),
            ("qui a le plus contribué ?", "?", None),
            ("qui a fait le plus de commits ?", "de ?", None),
            ("who made the most changes?", "changes?", None),
            (
                "who changed most in src/lib.rs?",
                "changed in src/lib.rs?",
                None,
            ),
            ("wer hat am meisten geändert?", "geändert?", None),
            ("¿quién contribuyó más?", "", None),
        ] {
            let (bounds, left) = Bounds::taken_from(question);
            assert!(bounds.is_by_author, "{question}");
            assert_eq!((left.as_str(), bounds.most), (rest, number), "{question}");
        }
        for question in [
            "who committed most recently?",
            "who committed 1a2b3c4d?",
            "who uses Router most?",
            "who wrote most of the parser?",
            "where are the contributors loaded?",
            "how are contributors counted?",
            "which contributors does load_people return?",
            "who changed the cache?",
            "what do most commits change?",
            "commits by Ann",
            "who made the most popular feature?",
            "who changed the most files?",
            "who introduced the most bugs?",
            "who made most of the commits?",
            "who owns the most changed file?",
            "qui a fait le plus de fautes ?",
        ] {
            assert!(!Bounds::taken_from(question).0.is_by_author, "{question}");
        }
    }
}
