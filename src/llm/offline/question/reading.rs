//! How a question is read: what it says by itself, and what of the one before it that goes on with. Pure.

use super::{
    super::{
        changelog::{Wanted, of_other_version},
        interest::{Bounds, Fact, Interest, Listing, asks_what_it_is, says_no_more_of_commits},
        kin,
        lexicon::{More, asks_how, more_in},
        term::{Term, TermKind},
    },
    Asked, Kind, Question, asked_in,
    aspect::{Aspect, subject},
    beginning,
    going_on::{Pointing, only_days, only_weak},
    is_said, kind_of,
    named::as_names,
    of_project::interest_of,
    presence::Presence,
    qualified::Qualified,
    shown::Shown,
    terms::{most_telling, terms_of, weak_terms},
};

/// What a question says by itself.
struct Own<'a> {
    kind: Kind,
    /// What is looked at of its text, and of what was added to it.
    said: Vec<&'a str>,
    plain: String,
    interest: Interest,
    bounds: Bounds,
    /// Without the words of its bounds.
    unbound: String,
    pointing: Pointing,
    /// Whether it asks who implements or extends something.
    asks_kin: bool,
    /// How more is asked for of what was shown before.
    more: Option<More>,
    terms: Vec<Term>,
}

/// What of the question before it a question goes on with.
enum GoesOn<'a> {
    Not,
    /// It says more of the same: "and where is it tested?".
    Adds(&'a str),
    /// It asks the same, perhaps of other days.
    Same(&'a str, Option<Bounds>),
}

/// What is to be looked up.
struct Sought {
    terms: Vec<Term>,
    plain: String,
    interest: Interest,
    bounds: Bounds,
}

impl Question {
    /// Reads a question with what was added to it while it was worked on. A question without any
    /// term of its own ("and the second one?") is about the one before.
    pub(in super::super) fn read(text: &str, added: &[&str], previous: Option<&str>) -> Self {
        let previous = previous.map(asked_in);
        let of_other = previous.and_then(|previous| of_other_version(asked_in(text), previous));
        let text = of_other
            .as_deref()
            .filter(|_| added.is_empty())
            .unwrap_or(text);
        let own = Own::of(text, added, previous);
        let presence = own.presence(previous);
        let shown = own.shown(previous);
        let of_log = Wanted::of(&own.plain)
            .filter(|wanted| own.kind == Kind::Lookup && wanted.fits(own.interest))
            .filter(|_| presence.is_none());
        let subject = match own.interest {
            Interest::Listed(_) => Listing::of(&own.unbound).map(|(_, subject)| subject),
            _ => None,
        };
        let aspect = own.aspect(previous);
        let sought = match &aspect {
            Some((aspect, name)) => own.of_name(*aspect, name),
            None => own.sought(previous),
        };
        let interest = match presence.is_some() || shown.is_some() {
            true => Interest::Places,
            false => sought.interest,
        };
        let own_interest = own.interest;
        let is_of_kin = own.asks_kin
            || (own_interest == Interest::Places
                && interest == Interest::Uses
                && kin::asks(&sought.plain));
        let is_of_changes = Asked::read(beginning(&sought.plain)).drift.change;
        let terms = sought.terms.into_iter();
        let terms = terms.filter(|term| !is_of_kin || !kin::is_said(term));
        let as_meant = |term: Term| match is_of_changes && interest == Interest::Places {
            true => term.not_as_place(),
            false => term,
        };
        let mut terms: Vec<Term> = terms.map(as_meant).collect();
        as_names(&sought.plain, interest, &mut terms);
        let is_plain = own.kind == Kind::Lookup && of_log.is_none() && !is_of_changes;
        let qualified = Qualified::of(&sought.plain, interest, &terms).filter(|_| is_plain);
        if let Some(qualified) = &qualified {
            qualified.put_among(&mut terms);
        }
        // All of a definition shows them.
        let is_of_fields = matches!(aspect, Some((Aspect::Fields, _)));
        let question = Self {
            kind: own.kind,
            terms,
            plain: sought.plain,
            interest,
            bounds: sought.bounds,
            subject: subject.unwrap_or_default(),
            is_of_changes,
            is_further: own.more == Some(More::Further),
            is_whole: own.more == Some(More::Whole) || is_of_fields,
            is_explained: own.more == Some(More::Whole) && asks_how(text),
            aspect: aspect.map(|(aspect, _)| aspect),
            is_of_kin,
            not_author: None,
            not_commit: None,
            told_before: Vec::new(),
            of_log,
            qualified,
            presence,
            shown,
        };
        question.of_uses_only_with_a_name()
    }

    /// Without a name, or for what is no type ("what implements caching?"), no uses are asked for.
    fn of_uses_only_with_a_name(mut self) -> Self {
        let is_meant = |name: &str| !self.is_of_kin || kin::is_type(name);
        if self.interest == Interest::Uses && !self.used_name().is_some_and(is_meant) {
            self.interest = Interest::Places;
            self.is_of_kin = false;
        }
        self
    }
}

impl<'a> Own<'a> {
    fn of(text: &'a str, added: &[&'a str], previous: Option<&str>) -> Self {
        let kind = match (kind_of(text), added.last()) {
            (kind, Some(latest)) if kind.is_of_talk() => kind_of(latest),
            (kind, _) => kind,
        };
        let said = [text].into_iter().chain(added.iter().copied());
        let said: Vec<&str> = said.map(asked_in).collect();
        let plain = said.join(" ");
        let interest = match interest_of(kind, &plain) {
            Interest::Places if previous.is_none() && asks_what_it_is(&plain) => Interest::Overview,
            own => own,
        };
        let (bounds, unbound) = match interest.is_of_days(&plain) {
            true => Bounds::taken_from(&plain),
            false => (Bounds::default(), plain.clone()),
        };
        let more = previous.and(more_in(text)).filter(|_| added.is_empty());
        let own = Self {
            kind,
            asks_kin: interest == Interest::Uses && kin::asks(&plain),
            pointing: Pointing::of(&unbound),
            terms: Vec::new(),
            said,
            plain,
            interest,
            bounds,
            unbound,
            more,
        };
        Self {
            terms: own.own_terms(),
            ..own
        }
    }

    fn own_terms(&self) -> Vec<Term> {
        match self.kind {
            Kind::Chat(_) | Kind::Recall(_) => Vec::new(),
            _ if self.more.is_some() => Vec::new(),
            Kind::Deed | Kind::Lookup if self.bounds.lists() => {
                self.besides(self.interest, terms_of([&*self.unbound]))
            }
            Kind::Deed | Kind::Lookup => self.besides(self.interest, terms_of(self.said())),
        }
    }

    fn said(&self) -> impl Iterator<Item = &'a str> {
        self.said.iter().copied()
    }

    /// Terms without those that say only what is asked of them: "who calls it?" names nothing.
    fn besides(&self, interest: Interest, mut terms: Vec<Term>) -> Vec<Term> {
        terms.retain(|term| {
            let is_of_kin = self.asks_kin && kin::is_said(term);
            let is_use = self.pointing.is_use(self.interest, term);
            let is_of_commit = self.bounds.is_detailed && is_commit(term);
            let is_of_commits =
                self.bounds.has_commits() && says_no_more_of_commits(&term.shown.to_lowercase());
            !(is_said(interest, term) || is_use || is_of_kin || is_of_commit || is_of_commits)
        });
        terms
    }

    /// Which file is asked for, if it is whether that is there; or another one after such a question, or all of it.
    fn presence(&self, previous: Option<&str>) -> Option<Presence> {
        let before = || previous.and_then(Presence::asked);
        let again = || match self.more {
            Some(More::Whole) => before(),
            Some(More::Further | More::Before) => None,
            None => before().and_then(|_| Presence::asked_too(&self.plain)),
        };
        let is_lookup = self.kind == Kind::Lookup;
        is_lookup
            .then(|| Presence::asked(&self.plain).or_else(again))
            .flatten()
    }

    /// Which file or folder is to be shown; or another one after such a question, or more of it.
    fn shown(&self, previous: Option<&str>) -> Option<Shown> {
        let before = || previous.and_then(Shown::asked);
        let again = || match self.more {
            Some(More::Whole | More::Further) => before(),
            Some(More::Before) => None,
            None => before().and_then(|_| Shown::asked_too(&self.plain)),
        };
        let is_free = matches!(
            self.interest,
            Interest::Places | Interest::Facts(Fact::Size)
        );
        let is_lookup = self.kind == Kind::Lookup && is_free;
        is_lookup
            .then(|| Shown::asked(&self.plain).or_else(again))
            .flatten()
    }

    fn goes_on<'b>(&self, previous: Option<&'b str>) -> GoesOn<'b> {
        let Some(previous) = previous else {
            return GoesOn::Not;
        };
        // "And last week?" asks for the same of other days.
        let is_of_past =
            self.kind == Kind::Lookup && interest_of(self.kind, previous).is_of_history();
        let other_days = match is_of_past {
            true => only_days(&self.plain),
            false => None,
        };
        if other_days.is_some() || (self.is_bare() && self.takes_subject()) {
            return GoesOn::Same(previous, other_days);
        }
        match self.interest == Interest::Places && self.pointing.adds(&self.terms) {
            true => GoesOn::Adds(previous),
            false => GoesOn::Not,
        }
    }

    /// Whether it names nothing by itself.
    fn is_bare(&self) -> bool {
        self.terms.is_empty() || (self.pointing.perhaps && only_weak(self.said()))
    }

    /// Whether what it asks is asked of something, and not of the project as a whole.
    fn takes_subject(&self) -> bool {
        match self.interest {
            Interest::Overview | Interest::Facts(_) | Interest::HowTo(_) | Interest::Listed(_) => {
                false
            }
            // What was decided on certain days is all of it.
            Interest::Settled if self.bounds.has_days() => false,
            // "The last commits" are those of all; "who wrote it" is about what was asked before.
            Interest::History(_) => self.pointing.perhaps,
            Interest::Places | Interest::Uses | Interest::Notes | Interest::Settled => {
                !self.kind.is_of_talk()
            }
        }
    }

    fn sought(&self, previous: Option<&str>) -> Sought {
        match self.goes_on(previous) {
            GoesOn::Not => Sought {
                terms: self.terms.clone(),
                plain: self.plain.clone(),
                interest: self.interest,
                bounds: self.bounds.clone(),
            },
            GoesOn::Adds(previous) => {
                let mut terms = terms_of([previous]);
                terms.extend(self.terms.iter().cloned());
                Sought {
                    terms: most_telling(terms),
                    plain: format!("{previous} {}", self.plain),
                    interest: self.interest,
                    bounds: self.bounds.clone(),
                }
            }
            GoesOn::Same(previous, other_days) => self.of_the_same(previous, other_days),
        }
    }

    /// What of a name it asks for, where that is no place of its own.
    fn aspect(&self, previous: Option<&str>) -> Option<(Aspect, String)> {
        let is_plain = self.kind == Kind::Lookup
            && matches!(self.interest, Interest::Places | Interest::Uses)
            && self.more.is_none()
            && !self.asks_kin;
        Aspect::of(&self.plain, previous).filter(|_| is_plain)
    }

    /// A name as that is looked for: tests use it, and what it has stands where it is defined.
    fn of_name(&self, aspect: Aspect, name: &str) -> Sought {
        let (interest, plain) = match aspect {
            Aspect::Tests => (Interest::Uses, format!("tests of {name}")),
            Aspect::Methods | Aspect::Members | Aspect::Fields => {
                (Interest::Places, format!("where is {name} defined?"))
            }
        };
        let parts = name.split([':', '.']).filter(|part| !part.is_empty());
        Sought {
            terms: parts.map(|part| Term::new(TermKind::Name, part)).collect(),
            plain,
            interest,
            bounds: Bounds::default(),
        }
    }

    fn of_the_same(&self, previous: &str, other_days: Option<Bounds>) -> Sought {
        let interest = match self.interest {
            Interest::Places => interest_of(self.kind, previous),
            of_its_own => of_its_own,
        };
        // All of what is used is asked for, and not all of its uses.
        let is_whole = self.more == Some(More::Whole) && interest == Interest::Uses;
        if let Some(name) = is_whole.then(|| subject(previous)).flatten() {
            return self.of_name(Aspect::Members, &name);
        }
        let has_other_days = other_days.is_some();
        // "Show me more" asks for those of the same days.
        let (bounds, unbound) = match interest.is_of_history() && !self.interest.is_of_history() {
            true => {
                let (of_previous, unbound) = Bounds::taken_from(previous);
                let bounds = match other_days {
                    Some(days) => days.of_the_same(of_previous),
                    None => of_previous,
                };
                (bounds, unbound)
            }
            // "Who wrote it?" asks of the commit that was named.
            false => match Bounds::taken_from(previous) {
                (of_previous, unbound) if of_previous.commit.is_some() => {
                    let commit = of_previous.commit;
                    let own = self.bounds.clone();
                    (Bounds { commit, ..own }, unbound)
                }
                _ => (self.bounds.clone(), previous.to_owned()),
            },
        };
        let mut terms = self.besides(interest, terms_of([&*unbound]));
        let weak = weak_terms(self.said()).filter(|term| !is_said(interest, term));
        terms.extend(weak.filter(|_| !has_other_days));
        terms.retain(|term| !(bounds.is_detailed && is_commit(term)));
        Sought {
            terms: most_telling(terms),
            plain: previous.to_owned(),
            interest,
            bounds,
        }
    }
}

/// Whether it is the noun alone, which German writes as names are.
fn is_commit(term: &Term) -> bool {
    term.shown.eq_ignore_ascii_case("commit")
}
