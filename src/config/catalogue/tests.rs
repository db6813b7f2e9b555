use super::*;
use crate::{
    config::PRESETS,
    model::{Usage, usage::usd},
};

#[test]
fn prices_parse_exactly() {
    for (text, nanos) in [
        ("0.000001", Some(1_000)),
        ("2.5", Some(2_500_000_000)),
        ("1000000", Some(1_000_000_000_000_000)),
        ("999999.999999", Some(999_999_999_999_000)),
        ("0", Some(0)),
        ("1000000.000001", None),
        ("0.0000001", None),
        ("$5", None),
    ] {
        let money = usd::parse(text);
        assert_eq!(money, nanos.map(NanoUsd), "{text}");
        if let Some(money) = money {
            assert_eq!(usd::parse(&usd::dollars(money).to_string()), Some(money));
        }
    }
}

fn first<T>(prices: &Prices, model: &str, fact: impl Fn(&ProviderModel) -> Option<T>) -> Option<T> {
    prices.entries(model).iter().find_map(fact)
}

fn of(prices: &Prices, model: &str) -> Option<[u64; 4]> {
    let price = first(prices, model, ProviderModel::price)?;
    Some(
        [price.input, price.cached, price.cache_write, price.output].map(|part| part.0 / 1_000_000),
    )
}

const TABLE: &str = oracle_defaults::MODELS;

#[test]
fn built_in_table_is_valid_and_read_by_line() {
    let whole = Prices::parse(TABLE, "config/models.toml").unwrap().own;
    let builtin = Prices::builtin();
    assert!(whole.len() > 500, "{}", whole.len());
    let listed: Vec<&str> = builtin.names().collect();
    assert!(listed.is_sorted(), "the names are sorted");
    for entry in &whole {
        assert_eq!(builtin.entries(&entry.name).first(), Some(entry));
    }
    assert!(Day::parse(builtin.date()).is_some());
    assert!(builtin.source().starts_with("litellm "));
}

#[test]
fn default_models_are_priced_and_outlive_a_year() {
    let prices = Prices::builtin();
    let written = Day::parse(prices.date()).unwrap();
    for preset in PRESETS {
        let Some(model) = preset.default_model else {
            continue;
        };
        let name = format!("{}/{model}", preset.name);
        assert!(
            first(&prices, &name, ProviderModel::price).is_some(),
            "{name}"
        );
        let end = first(&prices, &name, ProviderModel::retirement);
        assert!(end.is_none_or(|end| end.day.0 > written.0 + 365), "{name}");
    }
}

/// The figures are those of the vendors' pages on prices.
#[test]
fn calls_cost_what_the_vendors_pages_say() {
    const M: u64 = 1_000_000;
    for (what, model, sent, cached, written, received, millionths) in [
        ("plain", "anthropic/claude-sonnet-5-5", M, 0, 0, M, 12 * M),
        ("cached", "anthropic/claude-sonnet-5-5", M, M, 0, 0, M / 10),
        (
            "written for 5 min",
            "anthropic/claude-sonnet-5-5",
            M,
            0,
            M,
            0,
            5 * M / 2,
        ),
        (
            "written for 5 min",
            "anthropic/claude-opus-4-6",
            M,
            0,
            M,
            0,
            25 * M / 4,
        ),
        ("not 15/75", "anthropic/claude-opus-4-7", M, 0, 0, M, 30 * M),
        (
            "at 100k",
            "anthropic/claude-haiku-5-5",
            100_000,
            0,
            0,
            0,
            10_000,
        ),
        (
            "above 100k",
            "anthropic/claude-haiku-5-5",
            200_000,
            0,
            100_000,
            100_000,
            362_500,
        ),
        (
            "at 272k",
            "openai/gpt-6.1-terra",
            272_000,
            0,
            0,
            M,
            5_272_000,
        ),
        (
            "above 272k",
            "openai/gpt-6.1-terra",
            300_000,
            100_000,
            100_000,
            M,
            7_960_000,
        ),
        ("written", "openai/gpt-5.6", 100_000, 0, 100_000, 0, 500_000),
        (
            "at 200k",
            "gemini/gemini-2.5-pro",
            200_000,
            0,
            0,
            M,
            10_250_000,
        ),
        (
            "above 200k",
            "gemini/gemini-2.5-pro",
            400_000,
            0,
            0,
            M,
            16_000_000,
        ),
        (
            "above 200k, cached",
            "gemini/gemini-3.1-pro-preview",
            400_000,
            400_000,
            0,
            0,
            160_000,
        ),
        (
            "third tier",
            "dashscope/qwen3-max",
            130_000,
            0,
            0,
            0,
            390_000,
        ),
        (
            "as its vendor",
            "openrouter/anthropic/claude-sonnet-5.5",
            M,
            0,
            0,
            M,
            12 * M,
        ),
        ("free", "ollama/anything:7b", M, 0, 0, M, 0),
    ] {
        let price = first(&Prices::builtin(), model, ProviderModel::price).unwrap();
        let usage = Usage {
            input_tokens: sent,
            cached_tokens: cached,
            cache_write_tokens: written,
            output_tokens: received,
            ..Usage::default()
        };
        assert_eq!(price.of(&usage).0, millionths * 1_000, "{model} {what}");
    }
}

