//! What people order to be written that is no part of a project.
//!
//! Data and look-ups. All entries are lower-case.

use super::{holds, without_politeness};

/// Most words of an order up to what is to be written.
const MOST_BEFORE: usize = 5;

const PROSE: &str = "\
    haiku haikus poem poems sonnet limerick song songs lyrics story stories rhyme essay tale joke novel tweet toast \
    speech gedicht gedichte lied geschichte witz aufsatz rede poème poésie chanson histoire blague poema canción cuento \
    historia chiste";
/// What is done with it: "add a toast on failure" is about the project.
const TO_WRITE: &str = "\
    write compose tell draft sing schreib schreibe verfasse dichte erzähl erzähle écris écrivez rédige compose raconte \
    racontez escribe escribid redacta compón cuenta cuéntame";
/// What tells more of it: "a story parser" is another thing.
const OF_PROSE: &str = "\
    about on of for in to with that which like and über von für auf im in mit sur de pour dans à en avec qui sobre para \
    con que";

/// Whether an order is to write something like that: "write a haiku about spiders". Lower-case.
pub(in super::super) fn is_prose(order: &str) -> bool {
    let (order, _) = without_politeness(order);
    let words = order.split_whitespace();
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words: Vec<&str> = words.collect();
    if !words.first().is_some_and(|word| holds(TO_WRITE, word)) {
        return false;
    }
    let mut first = words.iter().take(MOST_BEFORE);
    let piece = first.position(|word| holds(PROSE, word));
    let behind = piece.map(|at| words.get(at + 1).copied().unwrap_or(""));
    behind.is_some_and(|behind| behind.is_empty() || holds(OF_PROSE, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_part_of_a_project_is_told() {
        for (text, is) in [
            ("write a haiku about spiders", true),
            ("please write me a short poem", true),
            ("schreibe ein gedicht über den parser", true),
            ("écris une blague", true),
            ("escribe un poema sobre el parser", true),
            ("tell me a joke", true),
            ("add a toast on failure", false),
            ("add a story for the login button", false),
            ("write a story parser", false),
            ("write a test for the poem", false),
            ("write a note about caching", false),
            ("", false),
        ] {
            assert_eq!(is_prose(text), is, "{text}");
        }
    }
}
