//! `/why`: explains a query from its records alone.
//!
//! Each record becomes a row of a label and a text; rows of a turn are indented under it. The text
//! is a template over the record's payload, and an empty one yields no row.

use std::{fmt::Display, sync::Arc};

use minijinja::{
    Environment, context,
    value::{Serde, Value},
};
use serde::Deserialize as _;
use unicode_width::UnicodeWidthStr;

use crate::{
    cli::text::{grouped, used, wrapped},
    journal::Entry,
    model::{
        NanoUsd, Record, Timestamp, ToolCall, Usage,
        record::{Fact, QueryFact, ToolFact, TurnFact},
        time::Span,
    },
};

const WORDS: usize = 12;
const STEP: usize = 2;
const NARROW: usize = 50;
/// Maximum length of a row and of a call's arguments, in characters; the log has the rest.
const LONGEST: usize = 240;
const ARGUMENTS: usize = 100;
const SEPARATOR: char = '\u{1e}';

/// Templates, one per line: record type, label (indented if it belongs to a turn), text.
const TEMPLATES: &str = "\
query.accepted: question {{ query }}: {{ p.text }}
query.accepted: continues: {% if p.continues is number %}question {{ p.continues }}{% endif %}
query.accepted: limits: {% set l = p.limits %}at most {{ l.max_turns }} turns\
    {% if l.max_tokens is number %}, {{ l.max_tokens|grouped }} tokens{% endif %}\
    {% if l.max_cost is number %}, {{ l.max_cost|usd }}{% endif %}
query.classified: type: {% set c = p.classification %}{{ c.query_type }}, \
    {{ c.confidence|percent }} sure, by {{ c.keywords_matched|join(', ') or 'no words of the lexicon' }}
query.classified: prompt: {{ p.prompt.segments_included|join(', ') }}: about \
    {{ p.prompt.token_estimate|grouped }} tokens
query.classified: warning: {{ p.prompt.warnings|join(separator) }}
query.finished: ended: {{ p.outcome }} after {{ p.turns }} {{ 'turn' if p.turns == 1 else 'turns' }}\
    {% if took %}, {{ took }}{% endif %}{% if reason %}: {{ reason }}{% endif %}
query.finished: used: {{ p.usage|used }}
turn.started: turn {{ turn }}: asking {{ p.model }}\
    {% if p.mode == 'last' %}, the last turn of the budget, without tools\
    {% elif p.mode == 'final' %}, for the final answer, without tools\
    {% elif p.mode == 'signal' %} for the missing signal only{% endif %}
turn.started:   guidance: {{ p.guidance|join(separator) }}
turn.restarted:   again: asking {{ p.model }} after a {% if p.cause == 'fault' %}fault (\
    {{ p.code }}){% else %}restart{% endif %}, attempt {{ p.attempt }}
turn.replied:   replied: {{ p.model }}{% if took %} in {{ took }}{% endif %}, {{ p.stop|words }}: \
    {{ p.usage|used }}{% if p.estimated %}, estimated{% endif %}
turn.replied:   signal: {% if p.signal == 'absent' %}none{% endif %}
signal.emitted:   signal: {% set f = p.fields %}{{ p.type }}, {{ p.confidence|percent }} sure: \
    {% if p.type == 'need_capability' %}{{ f.capability }}: {{ f.reason }}\
    {% elif p.type == 'context_sufficient' %}{{ f.sources_found }} \
    {{ 'source' if f.sources_found == 1 else 'sources' }}{% elif p.type == 'partial_answer' %}missing: \
    {{ f.missing }}{% else %}{{ f.reason or f.blocker or f.scope }}{% endif %}
signal.rejected:   signal: rejected: {{ p.reason }}
tool.finished:   tool: {{ p.name }} {{ arguments }}: {{ p.status|words }}{% if took %} in {{ took }}\
    {% endif %}{% if p.status == 'failed' %}: {{ p.content|lines|first }}{% endif %}
tool.refused:   tool: {{ p.name }} {{ p.arguments }}: refused, {{ p.why|words }}
tool.handed_over:   tool: waiting for results of the client: {% for c in p.calls %}{{ c.name }} \
    {{ c.arguments }}{% if not loop.last %}, {% endif %}{% endfor %}
tool.returned:   tool: results of the client, by {{ p.by }}
query.answer_rejected:   format: rejected: {{ p.problem }}
approval.requested:   approval: requested for {{ p.name }}
approval.answered:   approval: {{ p.verdict|words }}
budget.iteration.warning:   budget: warning: {{ p.turn }} of {{ p.max_turns }} turns used
budget.iteration.exceeded:   budget: spent: {{ p.turn }} of {{ p.max_turns }} turns
budget.tokens.warning:   budget: warning: {{ p.used|grouped }} of {{ p.limit|grouped }} tokens
budget.tokens.exceeded:   budget: spent: {{ p.used|grouped }} of {{ p.limit|grouped }} tokens
budget.cost.warning:   budget: warning: {{ p.used|usd }} of {{ p.limit|usd }}
budget.cost.exceeded:   budget: spent: {{ p.used|usd }} of {{ p.limit|usd }}
budget.context.warning:   budget: the context window is filling: {{ p.used|grouped }} of \
    {{ p.limit|grouped }} tokens
