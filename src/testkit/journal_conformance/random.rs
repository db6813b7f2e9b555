//! Random calls that provoke conflicts: few names, small numbers, much repetition.
//!
//! **Invariant:** the calls follow from the seed and the answers alone.

use super::{
    Checked, key,
    model::{JournalCall, Model},
    same, sample,
};
use crate::{
    journal::{ALL, Append, Journal, Only, SessionStatus, Snapshot},
    model::{Epoch, SPLITMIX_STEP, Seq, SessionKey, Sid, splitmix},
};

/// Calls per seed, enough for logs of some length under each name.
const CALLS: usize = 400;

const WORDS: &[&str] = &[
    "words",
    "WORDS 1",
    "2 words",
    "\"words\" OR 1",
    "word",
    "1*",
    "",
];

pub(super) async fn check<J: Journal>(journal: &J, seed: u64) -> Checked {
    let (mut model, mut draw) = (Model::default(), CallGenerator::new(seed)?);
    for number in 0..CALLS {
        let call = draw.call(&model);
        let given = call.clone().on(journal).await;
        let want = model.answer(&call, &given);
        same(&format!("call {number}, {call:?}"), given, want)?;
    }
    Ok(())
}

/// Draws random calls (SplitMix64).
struct CallGenerator {
    state: u64,
    keys: Vec<SessionKey>,
    made: Vec<Append>,
}

impl CallGenerator {
    fn new(seed: u64) -> Result<Self, String> {
        let mut keys = Vec::new();
        for tenant in ["default", "other"] {
            for name in ["b", "a", "B", "a-1"] {
                keys.push(key(tenant, name)?);
            }
        }
        Ok(Self {
            state: seed,
            keys,
            made: Vec::new(),
        })
    }

    fn below(&mut self, end: u64) -> u64 {
        let state = self.state;
        self.state = state.wrapping_add(SPLITMIX_STEP);
        splitmix(state) % end
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let index = self.below(of.len().max(1) as u64);
        of.get(usize::try_from(index).ok()?)
    }

    fn key(&mut self) -> SessionKey {
        let index = self.below(self.keys.len() as u64) as usize;
        self.keys[index].clone()
    }

    fn call(&mut self, model: &Model) -> JournalCall {
        match self.below(60) {
            0..4 => JournalCall::Claim(self.key()),
            4..6 => {
                let Append {
                    records, leaves, ..
                } = self.drawn(Sid::default(), Epoch::default(), Seq(0));
                JournalCall::Begin(self.key(), records, leaves)
            }
            6..26 => JournalCall::Append(self.append(model)),
            26..32 => JournalCall::Append(self.again(model)),
            32..38 => {
                let sid = self.target(model).0;
                JournalCall::Read(sid, Seq(self.below(12)), self.below(6) as usize)
            }
            38..41 => JournalCall::Find(self.key()),
            58 => {
                let after = (self.below(2) == 0).then(|| self.key().tenant);
                JournalCall::Tenants(after, self.below(4) as usize)
            }
            41..44 => {
                let after = (self.below(2) == 0).then(|| self.key().name);
                JournalCall::List(self.key().tenant, after, self.below(6) as usize)
            }
            44..47 => {
                let first = (self.below(2) == 0).then(|| self.target(model).0);
                let sids = first.unwrap_or_default()..=*ALL.end();
                JournalCall::Unfinished(sids, self.below(6) as usize)
            }
            47..51 => self.save(model),
            51..54 => JournalCall::Snapshot(self.target(model).0),
            54 => {
                let (sid, ..) = self.target(model);
                let only = [Only::Always, Only::Always, Only::WhenIdle][self.below(3) as usize];
                JournalCall::Delete(sid, only)
            }
            _ => {
                let words = self.one(WORDS).copied().unwrap_or_default();
                JournalCall::Search(self.key().tenant, words.into(), self.below(6) as usize)
            }
        }
    }

    fn save(&mut self, model: &Model) -> JournalCall {
        let (sid, epoch, last) = self.target(model);
        let seq = Seq(self.below(last.0 + 3));
        // Random, to tell which snapshot was kept.
        let body = self.below(1_000).to_be_bytes()[..].into();
        JournalCall::Save(sid, self.near(epoch), Snapshot { seq, body })
    }

    /// An epoch, occasionally of another owner.
    fn near(&mut self, epoch: Epoch) -> Epoch {
        match self.below(10) {
            0 => Epoch(epoch.0.saturating_sub(1)),
            1 => epoch.next(),
            _ => epoch,
        }
    }

    /// A session, its epoch and its last record; occasionally an unknown one.
    fn target(&mut self, model: &Model) -> (Sid, Epoch, Seq) {
        let there = self.below(30);
        match self.one(&model.sessions) {
            Some(session) if there > 1 => (session.sid, session.epoch, session.last()),
            _ => {
                let gone = self.one(&model.gone).filter(|_| there == 1);
                (gone.copied().unwrap_or(Sid(u64::MAX)), Epoch(1), Seq(0))
            }
        }
    }

    fn append(&mut self, model: &Model) -> Append {
        let (sid, epoch, last) = self.target(model);
        let epoch = self.near(epoch);
        let after = match self.below(6) {
            0 => Seq(last.0.saturating_sub(1)),
            1 => Seq(self.below(last.0 + 3)),
            _ => last,
        };
        let append = self.drawn(sid, epoch, after);
        self.made.push(append.clone());
        append
    }

    fn drawn(&mut self, sid: Sid, epoch: Epoch, after: Seq) -> Append {
        // Few different records, so that different appends sometimes have equal content.
        let length = self.below(4);
        let numbers: Vec<u64> = (0..length).map(|_| self.below(3)).collect();
        let leaves = match self.below(5) {
            0 => SessionStatus::Idle,
            1 => SessionStatus::Closed,
            2 => SessionStatus::Quarantined,
            _ => SessionStatus::Busy,
        };
        Append {
            sid,
            epoch,
            after,
            records: sample::all_numbered(&numbers),
            leaves,
            charges: Vec::new(),
        }
    }

    /// A recent append, or a recent append with the present owner's epoch.
    fn again(&mut self, model: &Model) -> Append {
        let latest = self.made.len().saturating_sub(8);
        let made = self.made.split_off(latest);
        let again = self.one(&made).cloned();
        self.made = made;
        let Some(mut append) = again else {
            return self.append(model);
        };
        let owner = model
            .sessions
            .iter()
            .find(|session| session.sid == append.sid);
        if let Some(owner) = owner
            && self.below(2) == 0
        {
            append.epoch = owner.epoch;
        }
        append
    }
}
