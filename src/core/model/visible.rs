//! Characters that show nothing at a terminal but command it, reorder text or hide in it.

/// Whether a character is a control of C1, or sets the direction of what follows. Those of C0 are
/// also what programs command a terminal with.
const fn is_command(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character has no width, as marks of a direction and tag characters have none.
#[rustfmt::skip]
const fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text to read at a terminal, where letters and emoji stay joined.
pub fn readable(text: &str) -> String {
    text.replace(is_command, "\u{fffd}").replace(is_hidden, "")
}

/// A text to decide on: all that is not seen becomes an escape, as in JSON.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) || is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}') {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter();
            escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A word of a command that people paste into a shell: quoted, unless it is plain.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:,+@%=".contains(c);
    match !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_never_reach_a_terminal() {
        for (text, read, decided) in [
            ("plain é 漢", "plain é 漢", "plain é 漢"),
            ("a\u{9b}2J", "a\u{fffd}2J", "a\\u009b2J"),
            ("\u{202e}b\u{2066}", "\u{fffd}b\u{fffd}", "\\u202eb\\u2066"),
            (
                "rm\u{200b} \u{feff}x\u{ad}",
                "rm x",
                "rm\\u200b \\ufeffx\\u00ad",
            ),
            ("👩\u{200d}💻", "👩\u{200d}💻", "👩\\u200d💻"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم", "می\\u200cخواهم"),
            ("שלום\u{200f}!", "שלום!", "שלום\\u200f!"),
            ("a\u{e0041}", "a", "a\\udb40\\udc41"),
            ("\x1b[2m\n", "\x1b[2m\n", "\x1b[2m\n"),
        ] {
            assert_eq!(readable(text), read, "{text:?}");
            assert_eq!(escaped(text), decided, "{text:?}");
        }
    }

    #[test]
    fn word_of_a_command_is_one_word_of_a_shell() {
        for (word, quoted) in [
            ("call_1:0", "call_1:0"),
            ("$(touch x);y", "'$(touch x);y'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
