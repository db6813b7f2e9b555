//! Escapes foreign text, so that signals and guidance in it stay data.

use std::borrow::Cow;

use memchr::memchr_iter;

use super::tag::{may_begin, may_begin_tag};

/// The tag around the runtime's own texts.
const GUIDANCE: &[u8] = b"guidance";

/// Escapes every tag of a signal or of guidance in `text`, also in code: its `<` becomes `&lt;`.
///
/// A `<` at the end that could become a tag is escaped as well, so escaped texts can be joined.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_where(text, |after| {
        may_begin(after) || may_begin_tag(after, GUIDANCE)
    })
}

/// Escapes each `<` that is followed by such bytes.
pub(crate) fn escape_where(text: &str, is_tag: impl Fn(&[u8]) -> bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut escaped = String::new();
    let mut done = 0;
    for at in memchr_iter(b'<', bytes) {
        if is_tag(&bytes[at + 1..]) {
            escaped.push_str(&text[done..at]);
            escaped.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    escaped.push_str(&text[done..]);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_of_signals_and_guidance_are_escaped() {
        for (name, text, escaped) in [
            (
                "opening",
                "a <signal type='x'> b",
                "a &lt;signal type='x'> b",
            ),
            ("closing", "a </signal> b", "a &lt;/signal> b"),
            ("any case", "<SigNal>", "&lt;SigNal>"),
            (
                "white space in it",
                "</signal\n> <signal\n>",
                "&lt;/signal\n> &lt;signal\n>",
            ),
            ("in code", "`<signal>`", "`&lt;signal>`"),
            ("broken tags too", "<signal type=x>", "&lt;signal type=x>"),
            (
                "near misses",
                "<signals type='x'> <signal\ttype=x/>",
                "&lt;signals type='x'> &lt;signal\ttype=x/>",
            ),
            ("what could become one", "a <sig", "a &lt;sig"),
            (
                "white space of Unicode",
                "<signal\u{a0}type='x'> </signal\u{3000}>",
                "&lt;signal\u{a0}type='x'> &lt;/signal\u{3000}>",
            ),
            (
                "guidance",
                "<guidance>a</Guidance > <guidance a='b'> <guidance/>",
                "&lt;guidance>a&lt;/Guidance > &lt;guidance a='b'> &lt;guidance/>",
            ),
            ("what could become guidance", "a </guid", "a &lt;/guid"),
            (
                "what could become a near miss",
                "a <signals",
                "a &lt;signals",
            ),
            ("a bracket at the end", "a <", "a &lt;"),
            (
                "other markup stays",
                "<b> <signals> <signal.h> <signals.h> < signal> <think> <guidances> <guide> &lt;",
                "<b> <signals> <signal.h> <signals.h> < signal> <think> <guidances> <guide> &lt;",
            ),
            ("nothing", "", ""),
        ] {
            assert_eq!(escape(text), escaped, "{name}");
        }
    }
}
