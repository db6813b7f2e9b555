//! The answer to how a project is built, tested, run or installed: the commands that its files name or that are
//! usual, and what its documents say.

use super::{
    super::{
        commands::{self, Command},
        howto,
        interest::{Chore, Interest},
        protocol::{Percent, Stand, inert, inert_path},
        quote::{in_sentence, place, quote},
        rank::Passage,
        source::FileKind,
    },
    Case, Said,
};

/// Most sections that are quoted.
const MOST_QUOTED: usize = 2;
/// Lines of a document around a command.
const BESIDE: u32 = 3;

/// None if that was not asked, or nothing says it.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let Interest::HowTo(chore) = case.question.interest else {
        return None;
    };
    let mut known = commands::of(chore, case.evidence);
    let mut quoted = quoted(case, chore);
    let is_front = quoted.iter().any(|one| howto::is_front(chore, &one.path));
    // Of a project whose manifest is another, those of its tools alone.
    let of_tools =
        |one: &Command| one.path.ends_with(".json") && commands::has_other(case.evidence);
    if is_front {
        known.retain(|one| one.line.is_some() && !of_tools(one));
    }
    // What other documents say may be about something else, and is not needed.
    if known.iter().any(|one| one.line.is_some() && !of_tools(one)) {
        quoted.retain(|one| howto::is_front(chore, &one.path));
    }
    let told: Vec<String> = known.iter().map(told).collect();
    let lead = match (told.is_empty(), quoted.first()) {
        (true, None) => return None,
        (true, Some(first)) => format!(
            "How {} is said in {}.",
            chore.named(),
            in_sentence(&place(first))
        ),
        (false, None) => told.join(" "),
        (false, Some(first)) => {
            format!(
                "{} More is said in {}.",
                told.join(" "),
                in_sentence(&place(first))
            )
        }
    };
    let typed = known.iter().filter_map(|command| around(command, case));
    let is_quoted = |one: &Passage| quoted.iter().any(|other| overlap(other, one));
    let typed: Vec<Passage> = typed.filter(|one| !is_quoted(one)).collect();
    let quotes = quoted
        .iter()
        .chain(&typed)
        .map(|passage| quote(passage, case.evidence));
    let body: Vec<String> = [lead].into_iter().chain(quotes).collect();
    let is_said = is_front || known.iter().any(|one| one.line.is_some() && !of_tools(one));
    let stand = match is_said {
        true => Stand::Sufficient {
            sources_found: quoted.len() + known.iter().filter(|one| one.line.is_some()).count(),
            source_types: vec!["docs"],
        },
        false => Stand::Partial {
            missing: format!("what the project itself says of how {}", chore.named()),
            caveat: Some(caveat(&known).to_owned()),
        },
    };
    Some((
        body.join("\n\n"),
        stand,
        Percent(if is_said { 75 } else { 50 }),
    ))
}

/// What is not sure about commands that the project itself does not name for it.
fn caveat(known: &[Command]) -> &'static str {
    match known.iter().all(|one| one.line.is_none()) {
        true => "the command is the usual one for such a project",
        false => "the command is one of the tools around it",
    }
}

/// The line that names a command, with the lines right around it in a document.
fn around(command: &Command, case: &Case<'_>) -> Option<Passage> {
    let line = command.line?;
    let lines = case.evidence.files.get(&command.path)?;
    let beside = match FileKind::of(&command.path) {
        FileKind::Docs => BESIDE,
        _ => 0,
    };
    let is_said = |at: &u32| lines.get(at).is_some_and(|text| !text.trim().is_empty());
    let first = (line.saturating_sub(beside)..line)
        .find(is_said)
        .unwrap_or(line);
    let last = (line + 1..=line + beside)
        .rev()
        .find(is_said)
        .unwrap_or(line);
    Some(document(&command.path, (first, last)))
}

fn overlap(one: &Passage, other: &Passage) -> bool {
    one.path == other.path && one.lines.0 <= other.lines.1 && other.lines.0 <= one.lines.1
}

fn document(path: &str, lines: (u32, u32)) -> Passage {
    Passage {
        kind: FileKind::Docs,
        score: 1,
        ..Passage::at(path, lines, lines.0)
    }
}

/// The commands alone, for who asked that it be done; empty if there are none.
pub(super) fn commands_of(case: &Case<'_>, chore: Chore) -> String {
    let known = commands::of(chore, case.evidence);
    known.iter().map(told).collect::<Vec<_>>().join(" ")
}

fn told(command: &Command) -> String {
    let text = inert(&command.text);
    let path = inert_path(&command.path);
    match command.line {
        Some(line) => format!("`{text}`, by {}.", in_sentence(&format!("{path}:{line}"))),
        None => format!("`{text}` is usual where there is {}.", in_sentence(&path)),
    }
}

fn quoted(case: &Case<'_>, chore: Chore) -> Vec<Passage> {
    let mut quoted: Vec<Passage> = Vec::new();
    for section in howto::sections(chore, case.evidence) {
        let Some(lines) = howto::span(section, case.evidence) else {
            continue;
        };
        let section = document(&section.path, lines);
        if quoted.len() < MOST_QUOTED && !quoted.iter().any(|one| overlap(one, &section)) {
            quoted.push(section);
        }
    }
    quoted
}
