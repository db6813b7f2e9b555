//! Services that die: how soon they are replaced, and how often.
//!
//! Faults that are far apart do not add up: only those of the last [`WINDOW`] in one place count. The first
//! death in a while is answered at once. One that dies again soon is replaced after a pause that grows, so
//! that what it dies of may pass and nothing spins.

use std::{collections::VecDeque, time::Duration};

use ractor::{ActorCell, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use super::{Place, SupervisorMsg, SupervisorState, shards::Death};

/// How long a death counts against [`SystemSettings::replacements`].
///
/// [`SystemSettings::replacements`]: super::SystemSettings::replacements
const WINDOW: Duration = Duration::from_secs(600);
/// How long after a death the next one is soon.
const SOON: Duration = Duration::from_secs(60);
/// The pause after the second death in a row, on average; doubles with each.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause, on average: no longer than those who ask try again.
const LONGEST: Duration = Duration::from_millis(500);

/// Who is to be replaced.
pub(in crate::actor) struct Replacing {
    place: Place,
    why: Death,
}

/// The deaths in one place.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// Of the last [`WINDOW`], oldest first.
    at: VecDeque<Instant>,
    /// How many came soon after the one before them, in a row.
    soon: u32,
}

impl Deaths {
    /// One more; how many count now, and how long to wait before the place is filled again.
    fn count(&mut self, now: Instant) -> (usize, Duration) {
        let since = |at: &Instant| now.saturating_duration_since(*at);
        self.soon = match self.at.back() {
            Some(last) if since(last) < SOON => self.soon.saturating_add(1),
            Some(_) | None => 0,
        };
        while self.at.front().is_some_and(|first| since(first) >= WINDOW) {
            self.at.pop_front();
        }
        self.at.push_back(now);
        let pause = match self.soon.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => LONGEST.min(PAUSE * (1 << doublings.min(10))),
        };
        (self.at.len(), pause)
    }
}

impl SupervisorState {
    pub(super) async fn replace(
        &mut self,
        me: &ActorRef<SupervisorMsg>,
        gone: &ActorCell,
        why: Death,
    ) -> Result<(), ActorProcessingErr> {
        let Some(place) = self.places.remove(&gone.get_id()) else {
            return Ok(());
        };
        let deaths = self.deaths.entry(place.clone()).or_default();
        let (times, pause) = deaths.count(Instant::now());
        tracing::error!(?place, %why, times, ?pause, "a service is replaced");
        let most = usize::try_from(self.args.settings.replacements).unwrap_or(usize::MAX);
        if times > most {
            let often = format!("{place:?} failed {times} times in {WINDOW:?}");
            return Err(format!("{often}, the last time: {why}").into());
        }
        let replacing = Replacing { place, why };
        if pause.is_zero() {
            return self.put_back(&me.get_cell(), replacing).await;
        }
        // What fell together does not come back together.
        let share = self.args.clock.moment().entropy % 1_001;
        let share = u32::try_from(share).unwrap_or_default();
        let pause = pause / 2 + pause * share / 1_000;
        drop(me.send_after(pause, || SupervisorMsg::Replace(replacing)));
        Ok(())
    }

    /// Fills the place again.
    pub(super) async fn put_back(
        &mut self,
        me: &ActorCell,
        Replacing { place, why }: Replacing,
    ) -> Result<(), ActorProcessingErr> {
        match place {
            Place::Shard(index) => self.replace_shard(me, index, &why).await,
            place @ (Place::Classifier(_)
            | Place::Composer(_)
            | Place::Bus(_)
            | Place::Gateway(_)) => self.start(me, place).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_are_far_apart_do_not_add_up_and_those_that_are_not_are_slowed_down() {
        let start = Instant::now();
        let mut deaths = Deaths::default();
        let mut at = |seconds| {
            let (times, pause) = deaths.count(start + Duration::from_secs(seconds));
            (times, pause.as_millis())
        };
        let soon = [0, 1, 2, 3, 4, 5, 6].map(&mut at);
        let pauses = [0, 50, 100, 200, 400, 500, 500];
        let expected = pauses.map({
            let mut times = 0;
            move |pause| {
                times += 1;
                (times, pause)
            }
        });
        assert_eq!(soon, expected);
        assert_eq!(at(66), (8, 0), "a minute later it is the first again");
        assert_eq!(at(603), (5, 0), "those of the first four seconds are over");
        for day in 1..1_000 {
            assert_eq!(at(86_400 * day), (1, 0), "one a day");
        }
    }
}
