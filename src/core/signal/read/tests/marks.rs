//! Tokens of chat templates, and the format of gpt-oss with and without its marks.

use super::*;

const BLOCK: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";
const LATER: &str = "<signal type='need_turn'><reason>the later one</reason></signal>";

#[test]
fn tokens_of_chat_templates_are_no_text() {
    for (name, reply, text) in [
        ("at the end", "Done.<|im_end|>", "Done."),
        ("of another template", "Done.<|eot_id|>", "Done."),
        ("as a tag", "Done.</s>", "Done."),
        ("of Gemma", "Done.<end_of_turn>\n", "Done."),
        (
            "of DeepSeek",
            "Done.<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
            "Done.",
        ),
        (
            "before an invented turn",
            "Done.<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\nYes.",
            "Done.",
        ),
        (
            "before an invented turn alone",
            "Done.\n<|im_start|>user\nAnd?",
            "Done.",
        ),
        (
            "before another document",
            "Done.<|endoftext|>Human: And?",
            "Done.",
        ),
        (
            "before an instruction",
            "Done. [INST] And? [/INST] Yes.",
            "Done.",
        ),
        ("Phi's", "Done.<|end|><|user|>And?<|end|>", "Done."),
        (
            "Llama's",
            "Done.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd?",
            "Done.",
        ),
        (
            "a header first",
            "<|im_start|>assistant\nDone.<|im_end|>",
            "Done.",
        ),
        (
            "Llama's header first",
            "<|start_header_id|>assistant<|end_header_id|>\n\nDone.",
            "Done.",
        ),
        (
            "Gemma's header first",
            "<start_of_turn>model\nDone.",
            "Done.",
        ),
        ("its beginning first", "<|begin_of_text|>Done.", "Done."),
        ("the user's turn first", "<|im_start|>user\nAnd?", ""),
        ("at both ends", "<s>Done.</s>", "Done."),
        ("struck at the beginning", "<s>Old</s> new.", "Old</s> new."),
        (
            "struck at the end",
            "New, not <s>old</s>",
            "New, not <s>old</s>",
        ),
        ("padding", "Done.<pad><pad><eos>", "Done."),
        (
            "mentioned",
            "An <eos> ends it. So be it.",
            "An  ends it. So be it.",
        ),
        ("MiniMax's", "Done.[e~[\n]~b]user\nAnd?", "Done."),
        (
            "a thought of Gemma 4",
            "<|channel>thought\nhm <channel|>Done.<turn|>",
            "Done.",
        ),
        (
            "a thought of Seed",
            "<seed:think>hm</seed:think>Done.",
            "Done.",
        ),
        (
            "around the answer",
            "<|begin_of_box|>42<|end_of_box|> it is.",
            "42 it is.",
        ),
        (
            "a thought between tokens",
            "<|START_THINKING|>hm<|END_THINKING|>Done.",
            "Done.",
        ),
    ] {
        assert_eq!(interpret(reply), (Is::Nothing, text.to_owned()), "{name}");
    }
    check(&[
        (
            "what follows the end is not read",
            &format!("Done.<|im_end|>\n<|im_start|>user\n{LATER}"),
            Is::Nothing,
            "Done.",
        ),
        (
            "what precedes it is",
            &format!("Done. {BLOCK}<|im_end|>{LATER}"),
            need("a good reason"),
            "Done.",
        ),
    ]);
}

#[test]
fn an_answer_may_explain_tokens_in_code() {
    for (name, text) in [
        (
            "in inline code",
            "`<|im_end|>` and `</s>` end a turn, `[INST]` begins one.",
        ),
        (
            "in a fence",
            "```\n<|im_start|>user\nHi<|im_end|>\n</s>\n```\nThat is how.",
        ),
        ("HTML", "It was <s>four</s> five."),
        ("pipes", "a <| b |> c <||> [1] [INSTANCE] <span> <sub>"),
        ("half a token at the end", "a <|im_"),
        ("half a bracket at the end", "a [INS"),
    ] {
        assert_eq!(interpret(text), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn channels_of_harmony_are_told_apart() {
    let final_of = |text: &str| format!("<|channel|>final<|message|>{text}<|return|>");
    check(&[
        (
            "an analysis, then the answer",
            &format!(
                "<|channel|>analysis<|message|>hm {LATER}<|end|><|start|>assistant{}",
                final_of(&format!("Done. {BLOCK}"))
            ),
            need("a good reason"),
            "Done.",
        ),
        ("the answer alone", &final_of("Done."), Is::Nothing, "Done."),
        (
            "the format of the answer",
            "<|channel|>final <|constrain|>JSON<|message|>{\"a\":1}",
            Is::Nothing,
            "{\"a\":1}",
        ),
        (
            "an analysis alone",
            &format!("<|channel|>analysis<|message|>hm {LATER}<|end|>"),
            Is::Nothing,
            "",
        ),
        (
            "words before a call that is not offered",
            "<|channel|>commentary<|message|>I search.<|end|><|start|>assistant<|channel|>final<|message|>Done.",
            Is::Nothing,
            "I search.Done.",
        ),
        (
            "an invented user",
            &format!("{}<|start|>user<|message|>And?", final_of("Done.")),
            Is::Nothing,
            "Done.",
        ),
        (
            "a fence begins after a mark",
            &format!("<|channel|>final<|message|>```\n{LATER}\n```\nThat is how. {BLOCK}"),
            need("a good reason"),
            &format!("```\n{LATER}\n```\nThat is how."),
        ),
        (
            "without marks",
            &format!("analysisThe user asks. {LATER}assistantfinalDone. {BLOCK}"),
            need("a good reason"),
            "Done.",
        ),
        (
            "a word",
            "analysisResult is the field that the assistant reads.",
            Is::Nothing,
            "analysisResult is the field that the assistant reads.",
        ),
        (
            "a sentence",
            "analysis of assistantfinal is hard",
            Is::Nothing,
            "analysis of assistantfinal is hard",
        ),
    ]);
}
