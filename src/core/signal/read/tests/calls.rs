//! Calls that a model writes as text.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::signal::{Stripper, view::STEPS};

const NEED: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";
const DONE: &str = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>";
const CALL: &str =
    "<tool_call>\n{\"name\": \"code_search\", \"arguments\": {\"query\": \"x\"}}\n</tool_call>";
const BARE: &str = "{\"name\": \"code_search\", \"arguments\": {\"query\": \"x\"}}";

fn tools() -> Arc<[ToolSpec]> {
    ["code_search", "weather", "now"]
        .map(|name| ToolSpec::new(name, "Does it.", json!({"type": "object"})))
        .into()
}

/// The reading, after a check that a stream shows the same.
fn reading(reply: &str) -> ReplyReading {
    let read = read_reply(reply, tools(), true, Timestamp::default());
    for size in [1, 3, 7, 1000] {
        let mut stripper = Stripper::for_tools(tools(), true);
        let chars: Vec<char> = reply.chars().collect();
        let mut shown: String = chars
            .chunks(size)
            .map(|chunk| stripper.push(&chunk.iter().collect::<String>()))
            .collect();
        shown += &stripper.finish();
        assert_eq!(shown, read.reading.text, "in pieces of {size}: {reply}");
    }
    read
}

/// The calls as `name(arguments)`, the visible text, and the text without the calls.
fn called(reply: &str) -> (String, String, String) {
    let read = reading(reply);
    let calls = read.calls.iter();
    let calls: Vec<_> = calls
        .map(|call| format!("{}({})", call.name, call.arguments))
        .collect();
    let mut kept = reply.to_owned();
    for cut in read.cuts.iter().rev() {
        kept.replace_range(cut.clone(), "");
    }
    (calls.join(" "), read.reading.text, kept)
}

#[test]
fn a_marked_call_is_one_of_whatever_tool() {
    for call in [
        CALL.replace("code_search", "grep"),
        "<function=grep>\n<parameter=query>\nx\n</parameter>\n</function>".to_owned(),
    ] {
        let (calls, seen, kept) = called(&call);
        let expected = "grep({\"query\":\"x\"})";
        assert_eq!((&*calls, &*seen, &*kept), (expected, "", ""), "{call}");
    }
}