budget.context.exceeded:   budget: the context window is full: {{ p.used|grouped }} of \
    {{ p.limit|grouped }} tokens
budget.context.compacting:   budget: asking {{ p.model }} for a summary of the conversation
budget.context.compacted:   budget: a summary replaced earlier messages: \
    {{ p.before|grouped }} tokens became {{ p.after|grouped }}
budget.context.compaction_failed:   budget: summarizing failed: {{ p.fault.detail }} (\
    {{ p.fault.code }})
loop.detected:   loop: the same {{ p.kind|words }} repeated: {{ p.detail }}
fallback.triggered:   fallback: for {{ p.cause|words }}: {{ p.action|words }}\
    {% if not p.applied %}, not applied{% endif %}, {{ p.confidence|percent }} sure: {{ p.reason }}
fallback.triggered:   hint: {{ p.hint or '' }}
capability.requested:   missing: {{ p.capability }}: {{ p.reason }}
delegation.recommended:   sub-agent: recommended for: {{ p.scope }}
delegation.started:   sub-agent: session {{ p.child }} started\
    {% if p.profile %} as {{ p.profile }}{% endif %}: {{ p.scope }}
delegation.progressed:   sub-agent: session {{ p.child }}, turn {{ p.turns }}\
    {% if p.signal %}: {{ p.signal }}{% endif %}{% if p.reason %}: {{ p.reason }}{% endif %}
delegation.cancelled:   sub-agent: session {{ p.child }} cancelled
delegation.finished:   sub-agent: session {{ p.child }} ended: {{ p.outcome }}; {{ p.usage|used }}
escalation.raised:   escalation: {{ p.notice }}
llm.retried:   fault: attempt {{ p.attempt }}: {{ p.fault.detail }} ({{ p.fault.code }}); retrying
llm.failed_over:   fault: {{ p.from }}: {{ p.fault.detail }} ({{ p.fault.code }}); \
    asking {{ p.to }} instead
llm.failed:   fault: {{ p.model }}: {{ p.fault.detail }} ({{ p.fault.code }})
llm.waiting:   wait: for {{ p.model|split('/')|first }}: \
    {{ 'server unavailable' if p.reason == 'unavailable' else p.reason|words }}
llm.admitted:   wait: over after {{ p.waited_ms|span }}
llm.rate_limited:   wait: {{ p.model }} is held for {{ p.hold_ms|span }}: rate limit
llm.rate_limit_cleared:   wait: the rate limit of {{ p.model }} has cleared
llm.circuit_opened:   fault: {{ p.model or p.provider }} is suspended for {{ p.cool_down_ms|span }}
llm.circuit_closed:   fault: {{ p.model or p.provider }} is available again
supervisor.restarted:   restarted: by the supervisor, time {{ p.count }}: {{ p.cause|words }}, \
    {{ p.detail }}
control.steered:   steered: by {{ p.by }}: {{ p.text }}
control.budget_set:   limits: at most {{ p.limits.max_turns }} turns, set by {{ p.by }}
control.paused:   paused: by {{ p.by }}
control.resumed:   resumed: by {{ p.by }}
control.cancelled:   cancelled: by {{ p.by }}
control.finished:   told to finish: by {{ p.by }}
control.restarted:   restarted: by {{ p.by }}
control.tool_attached:   tool attached: by {{ p.by }}
session.quarantined:   quarantined: {{ p.reason }}
session.released:   released: from quarantine";

pub(super) fn why(records: &[Entry]) -> Rows {
    let mut explainer = Explainer {
        environment: environment(),
        ..Explainer::default()
    };
    for entry in records {
        explainer.take(&entry.record);
    }
    explainer.close()
}

fn templates() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TEMPLATES.lines().filter_map(|line| {
        let (kind, rest) = line.split_once(": ")?;
        let (word, text) = rest.split_once(": ")?;
        Some((kind, word, text))
    })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.add_filter("grouped", grouped);
    environment.add_filter("percent", |share: f64| format!("{:.0} %", share * 100.0));
    environment.add_filter("usd", |nanos: u64| NanoUsd(nanos).to_string());
    environment.add_filter("span", |millis: u64| {
        Span(std::time::Duration::from_millis(millis)).to_string()
    });
    environment.add_filter("words", |word: Value| word.to_string().replace('_', " "));
    environment.add_filter("used", |usage: Value| {
        Usage::deserialize(usage).map_or_else(|error| error.to_string(), |usage| used(&usage))
    });
    environment
}

