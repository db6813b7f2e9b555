//! Fields are typed by the schema, never guessed.

use std::collections::BTreeMap;

use super::*;
use crate::model::signal::{
    ContextSufficient, DelegationRecommended, NeedCapability, NeedTurn, PartialAnswer, Stuck,
};

fn typed(kind: &str, elements: &str) -> Result<SignalFields, String> {
    let block = format!("<signal type=\"{kind}\">{elements}</signal>");
    match read(&block, Timestamp::default()).finding {
        Finding::Signal(signal) => Ok(signal.fields),
        Finding::Rejection(rejection) => Err(rejection.reason),
        Finding::Nothing => panic!("no block in {block}"),
    }
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn need_turn(reason: &str, expected_turns: Option<u64>, extra: &[(&str, &str)]) -> SignalFields {
    let extra = extra
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let reason = reason.to_owned();
    SignalFields::NeedTurn(NeedTurn {
        reason,
        expected_turns,
        extra: extra.collect(),
    })
}

#[test]
fn values_are_typed_by_the_schema() {
    for (name, elements, expected) in [
        (
            "trimmed",
            "<reason>\n  two words \t</reason>",
            need_turn("two words", None, &[]),
        ),
        (
            "names in any case",
            "<REASON>upper case</Reason>",
            need_turn("upper case", None, &[]),
        ),
        (
            "entities stay",
            "<reason>a &lt; b</reason>",
            need_turn("a &lt; b", None, &[]),
        ),
        (
            "nested tags stay",
            "<reason>use <code>f()</code> now</reason>",
            need_turn("use <code>f()</code> now", None, &[]),
        ),
        (
            "a nested tag of the same name stays",
            "<reason>a <reason>b</reason> c</reason>",
            need_turn("a <reason>b</reason> c", None, &[]),
        ),
        (
            "a mention of its own tag",
            "<reason>the <reason> element</reason>",
            need_turn("the <reason> element", None, &[]),
        ),
        (
            "white space of Unicode in a tag",
            "<reason\u{a0}>enough</reason\u{2003}>",
            need_turn("enough", None, &[]),
        ),
        (
            "of a doubled field the last counts",
            "<reason>first one</reason><reason>second</reason>",
            need_turn("second", None, &[]),
        ),
        (
            "a list where text is due is text",
            "<reason>[\"a\", \"b\"]</reason>",
            need_turn("[\"a\", \"b\"]", None, &[]),
        ),
        (
            "a number where text is due is text",
            "<reason>12345</reason>",
            need_turn("12345", None, &[]),
        ),
        (
            "an integer",
            "<reason>enough</reason><expected_turns> 3 </expected_turns>",
            need_turn("enough", Some(3), &[]),
        ),
        (
            "an integer with a zero fraction",
            "<reason>enough</reason><expected_turns>3.0</expected_turns>",
            need_turn("enough", Some(3), &[]),
        ),
        (
            "an empty optional element is absent",
            "<reason>enough</reason><expected_turns> </expected_turns>",
            need_turn("enough", None, &[]),
        ),
        (
            "a self-closed optional element is absent",
            "<reason>enough</reason><expected_turns/>",
            need_turn("enough", None, &[]),
        ),
        (
            "unknown fields are kept as text, names lower-cased",
            "<reason>enough</reason><Note>[1]</Note><sources_found>3</sources_found>",
            need_turn("enough", None, &[("note", "[1]"), ("sources_found", "3")]),
        ),
        (
            "confidence is no field",
            "<confidence>1</confidence><reason>enough</reason><confidence>0</confidence>",
            need_turn("enough", None, &[]),
        ),
        (
            "limits in scalars",
            "<reason>äöüßé</reason>",
            need_turn("äöüßé", None, &[]),
        ),
        (
            "an unclosed field is none, and hides nothing after it",
            "<note>oops <reason>enough</reason>",
            need_turn("enough", None, &[]),
        ),
        (
            "attributes of a field tag are passed over",
            "<reason lang=\"en\">enough</reason >",
            need_turn("enough", None, &[]),
        ),
    ] {
        assert_eq!(typed("need_turn", elements), Ok(expected), "{name}");
    }
}

#[test]
fn each_type_has_its_fields() {
    let extra = BTreeMap::new;
    for (kind, elements, expected) in [
        (
            "context_sufficient",
            "<sources_found>0</sources_found><source_types>[\"code\", \"Stars\"]</source_types>",
            SignalFields::ContextSufficient(ContextSufficient {
                sources_found: 0,
                source_types: Some(strings(&["code", "Stars"])),
                extra: extra(),
            }),
        ),
        (
            "stuck",
            "<attempted>[\"grep\"]</attempted><blocker>no logs</blocker><suggestions>[]</suggestions>",
            SignalFields::Stuck(Stuck {
                attempted: strings(&["grep"]),
                blocker: "no logs".to_owned(),
                suggestions: Some(vec![]),
                extra: extra(),
            }),
        ),
        (
            "need_capability",
            "<capability>sh</capability><reason>to run it</reason><workaround>by hand</workaround>",
            SignalFields::NeedCapability(NeedCapability {
                capability: "sh".to_owned(),
                reason: "to run it".to_owned(),
                workaround: Some("by hand".to_owned()),
                extra: extra(),
            }),
        ),
        (
            "partial_answer",
            "<missing>production</missing><caveat></caveat>",
            SignalFields::PartialAnswer(PartialAnswer {
                missing: "production".to_owned(),
                caveat: None,
                extra: extra(),
            }),
        ),
        (
            "delegation_recommended",
            "<reason>large</reason><scope>all of auth</scope>\
             <further_scopes>[\"all of db\", \" the rest \"]</further_scopes>\
             <estimated_tokens>100000.0</estimated_tokens><subagent_type>research</subagent_type>",
            SignalFields::DelegationRecommended(DelegationRecommended {
                reason: "large".to_owned(),
                scope: "all of auth".to_owned(),
                further_scopes: Some(strings(&["all of db", "the rest"])),
                estimated_tokens: Some(100_000),
                subagent_type: Some("research".to_owned()),
                extra: extra(),
            }),
        ),
    ] {
        assert_eq!(typed(kind, elements), Ok(expected), "{kind}");
    }
}

const TYPES: &str = "need_turn, context_sufficient, stuck, need_capability, partial_answer, \
                     delegation_recommended";

#[test]
fn field_errors_name_the_field_and_problem() {
    let of = |field: &str, kind: &str, fault: &str| {
        format!("the field `{field}` of a {kind} signal needs {fault}")
    };
    let turns = |value: &str| {
        let elements = format!("<reason>enough</reason><expected_turns>{value}</expected_turns>");
        let fault = format!("an integer from 1 to 10, it is `{value}`");
        (
            "need_turn",
            elements,
            of("expected_turns", "need_turn", &fault),
        )
    };
    let reason = |elements: &str, length: usize| {
        let fault = format!("5 to 500 characters, it has {length}");
        (
            "need_turn",
            elements.to_owned(),
            of("reason", "need_turn", &fault),
        )
    };
    let sources = |value: &str| {
        let elements = format!("<sources_found>{value}</sources_found>");
        let fault = format!("an integer of at least 0, it is `{value}`");
        (
            "context_sufficient",
            elements,
            of("sources_found", "context_sufficient", &fault),
        )
    };
    let list = |field: &str, kind: &'static str, value: &str, shown: &str, others: &str| {
        let elements = format!("{others}<{field}>{value}</{field}>");
        let fault = format!("a JSON array of strings such as [\"one\", \"two\"], it is `{shown}`");
        (kind, elements, of(field, kind, &fault))
    };
    let long = "x".repeat(501);
    let blocker = "<blocker>no logs</blocker>";
    for (kind, elements, fault) in [
        (
            "need_turn",
            String::new(),
            "a need_turn signal needs the field `reason`, which is missing".to_owned(),
        ),
        reason("<reason>Test</reason>", 4),
        reason("<reason/>", 0),
        reason("<reason>long enough</reason><reason>no</reason>", 2),
        reason(&format!("<reason>{long}</reason>"), 501),
        turns("0"),
        turns("11"),
        turns("3.5"),
        turns("3."),
        turns("3e0"),
        turns("true"),
        turns("-1"),
        sources("-1"),
        sources("99999999999999999999"),
        sources("NaN"),
        list("source_types", "context_sufficient", "code", "code", "<sources_found>1</sources_found>"),
        list("attempted", "stuck", "[\"a\", 1]", "[\"a\", 1]", blocker),
        list("attempted", "stuck", "null", "null", blocker),
        list(
            "attempted",
            "stuck",
            "<signal type='x'></signal>",
            "&lt;signal type='x'>&lt;/signal>",
            blocker,
        ),
        (
            "stuck",
            format!("<attempted>[]</attempted>{blocker}"),
            of("attempted", "stuck", "at least 1 entry, it has none"),
        ),
        (
            "need_capability",
            "<capability>x</capability><reason>to run it</reason>".to_owned(),
            of("capability", "need_capability", "2 to 100 characters, it has 1"),
        ),
        (
            "need_capability",
            format!(
                "<capability>sh</capability><reason>to run it</reason><workaround>{long}</workaround>"
            ),
            of("workaround", "need_capability", "at most 500 characters, it has 501"),
        ),
        (
            "delegation_recommended",
            "<reason>large</reason><scope>all of it</scope><estimated_tokens>1.5</estimated_tokens>"
                .to_owned(),
            of(
                "estimated_tokens",
                "delegation_recommended",
                "an integer from 100 to 100000, it is `1.5`",
            ),
        ),
        (
            "delegation_recommended",
            "<reason>large</reason><scope>all of it</scope><further_scopes>[\"1\"]</further_scopes>"
                .to_owned(),
            of(
                "further_scopes",
                "delegation_recommended",
                "entries of 5 to 500 characters, one has 1",
            ),
        ),
        (
            "delegation_recommended",
            format!(
                "<reason>large</reason><scope>all of it</scope><further_scopes>{:?}</further_scopes>",
                ["all of it"; 8]
            ),
            of("further_scopes", "delegation_recommended", "at most 7 entries, it has 8"),
        ),
        (
            "delegation_recommended",
            format!(
                "<reason>large</reason><scope>all of it</scope><subagent_type>{}</subagent_type>",
                &long[..51]
            ),
            of("subagent_type", "delegation_recommended", "at most 50 characters, it has 51"),
        ),
        (
            "maybe",
            String::new(),
            format!("the signal type `maybe` is unknown; use one of {TYPES}"),
        ),
        (
            &long[..50],
            String::new(),
            format!("the signal type `{}…` is unknown; use one of {TYPES}", &long[..40]),
        ),
    ] {
        assert_eq!(typed(kind, &elements), Err(fault), "{elements}");
    }
}

#[test]
fn a_block_without_a_type_is_rejected() {
    let fault = format!("the signal has no `type`; use one of {TYPES}");
    check(&[
        (
            "no attribute",
            "<signal><reason>No type</reason></signal>",
            rejected(&fault),
            "",
        ),
        (
            "another attribute",
            "<signal kind='stuck'></signal>",
            rejected(&fault),
            "",
        ),
    ]);
}
