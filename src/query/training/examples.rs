//! Labelled queries as features.

use std::collections::HashSet;

use crate::model::QueryType;
use crate::query::classifier::is_terse;
use crate::query::evaluation::LabelledQuery;
use crate::query::features::{FeatureGroup, each_feature, shapes};
use crate::query::matcher::Matcher;
use crate::query::reading::Reading;
use crate::query::text::normalized;
use crate::query::weights::{PerType, lexicon_value};

pub(super) struct Example {
    pub(super) label: usize,
    /// Ascending, without duplicates.
    pub(super) features: Vec<(FeatureGroup, u32)>,
    pub(super) shapes: Vec<usize>,
    pub(super) lexicon: PerType,
}

/// The first of rows that differ only in case.
pub(super) fn distinct(rows: &[LabelledQuery]) -> Vec<&LabelledQuery> {
    let mut seen = HashSet::new();
    let is_new = |row: &&LabelledQuery| seen.insert(row.query.to_lowercase());
    rows.iter().filter(is_new).collect()
}

/// Drops rows that never reach the weights.
pub(super) fn decisive<'a>(
    matcher: &Matcher,
    mut rows: Vec<&'a LabelledQuery>,
) -> Vec<&'a LabelledQuery> {
    let mut reading = Reading::default();
    rows.retain(|row| {
        let text = normalized(&row.query);
        matcher.read(&text, &mut reading);
        let none = !matcher.evidence(&reading).any(|found| found.weight > 0.0);
        !is_terse(&text, &reading, none)
    });
    rows
}

pub(super) fn examples(matcher: &Matcher, rows: &[&LabelledQuery]) -> Vec<Example> {
    let mut reading = Reading::default();
    rows.iter()
        .map(|row| {
            let text = normalized(&row.query);
            matcher.read(&text, &mut reading);
            let mut features = Vec::new();
            each_feature(&reading, &mut |feature| {
                features.push((feature.group(), feature.key));
            });
            features.sort_unstable();
            features.dedup();
            let score = matcher.score(&reading);
            Example {
                label: row.query_type as usize,
                features,
                shapes: shapes(&text, &reading).collect(),
                lexicon: QueryType::ALL.map(|of| lexicon_value(score.of(of))),
            }
        })
        .collect()
}