#[test]
fn facts_of_known_models_are_listed() {
    let prices = Prices::builtin();
    let facts = |model: &str| {
        let sampling = first(&prices, model, |one| one.sampling);
        let forced = first(&prices, model, |one| one.forced_tools);
        (
            sampling,
            forced,
            first(&prices, model, |one| one.always_thinks),
        )
    };
    for (model, expected) in [
        (
            "anthropic/claude-opus-5-5",
            (Some(false), Some(false), Some(true)),
        ),
        (
            "anthropic/claude-haiku-5-5",
            (Some(false), Some(true), None),
        ),
        ("anthropic/claude-haiku-4-5", (None, None, None)),
        ("openai/gpt-6.1-sol", (Some(false), None, None)),
        ("openai/gpt-5.4", (None, None, None)),
        ("unknown/x", (None, None, None)),
    ] {
        assert_eq!(facts(model), expected, "{model}");
    }
    let end = first(
        &prices,
        "anthropic/claude-sonnet-4-5",
        ProviderModel::retirement,
    );
    let end = end.unwrap();
    assert_eq!(end.day.to_string(), "2026-11-30");
    assert_eq!(
        end.successor.as_deref(),
        Some("anthropic/claude-sonnet-5-5")
    );
}

#[test]
fn names_match_exactly_then_by_star_then_without_date() {
    let list = "[[price]]\nmodel = 'a/b*'\ninput = 2\noutput = 2\n\
                [[price]]\nmodel = 'a/b-1'\ninput = 1\noutput = 1\n\
                [[price]]\nmodel = 'a/c-5'\ninput = 3\noutput = 3\n";
    let prices = Prices::parse(list, "own.toml").unwrap();
    for (model, price) in [
        ("a/b-1", Some(1_000)),
        ("a/b-2", Some(2_000)),
        ("a/b-1-20260901", Some(2_000)),
        ("a/c-5", Some(3_000)),
        ("a/c-5-20260901", Some(3_000)),
        ("a/c-5-2026-09-01", Some(3_000)),
        ("a/c-5@20260901", Some(3_000)),
        ("a/c-5-09-2026", Some(3_000)),
        ("a/c-5-0901", Some(3_000)),
        ("a/c-5-1", None),
        ("a/c-5-preview", None),
        ("a/c-520260901", None),
        ("a/c-6-20260901", None),
        ("a/é5-0901", None),
        ("5", None),
    ] {
        assert_eq!(of(&prices, model).map(|rates| rates[0]), price, "{model}");
    }
    let builtin = Prices::builtin();
    let new = "anthropic/claude-sonnet-5-5-20260901";
    assert_eq!(
        of(&builtin, new),
        of(&builtin, "anthropic/claude-sonnet-5-5")
    );
}

