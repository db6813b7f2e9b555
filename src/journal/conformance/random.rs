//! Random calls, drawn so that they hurt: few names, small numbers, much repetition.
//!
//! **Invariant:** what is drawn follows from the seed and the answers alone.

use super::{
    Checked, key,
    model::{Call, Model},
    same, sample,
};
use crate::{
    journal::{Append, Journal, Standing},
    model::{Epoch, Seq, SessionKey, Sid},
};

/// How many calls a seed makes: enough for logs of some length under each of the names.
const CALLS: usize = 400;

/// Makes the calls of this seed and compares every answer with the model's.
pub(super) async fn check<J: Journal>(journal: &J, seed: u64) -> Checked {
    let (mut model, mut draw) = (Model::default(), Draw::new(seed)?);
    for number in 0..CALLS {
        let call = draw.call(&model);
        let given = call.clone().on(journal).await;
        let want = model.answer(&call, &given);
        same(&format!("call {number}, {call:?}"), &given, &want)?;
    }
    Ok(())
}

/// Random numbers (SplitMix64: a counter and a mix; no state to get wrong) and what is drawn by
/// them.
struct Draw {
    state: u64,
    keys: Vec<SessionKey>,
    /// Appends made lately, to be made again.
    made: Vec<Append>,
}

impl Draw {
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

    /// A number from 0, below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let index = self.below(of.len().max(1) as u64);
        of.get(usize::try_from(index).ok()?)
    }

    fn key(&mut self) -> SessionKey {
        let index = self.below(self.keys.len() as u64) as usize;
        self.keys[index].clone()
    }

    fn call(&mut self, model: &Model) -> Call {
        match self.below(20) {
            0..2 => Call::Claim(self.key()),
            2..11 => Call::Append(self.append(model)),
            11..13 => Call::Append(self.again(model)),
            13..16 => {
                let sid = self.target(model).0;
                Call::Read(sid, Seq(self.below(12)), self.below(6) as usize)
            }
            16..18 => Call::Find(self.key()),
            _ => {
                let after = (self.below(2) == 0).then(|| self.key().name);
                Call::List(self.key().tenant, after, self.below(6) as usize)
            }
        }
    }

    /// A session, its epoch and where it ends; seldom one that is not there.
    fn target(&mut self, model: &Model) -> (Sid, Epoch, Seq) {
        let there = self.below(30) > 0;
        match self.one(&model.sessions) {
            Some(session) if there => (session.sid, session.epoch, session.last()),
            _ => (Sid(u64::MAX), Epoch(1), Seq(0)),
        }
    }

    fn append(&mut self, model: &Model) -> Append {
        let (sid, epoch, last) = self.target(model);
        let epoch = match self.below(10) {
            0 => Epoch(epoch.0.saturating_sub(1)),
            1 => epoch.next(),
            _ => epoch,
        };
        let after = match self.below(6) {
            0 => Seq(last.0.saturating_sub(1)),
            1 => Seq(self.below(last.0 + 3)),
            _ => last,
        };
        // Few different records: that other content looks the same by chance is wanted.
        let length = self.below(4);
        let numbers: Vec<u64> = (0..length).map(|_| self.below(3)).collect();
        let leaves = match self.below(2) {
            0 => Standing::Resting,
            _ => Standing::Busy,
        };
        let append = Append {
            sid,
            epoch,
            after,
            records: sample::all_numbered(&numbers),
            leaves,
        };
        self.made.push(append.clone());
        append
    }

    /// An append as it was made, or in another owner's name.
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