#[test]
fn calls_are_read_in_the_forms_of_all_templates() {
    let one = r#"code_search({"query":"x"})"#;
    let two = r#"code_search({"query":"x"}) weather({"city":"Bern"})"#;
    let args = r#"{"query":"x"}"#;
    let bar = '\u{ff5c}';
    let parameter = "<parameter=query>\nx\n</parameter>\n";
    for (name, reply, calls) in [
        ("Hermes and Qwen", CALL.to_owned(), one),
        ("unclosed", CALL.replace("</tool_call>", ""), one),
        ("two", format!("{CALL}\n{}", CALL.replace("code_search", "weather").replace("query", "city").replace("x\"}", "Bern\"}")), two),
        ("Qwen3-Coder", format!("<tool_call>\n<function=code_search>\n{parameter}</function>\n</tool_call>"), one),
        ("without a wrapper", format!("<function=code_search>\n{parameter}</function>"), one),
        ("Llama's tag", format!("<function=code_search>{args}</function>"), one),
        ("an older tag", format!("<function_call>{BARE}</function_call>"), one),
        ("bare JSON", BARE.to_owned(), one),
        ("indented", format!("{{\n  \"tool\": \"code_search\",\n  \"parameters\": {args}\n}}"), one),
        ("a function", format!(r#"{{"type": "function", "function": {{"name": "code_search", "arguments": {args}}}}}"#), one),
        ("arguments as text", r#"{"name": "code_search", "arguments": "{\"query\":\"x\"}"}"#.to_owned(), one),
        ("arguments first", format!(r#"{{"arguments": {args}, "name": "code_search"}}"#), one),
        ("input", format!(r#"{{"id": "1", "name": "code_search", "input": {args}}}"#), one),
        ("a list", format!(r#"[{BARE}, {{"name": "weather", "parameters": {{"city":"Bern"}}}}]"#), two),
        ("an object with a list", format!(r#"{{"tool_calls": [{BARE}]}}"#), one),
        ("in a fence", format!("```json\n{BARE}\n```"), one),
        ("tagged in a fence", format!("```xml\n{CALL}\n```\n"), one),
        ("in an unclosed fence", format!("```\n{BARE}"), one),
        ("Kimi", format!("<|tool_calls_section_begin|><|tool_call_begin|>functions.code_search:0<|tool_call_argument_begin|>{args}<|tool_call_end|><|tool_calls_section_end|>"), one),
        ("Kimi, two", format!("<|tool_calls_section_begin|><|tool_call_begin|>functions.code_search:0<|tool_call_argument_begin|>{args}<|tool_call_end|><|tool_call_begin|>functions.weather:1<|tool_call_argument_begin|>{{\"city\":\"Bern\"}}<|tool_call_end|><|tool_calls_section_end|>"), two),
        ("Llama", format!("<|python_tag|>{}<|eom_id|>", BARE.replace("arguments", "parameters")), one),
        ("Mistral", format!("[TOOL_CALLS][{BARE}]</s>"), one),
        ("a newer Mistral", format!("[TOOL_CALLS]code_search[ARGS]{args}"), one),
        ("two of it", format!("[TOOL_CALLS]code_search[ARGS]{args}[TOOL_CALLS]weather[ARGS]{{\"city\":\"Bern\"}}</s>"), two),
        ("DeepSeek", format!("<{bar}tool▁calls▁begin{bar}><{bar}tool▁call▁begin{bar}>function<{bar}tool▁sep{bar}>code_search\n```json\n{args}\n```<{bar}tool▁call▁end{bar}><{bar}tool▁calls▁end{bar}>"), one),
        ("DeepSeek 3.1", format!("<{bar}tool▁calls▁begin{bar}><{bar}tool▁call▁begin{bar}>code_search<{bar}tool▁sep{bar}>{args}<{bar}tool▁call▁end{bar}><{bar}tool▁calls▁end{bar}><{bar}end▁of▁sentence{bar}>"), one),
        ("DeepSeek 3.2", format!("<{bar}DSML{bar}function_calls>\n<{bar}DSML{bar}invoke name=\"code_search\">\n<{bar}DSML{bar}parameter name=\"query\" string=\"true\">x</{bar}DSML{bar}parameter>\n</{bar}DSML{bar}invoke>\n</{bar}DSML{bar}function_calls>"), one),
        ("harmony", format!("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.code_search <|constrain|>json<|message|>{args}<|call|>"), one),
        ("harmony, its receiver first", format!("<|start|>assistant to=functions.code_search<|channel|>commentary<|message|>{args}<|call|>"), one),
        ("harmony without marks", format!("analysisHm.assistantcommentary to=functions.code_search json{args}"), one),
        ("Anthropic and MiniMax", "<minimax:tool_call>\n<invoke name=\"code_search\">\n<parameter name=\"query\">x</parameter>\n</invoke>\n</minimax:tool_call>".to_owned(), one),
        ("function_calls", "<function_calls>\n<invoke name=\"code_search\">\n<parameter name=\"query\">x</parameter>\n</invoke>\n<invoke name=\"weather\">\n<parameter name=\"city\">Bern</parameter>\n</invoke>\n</function_calls>".to_owned(), two),
        ("GLM", "<tool_call>code_search\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n</tool_call>".to_owned(), one),
        ("GLM without arguments", "<tool_call>now\n</tool_call>".to_owned(), "now({})"),
        ("Phi", format!("<|tool_call|>[{BARE}]<|/tool_call|>"), one),
        ("Granite", format!("<tool_call>[{BARE}]"), one),
        ("InternLM", format!("<|action_start|><|plugin|>\n{BARE}<|action_end|>"), one),
        ("Cohere", format!("<|START_ACTION|>[\n{{\"tool_call_id\": \"0\", \"tool_name\": \"code_search\", \"parameters\": {args}}}\n]<|END_ACTION|>"), one),
        ("Llama 4", "[code_search(query=\"x\")]".to_owned(), one),
        ("Llama 4, two", "[code_search(query=\"x\"), weather(city='Bern')]".to_owned(), two),
        ("Llama's Python", "<|python_tag|>code_search.call(query=\"x\")".to_owned(), one),
        ("Gemma", "```tool_code\ncode_search(query=\"x\")\n```".to_owned(), one),
        ("Gemma's print", "```tool_code\nprint(default_api.code_search(query=\"x\"))\n```".to_owned(), one),
        ("Gemma 4", "<|tool_call>call:code_search{query:<|\"|>x<|\"|>}<tool_call|>".to_owned(), one),
        ("FunctionGemma", "<start_function_call>call:code_search{query:<escape>x<escape>}<end_function_call>".to_owned(), one),
        ("Python in a tag", "<tool_call>code_search(query='x')</tool_call>".to_owned(), one),
        ("Python's quotes", "<tool_call>{'name': 'code_search', 'arguments': {'query': 'x'}}</tool_call>".to_owned(), one),
        ("ReAct", format!("Action: code_search\nAction Input: {args}"), one),
        ("Phi 4", format!("functools[{BARE}]"), one),
        ("Nemotron", format!("<TOOLCALL>[{BARE}]</TOOLCALL>"), one),
        ("LongCat", format!("<longcat_tool_call>{BARE}</longcat_tool_call>"), one),
        ("a name in a tag", format!("<use_tool>\n<name>code_search</name>\n<arguments>{args}</arguments>\n</use_tool>"), one),
        ("code in a tag", format!("<tool_code>{{\"tool\":\"code_search\",\"args\":{args}}}</tool_code>"), one),
        ("without arguments", "<tool_call>{\"name\": \"now\"}</tool_call>".to_owned(), "now({})"),
        ("a bare tool", r#"{"tool": "code_search", "query": "x"}"#.to_owned(), one),
    ] {
        let (got, text, kept) = called(&reply);
        assert_eq!((got.as_str(), text.as_str()), (calls, ""), "{name}: {reply}");
        assert!(!kept.contains("code_search"), "{name}: {kept}");
        let before = format!("I search.\n{reply}");
        if !reply.starts_with("analysis") {
            let (got, text, _) = called(&before);
            assert_eq!((got.as_str(), text.as_str()), (calls, "I search."), "{name}: {before}");
        }
        if !reply.ends_with(['>', 't']) || reply.ends_with("</tool_call>") {
            let (got, ..) = called(&format!("{reply}\n{NEED}"));
            assert_eq!(got, calls, "{name}, with a signal");
        }
    }
}

#[test]
fn text_and_thoughts_before_a_call_stay() {
    let inside = CALL.replace("\"x\"", "\"<signal type='stuck'></signal>\"");
    for (name, reply, text, kept) in [
        (
            "words",
            format!("I search.\n{CALL}"),
            "I search.",
            "I search.\n",
        ),
        (
            "on its line",
            format!("I search. {CALL}"),
            "I search.",
            "I search. ",
        ),
        (
            "four backticks after it",
            format!("`x` {}````", CALL.replace('\n', "")),
            "`x`",
            "`x` ",
        ),
        (
            "a thought",
            format!("<think>hm {CALL}</think>I search.\n{CALL}"),
            "I search.",
            &format!("<think>hm {CALL}</think>I search.\n"),
        ),
        (
            "a signal after it",
            format!("{CALL}\n{NEED}"),
            "",
            &format!("\n{NEED}"),
        ),
        ("signals in it", inside, "", ""),
        (
            "words between two",
            format!("One:\n{CALL}\nTwo:\n{CALL}"),
            "One:\n\nTwo:",
            "One:\n\nTwo:\n",
        ),
        (
            "an end, and an invented result",
            format!("{CALL}<|im_end|>\n<|im_start|>user\nresult"),
            "",
            "",
        ),
    ] {
        let (calls, seen, rest) = called(&reply);
        assert!(calls.starts_with("code_search("), "{name}: {calls}");
        assert_eq!((seen.as_str(), rest.as_str()), (text, kept), "{name}");
    }
    let reply = format!("hm {CALL} no.</think>\n{CALL}");
    let read = read_reply(&reply, tools(), true, Timestamp::default());
    assert_eq!((read.calls.len(), &*read.reading.text), (1, ""));
}

#[test]
fn an_answer_may_show_a_call() {
    let fenced = format!("```json\n{BARE}\n```");
    for (name, text) in [
        (
            "in inline code",
            format!("Write `{BARE}` or `<tool_call>`."),
        ),
        (
            "in a fence with words after it",
            format!("A call is:\n{fenced}\nThat is all."),
        ),
        (
            "tagged in a fence with words after it",
            format!("```\n{CALL}\n```\nThat is all."),
        ),
        (
            "in two fences",
            format!("{fenced}\nor\n{fenced}\nThat is all."),
        ),
        (
            "a line of advice",
            "Next.\nAction: use code_search.".to_owned(),
        ),
        (
            "a function that is named",
            "code_search(query=\"x\") finds it.".to_owned(),
        ),
        (
            "an invented result",
            format!("<tool_response>{BARE}</tool_response>"),
        ),
        (
            "bare, of no offered tool",
            BARE.replace("code_search", "Bern"),
        ),
        (
            "a name without arguments",
            "{\"name\": \"weather\", \"people\": 3}".to_owned(),
        ),
        (
            "other JSON",
            "{\"city\": \"weather\", \"arguments\": {}}".to_owned(),
        ),
        ("in JSON", format!("{{\"example\": {BARE}}}")),
        (
            "JSON with words after it",
            format!("For example:\n{BARE}\nThat is all."),
        ),
        (
            "a tag in a sentence",
            "The <tool_call> tag wraps a call of a tool such as code_search.".to_owned(),
        ),
        ("a tag at the end", "It begins with <tool_call>".to_owned()),
        (
            "another tag",
            "<toolbox> and <functional> and <invoker>".to_owned(),
        ),
    ] {
        let read = reading(&text);
        assert_eq!((read.calls.len(), read.cuts.len()), (0, 0), "{name}");
        assert_eq!(read.reading.finding, Finding::Nothing, "{name}");
        assert_eq!(read.reading.text, text, "{name}");
        if !text.contains("no offered") {
            let (calls, seen, _) = called(&format!("{text}\n{DONE}"));
            assert_eq!((calls, seen), (String::new(), text), "{name}, as an answer");
        }
    }
    for (name, text) in [
        ("in a fence", format!("A call is:\n{fenced}")),
        ("without a fence", format!("A call is:\n{CALL}")),
        ("between words", format!("A call is:\n{CALL}\nThat is all.")),
        ("broken", "A call is: <tool_call>code_search(…)".to_owned()),
    ] {
        let (calls, seen, _) = called(&format!("{text}\n{DONE}"));
        assert_eq!((calls, seen), (String::new(), text), "{name}");
    }
    let read = read_reply(BARE, tools(), false, Timestamp::default());
    assert_eq!(
        (read.calls.len(), &*read.reading.text),
        (0, BARE),
        "an answer in JSON"
    );
}

#[test]
fn calls_that_cannot_be_read_are_near_misses() {
    let unread = "the call of `code_search` in its text cannot be read";
    let followed = "its text has a call of a tool, and goes on after it";
    for (name, reply, reason, text) in [
        (
            "words for values",
            "<tool_call>{'name': 'code_search', 'arguments': {'query': x}}</tool_call>".to_owned(),
            unread,
            "",
        ),
        (
            "cut",
            "I search.\n<tool_call>\n{\"name\": \"code_search\", \"argum".to_owned(),
            unread,
            "I search.",
        ),
        ("no colon", BARE.replace("\": {", "\" {"), unread, ""),
        (
            "in a fence",
            format!("```json\n{}\n```", BARE.replace("\": {", "\" {")),
            unread,
            "",
        ),
        (
            "a call in Python",
            "<|python_tag|>code_search.call(\"x\")".to_owned(),
            unread,
            "",
        ),
        (
            "an open element",
            "<function=code_search>\n<parameter=query>\nx\n</function>".to_owned(),
            unread,
            "",
        ),
        (
            "with a signal",
            format!("<tool_call>code_search(x)</tool_call>\n{NEED}"),
            unread,
            "",
        ),
        (
            "words after it",
            format!("{CALL}\nI wait."),
            followed,
            "I wait.",
        ),
        (
            "words after bare JSON",
            format!("{BARE}\nThis call searches."),
            followed,
            "This call searches.",
        ),
        (
            "an invented result",
            format!("I search.\n{CALL}\nResult: none."),
            followed,
            "I search.\n\nResult: none.",
        ),
    ] {
        let read = reading(&reply);
        let rejection = read
            .reading
            .finding
            .rejection()
            .unwrap_or_else(|| panic!("{name}"));
        assert_eq!(rejection.reason, reason, "{name}");
        assert!(rejection.is_of_call(), "{name}");
        assert!(
            reply.contains(&rejection.raw_xml),
            "{name}: {}",
            rejection.raw_xml
        );
        assert_eq!((read.calls.len(), read.cuts.len()), (0, 0), "{name}");
        assert_eq!(read.reading.text, text, "{name}");
    }
}

#[test]
fn unreadable_calls_cost_no_more_than_others() {
    for unit in [
        "<tool_call>{\"name\": \"",
        "<tool_call>code_search{",
        "<function=code_search><parameter=a>",
        "<tool_call>code_search",
        "\n{\"name\": \"code_search\"",
        "[TOOL_CALLS][",
        "<|tool_call_begin|>",
        "```\n{\"name\": \"code_search\", \"arguments\": {}}\n```\n",
        "<s>",
        "[/THINK]",
        "◁",
        "[",
        "<|",
    ] {
        let reply = unit.repeat((1 << 18) / unit.len());
        STEPS.set(0);
        let read = read_reply(&reply, tools(), true, Timestamp::default());
        assert!(STEPS.get() <= 16 * reply.len(), "{unit}: {}", STEPS.get());
        assert!(read.reading.text.len() <= reply.len(), "{unit}");
    }
}

#[test]
fn a_call_is_the_one_that_its_marks_name() {
    let qwen = "<tool_call>weather\n<arg_key>city</arg_key>\n\
                <arg_value>code_search(query=1)</arg_value>\n</tool_call>";
    let foreign = "<\u{ff5c}DSML\u{ff5c}invoke name=\"grep\">\n\
                   <\u{ff5c}DSML\u{ff5c}parameter name=\"q\">x</\u{ff5c}DSML\u{ff5c}parameter>\n\
                   </\u{ff5c}DSML\u{ff5c}invoke>";
    for (reply, expected) in [
        (
            qwen.to_owned(),
            "weather({\"city\":\"code_search(query=1)\"})",
        ),
        (
            "The <tool_call> tag wraps a call such as now().".to_owned(),
            "",
        ),
        (format!("A call is:\n{CALL}\n```\n{DONE}\n```"), ""),
        (format!("```\nx\n```\n{BARE}\nThat is a call."), ""),
        (
            r#"{"tool": "weather", "id": 7}"#.to_owned(),
            "weather({\"id\":7})",
        ),
        (foreign.to_owned(), "grep({\"q\":\"x\"})"),
    ] {
        let (calls, ..) = called(&reply);
        assert_eq!(calls, expected, "{reply}");
        let finding = reading(&reply).reading.finding;
        assert!(finding.rejection().is_none(), "{reply}: {finding:?}");
    }
    let odd = format!("{CALL}\n<tool_call>code_search(x)</tool_call>");
    let finding = reading(&odd).reading.finding;
    let reason = finding.rejection().map(|rejection| &*rejection.reason);
    assert!(
        reason.is_some_and(|reason| reason.contains("cannot be read")),
        "{finding:?}"
    );
}
