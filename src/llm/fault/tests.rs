use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};

use super::*;
use crate::llm::{Allowance, RateLimits};

/// Names and values of headers.
type HeaderPairs = &'static [(&'static str, &'static str)];

const DATE: (&str, &str) = ("date", "Fri, 21 Nov 2025 12:00:00 GMT");

fn headers(of: HeaderPairs) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    of.iter().map(pair).collect()
}

/// `code class`.
fn describe(fault: &Fault) -> String {
    let class = match fault.class {
        FaultClass::Unavailable { after_ms: None } => "away".to_owned(),
        FaultClass::Unavailable { after_ms: Some(ms) } => format!("away after {ms}"),
        FaultClass::Retryable { after_ms: None } => "retry".to_owned(),
        FaultClass::Retryable { after_ms: Some(ms) } => format!("retry after {ms}"),
        FaultClass::Permanent => "permanent".to_owned(),
        FaultClass::Overloaded { .. } | FaultClass::Cancelled | FaultClass::Bug => {
            panic!("{fault:?}")
        }
    };
    format!("{} {class}", fault.code)
}

#[test]
fn each_status_maps_to_a_fault() {
    for (status, expected) in [
        (301, "bad_request permanent"),
        (400, "bad_request permanent"),
        (401, "unauthorized permanent"),
        (402, "quota permanent"),
        (403, "forbidden permanent"),
        (404, "wrong_route permanent"),
        (405, "wrong_route permanent"),
        (408, "request_timeout retry"),
        (409, "conflict retry"),
        (413, "too_large permanent"),
        (422, "bad_request permanent"),
        (429, "rate_limited away"),
        (500, "server_error retry"),
        (502, "overloaded away"),
        (503, "overloaded away"),
        (504, "overloaded away"),
        (520, "server_error retry"),
        (529, "overloaded away"),
    ] {
        for body in ["", "no JSON", r#"{"error":{"message":"no","type":"x"}}"#] {
            let fault = of_answer(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!(describe(&fault), expected, "{status} with {body}");
        }
    }
}

#[test]
fn error_code_refines_the_status() {
    for (name, status, body, expected) in [
        (
            "context by code",
            400,
            r#"{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            "context permanent",
        ),
        (
            "context by type",
            400,
            r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#,
            "context permanent",
        ),
        (
            "context by words, vLLM",
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            "context permanent",
        ),
        (
            "context by words, Anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            "context permanent",
        ),
        (
            "context by words, an older server",
            500,
            r#"{"error":"the request exceeds the available context size"}"#,
            "context permanent",
        ),
        (
            "words do not count against a code",
            429,
            r#"{"error":{"message":"context window of the rate limit","code":"rate_limit_exceeded"}}"#,
            "rate_limited away",
        ),
        (
            "quota",
            429,
            r#"{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            "quota permanent",
        ),
        (
            "model",
            400,
            r#"{"error":{"message":"x","code":"model_not_found"}}"#,
            "model_not_found permanent",
        ),
        (
            "key",
            400,
            r#"{"error":{"message":"x","code":"invalid_api_key"}}"#,
            "unauthorized permanent",
        ),
        (
            "overload",
            500,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            "overloaded away",
        ),
        (
            "too large by the minute",
            413,
            r#"{"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}"#,
            "too_large permanent",
        ),
        (
            "a code that the status contradicts",
            401,
            r#"{"error":{"message":"x","type":"server_error"}}"#,
            "unauthorized permanent",
        ),
        (
            "Google, in a list",
            429,
            r#"[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"a"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}]}}]"#,
            "rate_limited away after 12500",
        ),
    ] {
        let fault = of_answer(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(describe(&fault), expected, "{name}");
    }
}

#[test]
fn errors_inside_a_reply_are_classified_by_code() {
    for (body, expected) in [
        (
            r#"{"message":"x","type":"overloaded_error"}"#,
            "overloaded away",
        ),
        (
            r#"{"message":"x","code":"rate_limit_exceeded"}"#,
            "rate_limited away",
        ),
        (r#"{"message":"x","code":502}"#, "overloaded away"),
        (r#"{"message":"x","code":"429"}"#, "rate_limited away"),
        (r#"{"msg":"x","status":529,"code":9}"#, "overloaded away"),
        (
            r#"{"message":"Rate limit reached, try again in 1m2.5s.","code":"rate_limit_exceeded"}"#,
            "rate_limited away after 62500",
        ),
        (
            r#"{"message":"x","code":429,"metadata":{"headers":{"Retry-After":"7"}}}"#,
            "rate_limited away after 7000",
        ),
        (
            r#"{"error":{"message":"x","code":429,"retry_after":3}}"#,
            "rate_limited away after 3000",
        ),
        (
            r#"{"message":"Limit reached: 200 requests per day. Retry in 5 minutes"}"#,
            "quota away after 300000",
        ),
        (r#"{"message":"x","code":401}"#, "unauthorized permanent"),
        (r#"{"message":"x","code":7}"#, "server_error retry"),
        (
            r#"{"message":"x","type":"invalid_request_error"}"#,
            "bad_request permanent",
        ),
        (
            r#"{"message":"x","code":"context_length_exceeded"}"#,
            "context permanent",
        ),
        (
            r#"{"message":"maximum context length is 10"}"#,
            "context permanent",
        ),
        (r#""out of memory""#, "server_error retry"),
        ("{}", "server_error retry"),
        ("no JSON", "server_error retry"),
    ] {
        assert_eq!(describe(&in_reply(body)), expected, "{body}");
    }
}

#[test]
fn retry_delay_is_parsed_in_every_form() {
    let tables: &[(&str, HeaderPairs, Option<u64>)] = &[
        ("none", &[DATE], None),
        ("milliseconds", &[("retry-after-ms", "1500.5")], Some(1500)),
        (
            "milliseconds before seconds",
            &[("retry-after-ms", "20"), ("retry-after", "7")],
            Some(20),
        ),
        ("seconds", &[("retry-after", "7")], Some(7000)),
        ("parts of seconds", &[("retry-after", "0.25")], Some(250)),
        (
            "a date",
            &[DATE, ("retry-after", "Fri, 21 Nov 2025 12:01:30 GMT")],
            Some(90_000),
        ),
        (
            "a past date",
            &[DATE, ("retry-after", "Fri, 21 Nov 2025 11:00:00 GMT")],
            Some(0),
        ),
        (
            "a date and no clock",
            &[("retry-after", "Fri, 21 Nov 2025 12:01:30 GMT")],
            None,
        ),
        ("below nothing", &[("retry-after", "-7")], None),
        ("not a number", &[("retry-after", "NaN")], None),
        ("for ever", &[("retry-after", "1e300")], None),
        ("a year", &[("retry-after", "31536000")], Some(86_400_000)),
        ("words", &[("retry-after", "soon")], None),
        (
            "requests used up",
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "6m0s"),
            ],
            Some(360_000),
        ),
        (
            "tokens used up",
            &[
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "120ms"),
            ],
            Some(120),
        ),
        (
            "both",
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "2s"),
            ],
            Some(2000),
        ),
        (
            "not used up",
            &[
                ("x-ratelimit-remaining-requests", "3"),
                ("x-ratelimit-reset-requests", "6m0s"),
            ],
            None,
        ),
        (
            "Anthropic",
            &[
                DATE,
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2025-11-21T12:00:20Z"),
            ],
            Some(20_000),
        ),
        ("seconds alone", &[("x-ratelimit-reset", "4")], Some(4000)),
        (
            "milliseconds since 1970",
            &[DATE, ("x-ratelimit-reset", "1763726405000")],
            Some(5000),
        ),
        (
            "seconds since 1970",
            &[DATE, ("x-ratelimit-reset", "1763726405")],
            Some(5000),
        ),
        (
            "a number beyond all time",
            &[DATE, ("x-ratelimit-reset", "18446744073709551615")],
            Some(86_400_000),
        ),
    ];
    for (name, told, expected) in tables {
        let fault = of_answer(429, &headers(told), b"");
        assert_eq!(
            fault.class,
            FaultClass::Unavailable {
                after_ms: *expected
            },
            "{name}"
        );
    }
    let reset = headers(&[
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1s"),
    ]);
    let unrelated = of_answer(500, &reset, b"");
    assert_eq!(unrelated.class, FaultClass::Retryable { after_ms: None });
}

#[test]
fn should_retry_header_is_honoured_within_reason() {
    let yes: HeaderPairs = &[("x-should-retry", "true")];
    let no: HeaderPairs = &[("x-should-retry", "false")];
    for (status, told, expected) in [
        (429, no, "rate_limited permanent"),
        (500, no, "server_error permanent"),
        (500, yes, "server_error retry"),
        (413, yes, "too_large retry"),
        (400, yes, "bad_request permanent"),
        (401, yes, "unauthorized permanent"),
        (402, yes, "quota permanent"),
    ] {
        let fault = of_answer(status, &headers(told), b"");
        assert_eq!(describe(&fault), expected, "{status} {told:?}");
    }
}

#[test]
fn rate_limit_headers_parse_in_both_dialects() {
    let allowance = |limit, remaining, reset: Option<u64>| Allowance {
        limit,
        remaining,
        reset: reset.map(Duration::from_millis),
    };
    let tables: &[(&str, HeaderPairs, Option<RateLimits>)] = &[
        ("none", &[DATE], None),
        (
            "OpenAI",
            &[
                ("x-ratelimit-limit-requests", "600"),
                ("x-ratelimit-remaining-requests", "599"),
                ("x-ratelimit-reset-requests", "1m0.5s"),
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-tokens", "149984.0"),
                ("x-ratelimit-reset-tokens", "6ms"),
            ],
            Some(RateLimits {
                requests: allowance(Some(600), Some(599), Some(60_500)),
                tokens: allowance(Some(150_000), Some(149_984), Some(6)),
            }),
        ),
        (
            "Anthropic",
            &[
                DATE,
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2025-11-21T12:00:01Z"),
                ("anthropic-ratelimit-input-tokens-limit", "40000"),
                ("anthropic-ratelimit-input-tokens-remaining", "39000"),
                ("anthropic-ratelimit-output-tokens-limit", "8000"),
                ("anthropic-ratelimit-output-tokens-remaining", "7000"),
            ],
            Some(RateLimits {
                requests: allowance(Some(50), Some(49), Some(1000)),
                tokens: allowance(Some(8000), Some(7000), None),
            }),
        ),
        (
            "rubbish",
            &[
                ("x-ratelimit-limit-requests", "many"),
                ("x-ratelimit-limit-tokens", "7"),
            ],
            Some(RateLimits {
                requests: Allowance::default(),
                tokens: allowance(Some(7), None, None),
            }),
        ),
    ];
    for (name, told, expected) in tables {
        assert_eq!(limits(&headers(told)), *expected, "{name}");
    }
}

#[test]
fn go_durations_are_parsed() {
    for (text, expected) in [
        ("1s", Some(1000)),
        ("6m0s", Some(360_000)),
        ("1h2m3.5s", Some(3_723_500)),
        ("120ms", Some(120)),
        ("1d", Some(86_400_000)),
        ("1500µs", Some(1)),
        ("", None),
        ("s", None),
        ("5", None),
        ("5x", None),
        ("1..2s", None),
        ("99999999999999999999999999d", None),
    ] {
        let read = delay::span(text).map(|span| span.as_millis());
        assert_eq!(read, expected, "{text:?}");
    }
}

#[test]
fn fault_detail_quotes_the_provider() {
    for (body, expected) in [
        (
            r#"{"error":{"message":"No such model.","type":"t","code":"C1"}}"#,
            "the provider responded with status 400: No such model. (C1)",
        ),
        (
            r#"{"error":{"message":"code c here","code":"c"}}"#,
            "the provider responded with status 400: code c here",
        ),
        (
            r#"{"detail":[{"loc":["body"]}]}"#,
            r#"the provider responded with status 400: [{"loc":["body"]}]"#,
        ),
        (
            r#"{"detail":"Not here"}"#,
            "the provider responded with status 400: Not here",
        ),
        (
            r#"{"error":"text"}"#,
            "the provider responded with status 400: text",
        ),
        (
            "plain words",
            "the provider responded with status 400: plain words",
        ),
        ("", "the provider responded with status 400"),
        ("[]", "the provider responded with status 400"),
        ("7", "the provider responded with status 400"),
    ] {
        assert_eq!(
            of_answer(400, &HeaderMap::new(), body.as_bytes()).detail,
            expected
        );
    }
}

#[test]
fn delays_in_words_are_parsed() {
    for (text, expected) in [
        (
            "Please try again in 7.66s. Visit https://example.com",
            Some(7660),
        ),
        ("please TRY AGAIN IN 6m0s", Some(360_000)),
        ("Please retry after 26 seconds.", Some(26_000)),
        ("retry in 34.074824224s.", Some(34_074)),
        ("try again in 2 minutes, or", Some(120_000)),
        ("try again in 1 hour", Some(3_600_000)),
        ("try again in 1 hr", Some(3_600_000)),
        ("try again in 2 days", Some(172_800_000)),
        ("try again in 250 ms", Some(250)),
        ("try again in 250 milliseconds", Some(250)),
        ("try again in a while", None),
        ("try again later", None),
        ("try again in", None),
        ("", None),
    ] {
        let read = delay::in_words(text).map(|span| span.as_millis());
        assert_eq!(read, expected, "{text:?}");
    }
}

#[test]
fn delays_of_the_server_behind_a_gateway_count() {
    let body = r#"{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,
        "metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Reset":"1763726405000"}}}}"#;
    let dated = of_answer(429, &headers(&[DATE]), body.as_bytes());
    // A limit of a day is not lifted within seconds.
    assert_eq!(describe(&dated), "quota permanent");
    let later = body.replace("1763726405000", "1763730000000");
    let dated = of_answer(429, &headers(&[DATE]), later.as_bytes());
    assert_eq!(describe(&dated), "quota away after 3600000");
    assert!(!dated.is_outage());
    let undated = of_answer(429, &HeaderMap::new(), body.as_bytes());
    assert_eq!(describe(&undated), "quota permanent");
}

#[test]
fn words_in_place_of_a_reply_are_told() {
    for (json, expected) in [
        (
            r#"{"success":false,"message":"something odd"}"#,
            Some("the provider's response contains no reply: something odd"),
        ),
        (
            r#"{"error_code":17,"error_msg":"odd"}"#,
            Some("the provider's response contains no reply: odd"),
        ),
        (
            r#"{"msg":"odd","code":"x"}"#,
            Some("the provider's response contains no reply: odd (x)"),
        ),
        (r#"{"choices":[]}"#, None),
        (
            r#"{"type":"message_start","message":{"role":"assistant"}}"#,
            None,
        ),
        (r#"{"message":"cut o"#, None),
    ] {
        let told = instead_of_reply(json).map(|fault| fault.detail);
        assert_eq!(told.as_deref(), expected, "{json}");
    }
}
