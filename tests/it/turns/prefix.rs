//! Random conversations are append-only: in each dialect a request extends the one before it to the
//! same model, or a record between them says why not.

use std::collections::BTreeMap;

use oracle_agent::{kernel::Query, llm::Request, testkit::prefix};
use proptest::{collection::vec, prelude::*};

use super::{
    play::Play,
    random::{Happening, come_to_rest, config, happens, some_policy},
};

/// What differs from the request before without a reason.
fn differences(play: &Play) -> Vec<String> {
    let mut last = BTreeMap::new();
    // A client's task has no head, and what it says is its own.
    let is_task = |request: &Request| request.options.as_ref().is_some_and(|own| own.is_task);
    let sent = play.sent.iter().filter(|(_, request)| !is_task(request));
    let log: Vec<_> = play.log.iter().collect();
    let differs = sent.filter_map(|(at, request)| {
        let (since, before) = last.insert(&request.model, (*at, request))?;
        let query = log[..since].last()?.query?;
        let what = prefix::follows("p", (query, before), request, &log[..*at], since).err()?;
        let between = log[since..*at].iter();
        let kinds: Vec<_> = between.map(|record| record.fact.kind()).collect();
        Some(format!("after {kinds:?}: {what}"))
    });
    differs.collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_request_extends_the_one_before_or_a_record_says_why_not(
        kind in any::<[u8; 4]>(),
        happenings in vec(any::<Happening>(), 1..90),
        fork in 0..180_usize,
    ) {
        let mut play = Play::new(some_policy(kind));
        for (number, happening) in happenings.into_iter().enumerate() {
            // Sub-agents stay with the session that is copied.
            let works = |query: &Query| query.step.children().is_empty();
            if number == fork && play.session.query().is_none_or(works) {
                play.fork();
            }
            happens(&mut play, happening);
        }
        come_to_rest(&mut play);
        prop_assert_eq!(differences(&play), Vec::<String>::new());
    }
}
