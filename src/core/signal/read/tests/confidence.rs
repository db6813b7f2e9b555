//! Confidence: element, attribute, default.

use super::*;

#[test]
fn confidence_prefers_element_then_attribute_then_default() {
    let [low, high] = [
        "<confidence>0.1</confidence>",
        "<confidence>0.9</confidence>",
    ];
    for (name, attribute, elements, expected) in [
        ("none", "", String::new(), 0.5),
        (
            "element",
            "",
            "<confidence> 0.85 </confidence>".to_owned(),
            0.85,
        ),
        ("attribute", "confidence='0.95'", String::new(), 0.95),
        (
            "attribute in capitals",
            "CONFIDENCE=\"0.95\"",
            String::new(),
            0.95,
        ),
        ("the element wins", "confidence='0.9'", low.to_owned(), 0.1),
        (
            "of a doubled element the first counts",
            "",
            format!("{low}{high}"),
            0.1,
        ),
        (
            "a first element that is no number leaves it to the attribute",
            "confidence='0.8'",
            format!("<confidence>high</confidence>{low}"),
            0.8,
        ),
        (
            "not a number",
            "confidence='0.9'",
            "<confidence>NaN</confidence>".to_owned(),
            0.9,
        ),
        (
            "infinite",
            "confidence='inf'",
            "<confidence>1e999</confidence>".to_owned(),
            0.5,
        ),
        (
            "empty",
            "confidence=''",
            "<confidence></confidence>".to_owned(),
            0.5,
        ),
        (
            "clamped from above",
            "",
            "<confidence>1.5</confidence>".to_owned(),
            1.0,
        ),
        (
            "clamped from below",
            "confidence='-0.5'",
            String::new(),
            0.0,
        ),
    ] {
        let block = format!(
            "<signal type='need_turn' {attribute}><reason>enough</reason>{elements}</signal>"
        );
        let reading = read(&block, Timestamp::default());
        let got = reading.finding.signal().map(|signal| signal.confidence);
        assert_eq!(got, Some(expected), "{name}");
    }
}

#[test]
fn confidence_is_never_negative_zero() {
    let block = "<signal type='need_turn' confidence='-0'><reason>enough</reason></signal>";
    let reading = read(block, Timestamp::default());
    assert!(
        reading
            .finding
            .signal()
            .unwrap()
            .confidence
            .is_sign_positive()
    );
}
