//! What is remembered, and for how long.

use super::*;
use crate::{
    model::tool::ToolNeed,
    prompt::{
        Variables,
        fixture::{cache, composer, query, tool},
    },
};

fn get(cache: &mut Cache, input: &ComposeInput) -> Arc<ComposedPrompt> {
    cache.compose(input).unwrap()
}

#[test]
fn equal_inputs_get_the_same_prompt() {
    let mut cache = cache(composer(&[], 100));
    let first = get(&mut cache, &query(QueryType::Code, &[]));
    let again = get(&mut cache, &query(QueryType::Code, &[]));
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn every_part_of_the_input_tells_prompts_apart() {
    let files = [(
        "base.md",
        "{{ project_name }}{{ tools | map(attribute='name') | join }}.",
    )];
    let mut cache = cache(composer(&files, 8_000));
    let named = Variables {
        project_name: "p".to_owned(),
        ..Variables::default()
    };
    let extra_segments = vec![SegmentId::Docs];
    let inputs = [
        query(QueryType::Code, &[]),
        query(QueryType::Research, &[]),
        query(QueryType::Code, &[tool("t", ToolNeed::Code)]),
        ComposeInput::new(Arc::new(named.prepare()), QueryType::Code),
        ComposeInput {
            extra_segments,
            ..query(QueryType::Code, &[])
        },
    ];
    let fresh = inputs
        .each_ref()
        .map(|input| cache.composer.compose(input).unwrap());
    for round in ["composed", "remembered"] {
        let got = inputs
            .each_ref()
            .map(|input| (*get(&mut cache, input)).clone());
        assert_eq!(got, fresh, "{round}");
    }
    let distinct: std::collections::HashSet<_> = fresh.iter().map(|prompt| &prompt.hash).collect();
    assert_eq!(distinct.len(), inputs.len());
}

#[test]
fn the_least_recently_used_prompt_makes_room() {
    let mut cache = cache(composer(&[], 8_000));
    cache.most = 2;
    let [code, docs, research] = [
        QueryType::Code,
        QueryType::Documentation,
        QueryType::Research,
    ]
    .map(|t| query(t, &[]));
    let first = get(&mut cache, &code);
    let second = get(&mut cache, &docs);
    get(&mut cache, &code);
    get(&mut cache, &research);
    assert_eq!(cache.entries.len(), 2, "bounded");
    assert!(
        Arc::ptr_eq(&first, &get(&mut cache, &code)),
        "used lately: kept"
    );
    assert!(
        !Arc::ptr_eq(&second, &get(&mut cache, &docs)),
        "not used lately: composed anew"
    );
}

#[test]
fn a_new_snapshot_leaves_no_old_prompt() {
    let mut cache = cache(composer(&[], 100));
    let input = query(QueryType::Code, &[]);
    get(&mut cache, &input);
    cache.publish(Arc::new(composer(&[("base.md", "new")], 100)));
    assert!(get(&mut cache, &input).content.starts_with("new"));
}

#[test]
fn a_failure_is_reported_each_time() {
    let mut cache = cache(composer(&[], 1));
    let input = query(QueryType::Code, &[]);
    let errors = [
        cache.compose(&input).unwrap_err(),
        cache.compose(&input).unwrap_err(),
    ];
    assert!(errors.iter().all(Error::is_over_budget), "{errors:?}");
    assert!(cache.entries.is_empty());
}
