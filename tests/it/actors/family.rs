//! Generations of sessions that share a model; the first message of a conversation selects the
//! script.

use std::{collections::BTreeMap, sync::Arc};

use oracle_agent::{
    journal::{Append, Entry, Journal},
    kernel::{DelegationPolicy, Policy},
    llm::{Backend, DeltaStream, Request, Scripted},
    model::{NanoUsd, Seq, Usage},
    testkit::{Probe, TestSession},
};

/// A script per first message; all others get the eldest session's.
#[derive(Clone)]
pub(crate) struct Family {
    parent: Scripted,
    children: BTreeMap<&'static str, Probe<Scripted>>,
    summaries: Scripted,
}

const SUMMARY: &str = "[user] asked where a is. [tool look, ok] a is there.";

impl Family {
    pub(crate) fn new(parent: Scripted) -> Self {
        let children = BTreeMap::new();
        let summaries = Scripted::new().reply(SUMMARY);
        Self {
            parent,
            children,
            summaries,
        }
    }

    pub(crate) fn child(mut self, scope: &'static str, script: Scripted) -> Self {
        self.children.insert(scope, Probe::new(script));
        self
    }

    pub(super) fn summarising(mut self, summaries: Scripted) -> Self {
        self.summaries = summaries;
        self
    }

    pub(super) const fn parent(&self) -> &Scripted {
        &self.parent
    }

    pub(super) const fn summaries(&self) -> &Scripted {
        &self.summaries
    }

    pub(super) fn of(&self, scope: &str) -> &Probe<Scripted> {
        &self.children[scope]
    }
}

impl Backend for Family {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, request: Request) -> DeltaStream {
        if request.system.starts_with("You compact conversations.") {
            return self.summaries.call(request);
        }
        let first: String = request.messages[0].texts().collect();
        match self.children.get(first.as_str()) {
            Some(child) => child.call(request),
            None => self.parent.call(request),
        }
    }
}

pub(crate) fn delegate(scope: &str) -> String {
    format!(
        "I will have that read.\n<signal type=\"delegation_recommended\"><reason>It is long</reason>\
         <scope>{scope}</scope><estimated_tokens>5000</estimated_tokens></signal>"
    )
}

/// Delegates several scopes at once.
pub(crate) fn delegate_all(scopes: &[&str]) -> String {
    let (first, further) = scopes.split_first().unwrap();
    let further = serde_json::to_string(further).unwrap();
    format!(
        "I will have those read.\n<signal type=\"delegation_recommended\"><reason>It is long</reason>\
         <scope>{first}</scope><further_scopes>{further}</further_scopes>\
         <estimated_tokens>100000</estimated_tokens></signal>"
    )
}

pub(crate) fn allow(policy: &mut Policy, max_depth: u32) {
    policy.delegation = DelegationPolicy {
        max_depth,
        max_children: 2,
        max_parallel: 4,
        default_tokens: 1_000,
    };
}

pub(crate) fn cost(output_tokens: u64, nano: u64) -> Usage {
    Usage {
        output_tokens,
        cost: NanoUsd(nano),
        ..Usage::default()
    }
}

/// Copies a session's records up to the first of type `kind`, as another process would find them
/// after a crash.
pub(super) async fn as_of(session: &TestSession, kind: &str, journal: &Arc<dyn Journal>) {
    let log = session.records(Seq(0)).await.unwrap();
    let is_it = |entry: &Entry| entry.record.fact.kind() == kind;
    let end = log.iter().position(is_it).expect(kind);
    let claim = journal.claim(session.key().clone()).await.unwrap();
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: claim.last,
        records: log
            .into_iter()
            .take(end + 1)
            .map(|entry| entry.record)
            .collect(),
        leaves: oracle_agent::journal::SessionStatus::Busy,
        charges: Vec::new(),
    };
    journal.append(append).await.unwrap();
}