#[test]
fn newer_table_comes_before_the_built_in_one() {
    let line = "  { model = \"openai/gpt-6.1-terra\", input = 7, output = 8 },\n";
    let table = |date: &str, lines: &str| format!("date = \"{date}\"\nprice = [\n{lines}]\n");
    let newer = table("2999-01-01", line);
    Prices::check_table(&newer, "new.toml").unwrap();
    let prices = Prices::builtin().updated(newer);
    assert_eq!(prices.date(), "2999-01-01");
    let rates = of(&prices, "openai/gpt-6.1-terra");
    assert_eq!(rates, Some([7_000, 7_000, 7_000, 8_000]));
    // Facts and models that it lacks are those of the built-in one.
    let window = first(&prices, "openai/gpt-6.1-terra", |one| one.context_window);
    assert_eq!(window, Some(1_050_000));
    assert!(of(&prices, "anthropic/claude-sonnet-5-5").is_some());
    let older = Prices::builtin().updated(table("2025-01-01", line));
    assert_eq!(older, Prices::builtin());
    let many_lines = "  { model = \"a/b\", input = 7,\n    output = 8 },\n";
    for (text, said) in [
        (
            "{\"gpt-4o\": {}}".to_owned(),
            "is JSON: turn litellm's table into ours",
        ),
        ("not toml".to_owned(), "is invalid: "),
        (
            table("2025-01-01", line),
            "is of 2025-01-01, and this program has one of",
        ),
        (table("2999-01-01", ""), "is no table of models"),
        (table("soon", line), "is no table of models"),
        (table("2999-01-01", many_lines), "is "),
        (
            "[[price]]\nmodel = 'a/b'\ninput = 1\noutput = 1\n".to_owned(),
            "is no table",
        ),
        (
            table("2999-01-01", "  { model = \"a/b\", input = 7 },\n"),
            "missing field `output`",
        ),
        (
            table(
                "2999-01-01",
                "  { model = \"a/b\", input = 1, output = 2, tiers = [{ above = 9, output = 3 }] },\n",
            ),
            "missing field `input` or `output` of a tier",
        ),
        (
            table("2999-01-01", "  { model = \"a/b\", retires = \"soon\" },\n"),
            "`a/b`: `soon` is not a date",
        ),
    ] {
        let error = Prices::check_table(&text, "new.toml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("price list `new.toml` "), "{error}");
        assert!(error.contains(said), "{text}: {error}");
        assert_eq!(error.matches('`').count() % 2, 0, "{error}");
    }
}

#[test]
fn first_matching_price_entry_wins() {
    let own = r#"
        [[price]]
        model = "a/b-large"
        input = 2
        output = "3.5"
        [[price]]
        model = "a/b*"
        input = 1.0
        cached = 0
        cache_write = 1.25
        output = 1.0
        context_window = 2000
    "#;
    let others = r#"
        [[price]]
        model = "a/*"
        input = 9
        output = 9
        context_window = 1000
        max_output_tokens = 100
    "#;
    let parse = |text| Prices::parse(text, "own.toml").unwrap();
    let prices = parse(own).or(parse(others));
    for (model, expected) in [
        ("a/b-large", Some([2_000, 2_000, 2_000, 3_500])),
        ("a/b-larger", Some([1_000, 0, 1_250, 1_000])),
        ("a/c", Some([9_000, 9_000, 9_000, 9_000])),
        ("b/b", None),
    ] {
        assert_eq!(of(&prices, model), expected, "{model}");
    }
    // An entry without sizes does not hide one that has them.
    for (model, window, reply) in [
        ("a/b-large", Some(2_000), Some(100)),
        ("a/c", Some(1_000), Some(100)),
        ("b/b", None, None),
    ] {
        let got = (
            first(&prices, model, |entry| entry.context_window),
            first(&prices, model, |entry| entry.max_output_tokens),
        );
        assert_eq!(got, (window, reply), "{model}");
    }
}

#[test]
fn invalid_price_list_names_the_problem() {
    for (text, said) in [
        ("price = 3", "is invalid"),
        ("[[prices]]", "unknown field `prices`"),
        (
            "[[price]]\nmodel = \"a/b\"\ninput = 1",
            "missing field `output`",
        ),
        (
            "[[price]]\nmodel = \"a/b\"\ninput = -1\noutput = 1",
            "a price is US dollars from 0 to 1000000",
        ),
        (
            "[[price]]\nmodel = \"gpt\"\ninput = 1\noutput = 1",
            "has the invalid name `gpt`: write provider/model",
        ),
        (
            "[[price]]\nmodel = \"a/*b\"\ninput = 1\noutput = 1",
            "has the invalid name `a/*b`",
        ),
    ] {
        let error = Prices::parse(text, "own.toml").unwrap_err().to_string();
        assert!(error.starts_with("price list `own.toml`"), "{error}");
        assert!(error.contains(said), "{text}: {error}");
    }
}
