//! Random calls that provoke conflicts: few names, small numbers, much repetition.
//!
//! **Invariant:** the calls follow from the seed and the answers alone.

use super::{Checked, key, same, sample};
use crate::{
    journal::{ALL, Append, Claim, Error, Journal, Memory, Only, SessionStatus, Snapshot},
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

pub(super) async fn check(journal: &dyn Journal, seed: u64) -> Checked {
    let (reference, mut draw) = (Memory::new(), CallGenerator::new(seed)?);
    for number in 0..CALLS {
        draw.claims = reference.claims();
        let (call, given, want) = draw.call((journal, &reference)).await;
        same(&format!("call {number}, {call}"), given, want)?;
    }
    Ok(())
}

/// Makes a call on both journals. Returns it and both answers as text; `$then` gets the first one
/// in between.
macro_rules! both {
    ($journals:expr, $call:ident($($argument:ident),+)) => {
        both!($journals, $call($($argument),+), |_| ())
    };
    ($journals:expr, $call:ident($($argument:ident),+), $then:expr) => {{
        let (journal, reference) = $journals;
        let call = format!("{}{:?}", stringify!($call), ($(&$argument,)+));
        let given = journal.$call($(Clone::clone(&$argument)),+).await;
        $then(&given);
        let want = reference.$call($($argument),+).await;
        (call, format!("{given:?}"), format!("{want:?}"))
    }};
}

/// Draws random calls (SplitMix64).
struct CallGenerator {
    state: u64,
    keys: Vec<SessionKey>,
    made: Vec<Append>,
    /// All sessions.
    claims: Vec<Claim>,
    /// Deleted sessions.
    gone: Vec<Sid>,
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
            claims: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// Journals choose the numbers of sessions and epochs, but epochs rise and numbers are new.
    fn adopt(&self, reference: &Memory, key: &SessionKey, given: &Result<Claim, Error>) {
        let Ok(claim) = given else { return };
        let mut known = self.claims.iter();
        let before = known.find(|known| known.sid == claim.sid);
        let epoch = before.map_or(Epoch(0), |before| before.epoch);
        if claim.sid > Sid(0) && claim.epoch > epoch && !self.gone.contains(&claim.sid) {
            reference.adopt(key, *claim);
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        let state = self.state;
        self.state = state.wrapping_add(SPLITMIX_STEP);
        splitmix(state) % end
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length.max(1) as u64) as usize
    }

    fn key(&mut self) -> SessionKey {
        let index = self.index(self.keys.len());
        self.keys[index].clone()
    }

    async fn call(&mut self, on: (&dyn Journal, &Memory)) -> (String, String, String) {
        match self.below(60) {
            0..4 => {
                let key = self.key();
                both!(on, claim(key), |given| self.adopt(on.1, &key, given))
            }
            4..6 => {
                let drawn = self.drawn(Sid::default(), Epoch::default(), Seq(0));
                let (key, records, leaves) = (self.key(), drawn.records, drawn.leaves);
                let adopt = |given: &_| self.adopt(on.1, &key, given);
                both!(on, begin(key, records, leaves), adopt)
            }
            6..26 => {
                let append = self.append();
                both!(on, append(append))
            }
            26..32 => {
                let append = self.again();
                both!(on, append(append))
            }
            32..38 => {
                let (sid, after, limit) = (self.target().sid, Seq(self.below(12)), self.index(6));
                both!(on, read(sid, after, limit))
            }
            38..41 => {
                let key = self.key();
                both!(on, find(key))
            }
            58 => {
                let after = (self.below(2) == 0).then(|| self.key().tenant);
                let limit = self.index(4);
                both!(on, tenants(after, limit))
            }
            41..44 => {
                let after = (self.below(2) == 0).then(|| self.key().name);
                let (tenant, limit) = (self.key().tenant, self.index(6));
                both!(on, list(tenant, after, limit))
            }
            44..47 => {
                let first = (self.below(2) == 0).then(|| self.target().sid);
                let sids = first.unwrap_or_default()..=*ALL.end();
                let of = (self.below(2) == 0).then(|| self.key().tenant);
                let limit = self.index(6);
                both!(on, unfinished(of, sids, limit))
            }
            47..51 => {
                let Claim { sid, epoch, last } = self.target();
                let seq = Seq(self.below(last.0 + 3));
                // Random, to tell which snapshot was kept.
                let body = self.below(1_000).to_be_bytes()[..].into();
                let (epoch, snapshot) = (self.near(epoch), Snapshot { seq, body });
                both!(on, save(sid, epoch, snapshot))
            }
            51..54 => {
                let sid = self.target().sid;
                both!(on, snapshot(sid))
            }
            54 => {
                let sid = self.target().sid;
                let only = [Only::Always, Only::Always, Only::WhenIdle][self.below(3) as usize];
                let gone = &mut self.gone;
                both!(on, delete(sid, only), |given: &Result<_, _>| {
                    gone.extend(given.is_ok().then_some(sid));
                })
            }
            _ => {
                let words = WORDS[self.index(WORDS.len())].to_owned();
                let (tenant, limit) = (self.key().tenant, self.index(6));
                both!(on, search(tenant, words, limit))
            }
        }
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
    fn target(&mut self) -> Claim {
        let (there, at) = (self.below(30), self.index(self.claims.len()));
        if let Some(session) = self.claims.get(at).filter(|_| there > 1) {
            return *session;
        }
        let gone = self.index(self.gone.len());
        let gone = self.gone.get(gone).filter(|_| there == 1);
        Claim {
            sid: gone.copied().unwrap_or(Sid(u64::MAX)),
            epoch: Epoch(1),
            last: Seq(0),
        }
    }

    fn append(&mut self) -> Append {
        let Claim { sid, epoch, last } = self.target();
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
        let numbers: Vec<u64> = (0..self.below(4)).map(|_| self.below(3)).collect();
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
    fn again(&mut self) -> Append {
        let latest = self.made.len().saturating_sub(8);
        let at = latest + self.index(self.made.len() - latest);
        let Some(mut append) = self.made.get(at).cloned() else {
            return self.append();
        };
        let mut known = self.claims.iter();
        let owner = known.find(|known| known.sid == append.sid).copied();
        if let Some(owner) = owner
            && self.below(2) == 0
        {
            append.epoch = owner.epoch;
        }
        append
    }
}
