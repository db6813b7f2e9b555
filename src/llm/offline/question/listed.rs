//! The days of a question, for those who know days and nothing that is counted back. Pure.

use super::Question;

impl Question {
    /// The first and the last day that it names, as arguments; none if they are counted back from today, which
    /// notes do not know.
    pub(in super::super) fn days(&self) -> Vec<(&'static str, &str)> {
        let ends = [("from", &self.bounds.since), ("to", &self.bounds.until)];
        let known = |day: &&String| is_date(day);
        ends.into_iter()
            .filter_map(|(name, day)| Some((name, day.as_ref().filter(known)?.as_str())))
            .collect()
    }

    /// That days were asked for which are not known.
    pub(in super::super) fn unknown_days(&self) -> Option<String> {
        let ends = [&self.bounds.since, &self.bounds.until];
        let mut unknown = ends.into_iter().flatten().filter(|day| !is_date(day));
        let unknown = unknown.next().filter(|_| !self.bounds.has_commits())?;
        Some(format!(
            "only those of the days asked for (“{unknown}”): I have no clock, so name days by their dates"
        ))
    }
}

fn is_date(day: &str) -> bool {
    day.starts_with(|c: char| c.is_ascii_digit()) && day.contains('-')
}
