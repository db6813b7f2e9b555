//! The place of a symbol that was read by its name: the last lines say what it is and what it lies in. Pure.

use super::{Place, own};
use crate::model::ToolCall;

/// None if none was read.
pub(super) fn place(call: &ToolCall, content: &str) -> Option<Place> {
    let arguments = call.parsed().ok()?;
    let wanted = arguments.get("symbol")?.as_str()?;
    let (_, name) = wanted.rsplit_once(['.', ':'])?;
    let mut place = own::place(content.lines().next()?)?;
    // All lines of the file stand behind their numbers.
    let mut notes = content
        .lines()
        .rev()
        .take_while(|line| line.starts_with('…'));
    let told = notes.find_map(|line| line.split('`').nth(1))?;
    let parts = told.split("::").flat_map(|part| part.split('.'));
    place.within = parts.map(str::to_owned).collect();
    // A tool may take a name in other letters for it.
    (place.within.last()? == name).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    #[test]
    fn what_a_symbol_lies_in_is_told_behind_it() {
        for (name, wanted, last, within) in [
            (
                "all",
                "DBImpl::Get",
                "… all of method `a::DBImpl::Get`",
                Some("a DBImpl Get"),
            ),
            (
                "a part, and others",
                "A.go",
                "… 9 more lines; go on with start_line=3\n… method `A.go` goes on to line 11; go on with \
                 start_line=3; others of that name: line 9",
                Some("A go"),
            ),
            ("in other letters", "A.Go", "… all of method `A.go`", None),
            ("no note", "A.go", "3: … all of method `A.go`", None),
        ] {
            let call = ToolCall {
                id: CallId::new("c"),
                name: "file_read".to_owned(),
                arguments: format!(r#"{{"path": "a.x", "symbol": "{wanted}"}}"#),
            };
            let place = place(&call, &format!("a.x (lines 1–2 of 20)\n1: x\n2: y\n{last}"));
            let got = place.map(|place| place.within.join(" "));
            assert_eq!(got.as_deref(), within, "{name}");
        }
    }
}
