//! What is learnt of a question after it is read: what was told before it, that somebody is no author, and that
//! something is no commit. Pure.

use super::{
    super::{
        conversation::Conversation,
        evidence::is_short_hash,
        interest::{Bounds, Change, Interest},
        lexicon::{More, holds, more_in},
        words::words,
    },
    Question, asked_in,
    going_on::{only_days, stands_alone},
    terms::{most_telling, terms_of},
};

impl Question {
    /// Goes on with the days that were asked for last, and tells who made those commits: "by whom?" behind "and in
    /// 2025?".
    pub(in super::super) fn go_on_in_days(&mut self, conversation: &Conversation<'_>) {
        let asked = &conversation.question;
        let is_more = more_in(asked).is_some();
        if !self.interest.is_of_history() || is_more || stands_alone(asked) {
            return;
        }
        let earlier = &conversation.earlier;
        let Some(first) = earlier.iter().position(|text| stands_alone(text)) else {
            return;
        };
        if only_days(asked_in(asked)).is_none()
            && let Some((_, days)) = days_since(&earlier[..first])
        {
            let of_first = std::mem::take(&mut self.bounds);
            self.bounds = days.of_the_same(of_first);
        }
        let bounds = &mut self.bounds;
        bounds.is_by_author |= bounds.tells_several() && asks_by_whom(asked);
    }

    /// Goes on behind the commits that were told: "show me more", "and before that?".
    pub(in super::super) fn go_on_behind(&mut self, conversation: &Conversation<'_>) {
        let more = more_in(&conversation.question).filter(|more| *more != More::Whole);
        let Some((more, _)) = more.zip(self.change()) else {
            return;
        };
        if self.bounds.is_sample || self.bounds.commit.is_some() {
            return;
        }
        let earlier = &conversation.earlier;
        let Some(first) = earlier.iter().position(|text| stands_alone(text)) else {
            return;
        };
        let begin = match days_since(&earlier[..first]) {
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
        let is_one = self.bounds.one.is_some();
        let told_at = |at: usize| {
            let answer = conversation.answers.get(at);
            answer.map_or(0, |answer| commits_in(&answer.text, is_one))
        };
        // How far those in between have gone on already.
        let mut told = told_at(begin);
        for at in (0..begin).rev() {
            if more_in(&earlier[at]) == Some(More::Before) && self.end_before() {
                told = 0;
            }
            told += told_at(at);
        }
        if more == More::Before && self.end_before() {
            told = 0;
        }
        // The oldest of all come in another order.
        if self.change() == Some(Change::First) && self.terms.is_empty() {
            told = 0;
        }
        self.bounds.behind(told);
    }

    /// Asks for the last ones before the days that it asked for, if those have a beginning.
    fn end_before(&mut self) -> bool {
        let has_begin = self.bounds.end_before();
        if has_begin {
            self.interest = Interest::History(Change::Latest);
            self.bounds.one = self.bounds.one.map(|_| Change::Latest);
        }
        has_begin
    }

    /// Looks for it in the files, where no commit has a hash that it may be.
    pub(in super::super) fn take_commit_for_a_word(&mut self, is_missing: bool) {
        if !(is_missing && self.bounds.may_be_no_commit) {
            return;
        }
        self.not_commit = self.bounds.commit.take();
        self.bounds = Bounds::default();
        self.interest = Interest::Places;
        self.terms = terms_of([&*self.plain]);
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

/// The latest days that the same was asked of: "and in February?", with how many questions ago that was.
fn days_since(earlier: &[String]) -> Option<(usize, Bounds)> {
    let mut earlier = earlier.iter().enumerate();
    earlier.find_map(|(at, text)| Some((at, only_days(asked_in(text))?)))
}

/// Whether nothing but who did it is asked: "by whom?", "and who made them?".
fn asks_by_whom(text: &str) -> bool {
    let lower = text.to_lowercase();
    let said: Vec<&str> = words(&lower).filter(|word| !word.is_empty()).collect();
    let is_of_it = |word: &&str| holds(WHOM, word) || holds(BESIDE_WHOM, word);
    said.iter().any(|word| holds(WHOM, word)) && said.iter().all(is_of_it)
}

const WHOM: &str = "whom who whose wem wer qui quién quiénes";
const BESIDE_WHOM: &str = "\
    and by from did was were is are made it that this them these those commits changes all und von hat das die war gemacht et \
    par a fait est y por fue lo hizo los";

/// How many commits an answer tells; of several, those that it lists.
fn commits_in(answer: &str, is_one: bool) -> u64 {
    let told = answer
        .lines()
        .filter(|line| is_one || line.starts_with("- "));
    told.filter_map(hash_in).count() as u64
}

/// The hash of a commit that an answer tells: it stands before its day.
fn hash_in(line: &str) -> Option<String> {
    let mut parts = line.split('`').skip(1).step_by(2);
    let mut behind = line.split('`').skip(2).step_by(2);
    let told = |text: &str| {
        let day = text.strip_prefix(" of ").unwrap_or_default();
        day.starts_with(|c: char| c.is_ascii_digit())
    };
    let (hash, _) = parts
        .by_ref()
        .zip(behind.by_ref())
        .find(|(hash, behind)| is_short_hash(hash) && told(behind))?;
    Some(hash.to_owned())
}
