//! What of the uses of a name is told first, and what is told beside: of a name in something, what may be used of
//! something else is not told as certain. Pure.

use super::{
    super::super::{
        protocol::inert,
        uses::{Spot, Uses},
    },
    Case, and_others, listed, place,
};

/// The uses of a name, and how they are told.
pub(super) struct Told<'a> {
    pub(super) uses: Uses<'a>,
    /// The name alone, and with what it lies in, as they may be shown.
    name: String,
    shown: String,
    /// What it is to lie in.
    owner: Option<String>,
}

/// None if no use was asked for, or nothing has the name.
pub(super) fn of<'a>(case: &Case<'a>) -> Option<Told<'a>> {
    let name = case.question.used_name()?;
    let of = case.question.used_of();
    let owner = of.as_ref().map(|of| &*of.owner);
    let told = Told {
        uses: Uses::of_owned(case.evidence, name, owner),
        name: inert(name),
        shown: of
            .as_ref()
            .map_or_else(|| inert(name), |of| inert(&of.shown)),
        owner: owner.map(inert),
    };
    (!told.spots().is_empty()).then_some(told)
}

impl<'a> Told<'a> {
    /// Those that are quoted.
    pub(super) fn spots(&self) -> &[Spot<'a>] {
        let uses = &self.uses;
        let all = [
            &uses.used,
            &uses.unsure,
            &uses.others,
            &uses.mentioned,
            &uses.defined,
        ];
        let mut told = all.into_iter().filter(|spots| !spots.is_empty());
        told.next().map_or(&[], |spots| spots)
    }

    pub(super) fn lead(&self) -> String {
        let (uses, name, shown) = (&self.uses, &self.name, &self.shown);
        let spots = self.spots();
        let Some(first) = spots.first() else {
            return String::new();
        };
        let (first, others) = (place(*first), and_others(spots.len(), uses.is_cut()));
        let owner = self.owner.as_deref().unwrap_or_default();
        if !uses.used.is_empty() {
            return format!("`{shown}` is used in {first}{others}.");
        }
        if !uses.unsure.is_empty() {
            return format!(
                "`{name}` is used in {first}{others}, but I do not know the types of receivers: I cannot tell which of \
                 them are of `{owner}`."
            );
        }
        if !uses.others.is_empty() {
            return format!(
                "I saw no use of `{shown}`: where `{name}` is used, it is of something else, as in {first}{others}."
            );
        }
        let verb = match uses.mentioned.is_empty() {
            false => "mentioned",
            true => "defined",
        };
        match uses.is_cut() {
            _ if uses.mentioned.is_empty() && uses.is_perhaps_of_another => format!(
                "I saw no use of `{shown}`. `{name}` is defined in {first}{others}, but I cannot tell whether that is of \
                 `{owner}`."
            ),
            false => format!("`{name}` is only {verb} in {first}{others}."),
            true => format!(
                "I saw no use of `{shown}`, but not all lines that have it. It is {verb} in {first}{others}."
            ),
        }
    }

    /// What may be a use, and what was left out, beside those that are surely one.
    pub(super) fn beside(&self) -> Vec<String> {
        let (uses, name) = (&self.uses, &self.name);
        let owner = self.owner.as_deref().unwrap_or_default();
        let perhaps = (!uses.used.is_empty() && !uses.unsure.is_empty()).then(|| {
            format!(
                "Perhaps also in {}: I do not know the types of receivers, so that may be `{name}` of something other than \
                 `{owner}`.",
                listed(&uses.unsure)
            )
        });
        let is_other = !uses.used.is_empty() || !uses.unsure.is_empty();
        let left_out = uses.others.first().filter(|_| is_other).map(|first| {
            let lines = match uses.others.len() {
                1 => "one line that uses".to_owned(),
                many => format!("{many} lines that use"),
            };
            format!(
                "Left out: {lines} `{name}` of something else, as {}.",
                place(*first)
            )
        });
        perhaps.into_iter().chain(left_out).collect()
    }

    /// What is not certain, or was not found.
    pub(super) fn missing(&self) -> Option<String> {
        let uses = &self.uses;
        match (uses.used.is_empty(), uses.unsure.len()) {
            (false, 0) => None,
            (true, 0) => Some(format!("a place that uses `{}`", self.shown)),
            (_, count) => Some(format!(
                "the types of receivers: {count} of these may use `{}` of something other than `{}`",
                self.name,
                self.owner.as_deref().unwrap_or_default()
            )),
        }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}
