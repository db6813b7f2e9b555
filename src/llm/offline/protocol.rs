//! The signals that the offline model ends its replies with, written so that they are valid
//! whatever the values hold (spec 2).
//!
//! Values may come from questions, paths and tool results. **Invariant:** no `<`, `>` or backtick
//! and no line break gets into a block, and every text field has 5 to 500 characters.

use std::fmt::Write;

const LONGEST: usize = 500;
const SHORTEST: usize = 5;

/// How a reply says it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stand {
    NeedTurn {
        reason: String,
    },
    Sufficient {
        sources_found: usize,
        source_types: Vec<&'static str>,
    },
    Partial {
        missing: String,
        caveat: Option<String>,
    },
    Stuck {
        attempted: Vec<String>,
        blocker: String,
        suggestions: Vec<String>,
    },
}

/// A confidence in hundredths, so that no rounding differs between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent(pub(super) u32);

/// The block, alone on its lines.
pub(super) fn signal(stand: &Stand, confidence: Percent) -> String {
    let mut block = Block::open(stand.name());
    match stand {
        Stand::NeedTurn { reason } => block.field("reason", &value(reason)),
        Stand::Sufficient {
            sources_found,
            source_types,
        } => {
            block.field("sources_found", &sources_found.to_string());
            if !source_types.is_empty() {
                block.field("source_types", &list(source_types));
            }
        }
        Stand::Partial { missing, caveat } => {
            block.field("missing", &value(missing));
            if let Some(caveat) = caveat {
                block.field("caveat", &value(caveat));
            }
        }
        Stand::Stuck {
            attempted,
            blocker,
            suggestions,
        } => {
            block.field("attempted", &list(attempted));
            block.field("blocker", &value(blocker));
            block.field("suggestions", &list(suggestions));
        }
    }
    block.close(confidence)
}

impl Stand {
    const fn name(&self) -> &'static str {
        match self {
            Self::NeedTurn { .. } => "need_turn",
            Self::Sufficient { .. } => SUFFICIENT,
            Self::Partial { .. } => "partial_answer",
            Self::Stuck { .. } => STUCK,
        }
    }
}

const STUCK: &str = "stuck";
const SUFFICIENT: &str = "context_sufficient";

/// Whether a reply of ours ended with `stuck`.
pub(super) fn is_stuck(reply: &str) -> bool {
    reply
        .rfind("<signal")
        .is_some_and(|at| reply[at..].starts_with(&opening(STUCK)))
}

/// A reply without the signal at its end, and whether that said that it is a whole answer.
pub(super) fn without_signal(reply: &str) -> (String, bool) {
    let at = reply.rfind("\n<signal").unwrap_or(reply.len());
    let (body, signal) = reply.split_at(at);
    let is_whole = signal.contains(&opening(SUFFICIENT));
    (body.trim().to_owned(), is_whole)
}

fn opening(name: &str) -> String {
    format!("<signal type=\"{name}\">")
}

struct Block(String);

impl Block {
    fn open(name: &str) -> Self {
        Self(opening(name))
    }

    fn field(&mut self, name: &str, value: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "\n  <{name}>{value}</{name}>");
    }

    fn close(mut self, Percent(hundredths): Percent) -> String {
        let hundredths = hundredths.min(100);
        let confidence = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        self.field("confidence", &confidence);
        self.0 + "\n</signal>"
    }
}

/// Text that is safe inside a block and inside a sentence: one line, no tags, no code marks.
pub(super) fn inert(text: &str) -> String {
    let plain = inert_path(text);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same of a path, whose blanks stay as they are.
pub(super) fn inert_path(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            '<' => '‹',
            '>' => '›',
            '`' => '\'',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// At most `most` characters; an ellipsis stands for what is cut.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

fn value(text: &str) -> String {
    let text = shortened(&inert(text), LONGEST);
    let lacking = SHORTEST.saturating_sub(text.chars().count());
    text + &".".repeat(lacking)
}

fn list(items: &[impl AsRef<str>]) -> String {
    let items = items
        .iter()
        .map(|item| shortened(&inert(item.as_ref()), LONGEST));
    serde_json::Value::from_iter(items).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_fields_of_their_type() {
        for (name, stand, percent, block) in [
            (
                "another turn",
                Stand::NeedTurn {
                    reason: "The results have to be read".to_owned(),
                },
                80,
                "<signal type=\"need_turn\">\n  <reason>The results have to be read</reason>\n  <confidence>0.80</confidence>\n</signal>",
            ),
            (
                "enough",
                Stand::Sufficient {
                    sources_found: 2,
                    source_types: vec!["code", "docs"],
                },
                100,
                "<signal type=\"context_sufficient\">\n  <sources_found>2</sources_found>\n  <source_types>[\"code\",\"docs\"]</source_types>\n  <confidence>1.00</confidence>\n</signal>",
            ),
            (
                "nothing to cite",
                Stand::Sufficient {
                    sources_found: 0,
                    source_types: vec![],
                },
                7,
                "<signal type=\"context_sufficient\">\n  <sources_found>0</sources_found>\n  <confidence>0.07</confidence>\n</signal>",
            ),
            (
                "gaps",
                Stand::Partial {
                    missing: "x".to_owned(),
                    caveat: Some("a\nb `c` <d>".to_owned()),
                },
                40,
                "<signal type=\"partial_answer\">\n  <missing>x....</missing>\n  <caveat>a b 'c' ‹d›</caveat>\n  <confidence>0.40</confidence>\n</signal>",
            ),
            (
                "nothing",
                Stand::Stuck {
                    attempted: vec!["a \"quoted\" </attempted>".to_owned()],
                    blocker: "nothing found".to_owned(),
                    suggestions: vec!["ask".to_owned()],
                },
                200,
                "<signal type=\"stuck\">\n  <attempted>[\"a \\\"quoted\\\" ‹/attempted›\"]</attempted>\n  <blocker>nothing found</blocker>\n  <suggestions>[\"ask\"]</suggestions>\n  <confidence>1.00</confidence>\n</signal>",
            ),
        ] {
            assert_eq!(signal(&stand, Percent(percent)), block, "{name}");
        }
    }

    #[test]
    fn a_long_value_is_cut_to_its_limit() {
        let block = signal(
            &Stand::NeedTurn {
                reason: "ü".repeat(600),
            },
            Percent(50),
        );
        let reason = block
            .split("<reason>")
            .nth(1)
            .and_then(|rest| rest.split('<').next());
        assert_eq!(reason, Some(&*("ü".repeat(499) + "…")));
    }

    #[test]
    fn only_a_stuck_at_the_end_is_one() {
        let stuck = signal(
            &Stand::Stuck {
                attempted: vec![],
                blocker: "nothing".to_owned(),
                suggestions: vec![],
            },
            Percent(80),
        );
        let enough = signal(
            &Stand::Sufficient {
                sources_found: 0,
                source_types: vec![],
            },
            Percent(9),
        );
        for (name, reply, expected) in [
            ("alone", stuck.clone(), true),
            ("behind text", format!("Sorry.\n\n{stuck}"), true),
            ("quoted", format!("```\n{stuck}\n```\n\n{enough}"), false),
            ("none", "stuck".to_owned(), false),
        ] {
            assert_eq!(is_stuck(&reply), expected, "{name}");
        }
    }
}