#[derive(Default)]
struct Explainer {
    environment: Environment<'static>,
    rows: Rows,
    accepted: Option<Timestamp>,
    asked: Option<Timestamp>,
    /// Tool calls without an end, and their start times.
    calls: Vec<(Arc<ToolCall>, Option<Timestamp>)>,
    ended: bool,
}

impl Explainer {
    fn take(&mut self, record: &Record) {
        let took = |since: Option<Timestamp>| since.map(|since| Span(record.at.since(since)));
        let (mut since, mut arguments, mut reason) = (None, String::new(), None);
        match &record.fact {
            Fact::Query(QueryFact::Accepted(_)) => self.accepted = Some(record.at),
            Fact::Query(QueryFact::Finished(finished)) => {
                (since, self.ended) = (self.accepted, true);
                reason = finished.outcome.reason();
            }
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_)) => {
                self.asked = Some(record.at);
            }
            Fact::Turn(TurnFact::Replied(_)) => since = self.asked,
            Fact::Tool(ToolFact::Requested(requested)) => {
                self.calls.push((requested.call.clone(), None));
            }
            Fact::Tool(ToolFact::Started(started)) => {
                let mut calls = self.calls.iter_mut();
                if let Some((_, since)) = calls.find(|(call, _)| call.id == started.call) {
                    *since = Some(record.at);
                }
            }
            Fact::Tool(ToolFact::Finished(finished)) => {
                let ended = |(call, _): &mut (Arc<ToolCall>, _)| call.id == finished.result.call;
                if let Some((call, began)) = self.calls.extract_if(.., ended).next() {
                    (arguments, since) = (short(&call.arguments, ARGUMENTS), began);
                }
            }
            Fact::Tool(ToolFact::Refused(refused)) => {
                self.calls.retain(|(call, _)| call.id != refused.call.id);
            }
            _ => {}
        }
        let kind = record.fact.kind();
        let fact = serde_json::to_value(&record.fact).unwrap_or_default();
        let context = context! {
            p => Value::from(Serde(&fact["payload"])),
            query => record.query.map(|query| query.to_string()),
            turn => record.turn.map_or(0, |turn| turn.0 + 1),
            took => took(since).map(|took| took.to_string()),
            arguments => arguments,
            reason => reason,
            separator => SEPARATOR.to_string(),
        };
        for (_, word, text) in templates().filter(|saying| saying.0 == kind) {
            let render = |template: &str| {
                let said = self.environment.render_str(template, &context);
                said.unwrap_or_else(|error| error.to_string())
            };
            let (depth, text) = (usize::from(word.starts_with(' ')), render(text));
            let word = render(word.trim_start());
            for text in text.split(SEPARATOR).filter(|text| !text.is_empty()) {
                self.rows.push(depth, word.trim_end(), text);
            }
        }
    }

    fn close(mut self) -> Rows {
        for (call, since) in &self.calls {
            let (name, arguments) = (&call.name, &call.arguments);
            let how = since.map_or("not started yet", |_| "still running");
            self.rows
                .push(1, "tool", format_args!("{name} {arguments}: {how}"));
        }
        if !self.ended && self.accepted.is_some() {
            self.rows.push(0, "ended", "not yet");
        }
        self.rows
    }
}

#[derive(Debug, Default)]
pub(super) struct Rows(Vec<(usize, String, String)>);

impl Rows {
    /// Adds a row. White space is folded, and a long text is cut.
    pub(super) fn push(&mut self, depth: usize, word: &str, text: impl Display) {
        let text = short(&text.to_string(), LONGEST);
        self.0.push((depth, word.to_owned(), text));
    }

    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let labels = self.0.iter();
        let labels = labels.map(|(depth, word, _)| depth * STEP + word.width());
        let words = labels.max().unwrap_or(0).max(WORDS);
        let mut lines = Vec::new();
        for (depth, word, text) in &self.0 {
            let indent = " ".repeat(depth * STEP);
            let (head, hang) = if width < NARROW {
                lines.push(format!("{indent}{word}"));
                let hang = format!("{indent}{}", " ".repeat(STEP));
                (hang.clone(), hang)
            } else {
                let head = format!("{indent}{word:columns$}  ", columns = words - depth * STEP);
                let hang = " ".repeat(head.width());
                (head, hang)
            };
            let parts = wrapped(text, width.saturating_sub(hang.width()).max(1));
            for (at, part) in parts.iter().enumerate() {
                let line = format!("{}{part}", if at == 0 { &head } else { &hang });
                lines.push(line.trim_end().to_owned());
            }
        }
        lines
    }
}

fn short(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
