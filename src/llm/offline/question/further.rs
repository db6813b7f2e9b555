//! What is learnt of a question after it is read: what was told before it, and that somebody is no author. Pure.

use super::{
    super::{
        conversation::Conversation,
        interest::{Change, Interest},
        lexicon::{More, more_in},
    },
    Question, asked_in,
    going_on::{only_days, stands_alone},
    terms::{most_telling, terms_of},
};

/// Shortest hash that is told.
const SHORTEST_HASH: usize = 7;

impl Question {
    /// Goes on behind the commits that were told: "show me more", "and before that?".
    pub(in super::super) fn go_on_behind(&mut self, conversation: &Conversation<'_>) {
        let more = more_in(&conversation.question).filter(|more| *more != More::Whole);
        let Some((more, change)) = more.zip(self.change()) else {
            return;
        };
        if self.bounds.is_sample || self.bounds.commit.is_some() {
            return;
        }
        let earlier = &conversation.earlier;
        let Some(first) = earlier.iter().position(|text| stands_alone(text)) else {
            return;
        };
        // "And in February?" before it asked for the same of other days.
        let days = earlier[..first]
            .iter()
            .enumerate()
            .find_map(|(at, text)| Some((at, only_days(asked_in(text))?)));
        let begin = match days {
            Some((at, days)) => {
                let of_first = std::mem::take(&mut self.bounds);
                self.bounds = days.of_the_same(of_first);
                at
            }
            None => first,
        };
        let answers = conversation.answers.iter().take(begin + 1);
        let lines: Vec<&str> = answers.flat_map(|answer| answer.text.lines()).collect();
        self.told_before = lines.iter().filter_map(|line| hash_in(line)).collect();
        let listed = lines.iter().filter(|line| line.starts_with("- "));
        let told = match self.bounds.one {
            Some(_) => self.told_before.len(),
            None => listed.filter_map(|line| hash_in(line)).count(),
        };
        // The oldest of all come in another order.
        let told = match change == Change::First && self.terms.is_empty() {
            true => 0,
            false => told as u64,
        };
        self.bounds.behind(told, more == More::Before);
    }

    /// Takes for a word what was taken for an author, where nobody of that name made a commit.
    pub(in super::super) fn take_author_for_a_word(&mut self, lacks_author: bool) {
        if !(lacks_author && self.bounds.may_be_no_author) {
            return;
        }
        if let Some(name) = self.bounds.author.take() {
            let mut terms = std::mem::take(&mut self.terms);
            for term in terms_of([&*name]) {
                if !terms.iter().any(|known| known.same(&term)) {
                    terms.push(term);
                }
            }
            self.terms = most_telling(terms);
            self.not_author = Some(name);
        }
    }

    const fn change(&self) -> Option<Change> {
        match self.interest {
            Interest::History(change) => Some(change),
            _ => None,
        }
    }
}

/// The hash of a commit that an answer tells: it stands before its day.
fn hash_in(line: &str) -> Option<String> {
    let mut parts = line.split('`').skip(1).step_by(2);
    let mut behind = line.split('`').skip(2).step_by(2);
    let is_hash = |text: &str| {
        text.len() >= SHORTEST_HASH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let told = |text: &str| {
        let day = text.strip_prefix(" of ").unwrap_or_default();
        day.starts_with(|c: char| c.is_ascii_digit())
    };
    let (hash, _) = parts
        .by_ref()
        .zip(behind.by_ref())
        .find(|(hash, behind)| is_hash(hash) && told(behind))?;
    Some(hash.to_owned())
}
