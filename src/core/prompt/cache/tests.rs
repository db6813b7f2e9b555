use super::*;
use crate::{
    model::tool::ToolNeed,
    prompt::{
        Variables,
        tests::{composer, query, tool},
    },
};

struct Cached {
    cache: Cache,
    composer: Arc<Composer>,
}

fn cache(composer: Composer) -> Cached {
    Cached {
        cache: Cache::default(),
        composer: Arc::new(composer),
    }
}

fn get(cached: &mut Cached, input: &ComposeInput) -> Arc<ComposedPrompt> {
    cached.cache.compose(&cached.composer, input).unwrap()
}

#[test]
fn equal_inputs_get_the_same_prompt() {
    let mut cache = cache(composer(&[], 100));
    let first = get(&mut cache, &query(QueryType::Code, &[]));
    let again = get(&mut cache, &query(QueryType::Code, &[]));
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn every_input_field_is_part_of_the_cache_key() {
    let files = [(
        "base.md",
        "{{ project_name }}{{ tools | map(attribute='name') | join }}.",
    )];
    let mut cache = cache(composer(&files, 8_000));
    let named = Variables {
        project_name: "p".to_owned(),
        ..Variables::default()
    };
    let inputs = [
        query(QueryType::Code, &[]),
        query(QueryType::Research, &[]),
        query(QueryType::Code, &[tool("t", ToolNeed::Code)]),
        ComposeInput::new(Arc::new(named.prepare()), QueryType::Code),
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
fn least_recently_used_prompt_is_evicted() {
    let mut cached = cache(composer(&[], 8_000));
    let [code, docs, research] = [
        QueryType::Code,
        QueryType::Documentation,
        QueryType::Research,
    ]
    .map(|t| query(t, &[]));
    let first = get(&mut cached, &code);
    let second = get(&mut cached, &docs);
    get(&mut cached, &code);
    cached.cache.evict(2);
    get(&mut cached, &research);
    assert_eq!(cached.cache.entries.len(), 2, "bounded");
    assert!(
        Arc::ptr_eq(&first, &get(&mut cached, &code)),
        "used lately: kept"
    );
    assert!(
        !Arc::ptr_eq(&second, &get(&mut cached, &docs)),
        "not used lately: composed anew"
    );
}

#[test]
fn prompt_cache_holds_at_most_its_capacity() {
    let mut cached = cache(composer(&[], 8_000));
    for session in 0..MAX_ENTRIES + 10 {
        let variables = Variables {
            project_name: session.to_string(),
            ..Variables::default()
        };
        let input = ComposeInput::new(Arc::new(variables.prepare()), QueryType::Code);
        get(&mut cached, &input);
    }
    assert_eq!(cached.cache.entries.len(), MAX_ENTRIES);
}

#[test]
fn cached_prompt_belongs_to_its_composer() {
    let mut cached = cache(composer(&[], 100));
    let input = query(QueryType::Code, &[]);
    let old = get(&mut cached, &input);
    cached.composer = Arc::new(composer(&[("base.md", "new")], 100));
    assert!(get(&mut cached, &input).content.starts_with("new"));
    assert!(!old.content.starts_with("new"));
}

#[test]
fn compose_errors_are_not_cached() {
    let Cached {
        mut cache,
        composer,
    } = cache(composer(&[], 1));
    let input = query(QueryType::Code, &[]);
    let errors = [
        cache.compose(&composer, &input).unwrap_err(),
        cache.compose(&composer, &input).unwrap_err(),
    ];
    let is_over = |error: &Error| matches!(error, Error::PromptBudgetExceeded { .. });
    assert!(errors.iter().all(is_over), "{errors:?}");
    assert!(cache.entries.is_empty());
}
