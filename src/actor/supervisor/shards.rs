//! The shards' places: who starts in them, and what becomes of the sessions of one that died.

use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr};

use super::{Place, Recovery, SupervisorState, SystemSettings};
use crate::{
    actor::{
        recovery::{Recovering, Whom},
        shard::{Roster, ShardActor, ShardArgs, ShardSettings},
        task::Task,
    },
    model::{SessionKey, Sid},
};

/// How an actor ended.
pub(super) enum Death {
    /// By a fault of its own.
    Fault(String),
    /// It was stopped or killed.
    Stopped(String),
}

impl Death {
    fn fault(&self) -> Option<&str> {
        match self {
            Self::Fault(why) => Some(why),
            Self::Stopped(_) => None,
        }
    }
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(why) | Self::Stopped(why) => f.write_str(why),
        }
    }
}

impl SupervisorState {
    pub(super) fn recover(&self, whom: Whom) -> Task {
        let concurrency = match self.args.settings.recovery {
            Recovery::AtStart { concurrency } => concurrency,
            Recovery::OnDemand => Recovery::CONCURRENCY,
        };
        let recovering = Recovering {
            journal: Arc::clone(&self.services.journal),
            router: self.services.router.clone(),
            ledger: self.services.router.ledger.clone(),
            clock: self.args.clock.clone(),
            rosters: Arc::clone(&self.services.router.rosters),
            concurrency,
            whom,
        };
        Task::spawn(recovering.run())
    }

    pub(super) async fn start_shard(
        &self,
        me: ActorCell,
        index: usize,
        booked: Vec<(Sid, SessionKey)>,
    ) -> Result<ActorId, ActorProcessingErr> {
        let shards = &self.services.router.shards;
        let SystemSettings {
            stall_limit,
            sweep,
            max_restarts,
            restart_pause,
            idle_timeout,
            max_live,
            ..
        } = self.args.settings;
        let args = ShardArgs {
            settings: ShardSettings {
                stall_limit,
                sweep,
                sweeps_from: sweep * number(index) / number(shards.size()),
                max_restarts,
                restart_pause,
                idle_timeout,
                max_live: max_live.div_ceil(self.services.router.shards.size()),
            },
            services: self.services.clone(),
            ledger: self.services.router.ledger.clone(),
            roster: self.roster(index),
            booked,
            gateways: Arc::clone(&self.gateways),
            depth: shards.depth(index),
        };
        let (actor, _) = Actor::spawn_linked(None, ShardActor, args, me).await?;
        let id = actor.get_id();
        shards.put(index, actor);
        Ok(id)
    }

    /// Its sessions died with it. Those of them that have something to do are brought back.
    pub(super) async fn replace_shard(
        &mut self,
        me: &ActorCell,
        index: usize,
        why: &Death,
    ) -> Result<(), ActorProcessingErr> {
        // A pass that is under way goes on as a part of the next one.
        self.orphans.remove(&index);
        let roster = self.roster(index);
        roster.bereave(why.fault());
        let shards = self.services.router.shards.clone();
        let ledger = &self.services.router.ledger;
        let booked = ledger.cut_off(|key| shards.index_of(key) == index);
        let id = self.start_shard(me.clone(), index, booked).await?;
        self.places.insert(id, Place::Shard(index));
        let recovery = self.recover(Whom::Orphans(index, roster));
        self.orphans.insert(index, recovery);
        Ok(())
    }

    fn roster(&self, index: usize) -> Roster {
        self.services
            .router
            .rosters
            .get(index)
            .cloned()
            .unwrap_or_default()
    }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
