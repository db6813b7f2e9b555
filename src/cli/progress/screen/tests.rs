//! Frames, in a terminal emulator.

use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;
use crate::cli::terminal::{Device, Recording};

const TEXT: &str = "\
# Title

A paragraph of a few words, which is longer than one row of the terminal, with **bold** `code`.

- one
- two, 日本語のテキスト and more words than fit
- שלום עולם

| name | what it is |
|------|-----------|
| a    | a word    |
| bb   | a longer description of it, in a few words |

```rust
fn main() { println!(\"a line of code that is wider than the terminal is at the moment\"); }
let x = 1;
```

The end.

";
const ROWS: u16 = 24;
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

struct Emulator {
    screen: Screen,
    terminal: Terminal,
    recording: Recording,
    read: usize,
    emulator: vt100::Parser,
}

impl Emulator {
    fn new(columns: u16) -> Self {
        let device = Device::Terminal {
            width: columns.into(),
            style: Style::Coloured,
        };
        let (terminal, recording) = Recording::terminal("", device);
        let [rows, columns] = [ROWS, columns].map(|count| NonZeroU16::new(count).unwrap());
        Self {
            screen: Screen::new(Path::new("/")),
            terminal,
            recording,
            read: 0,
            emulator: vt100::Parser::new(rows, columns, 100_000),
        }
    }

    /// Draws a frame, and shows it to the emulator byte by byte. A row that is the same before and
    /// after never changes in between, unless the frame scrolls.
    fn frame(&mut self, draw: impl FnOnce(&mut Screen, &mut Terminal)) {
        let rows = |emulator: &vt100::Parser| -> Vec<String> {
            let screen = emulator.screen();
            screen.rows(0, screen.size().1.get()).collect()
        };
        draw(&mut self.screen, &mut self.terminal);
        let written = self.recording.out();
        let frame = written[self.read..].replace('\n', "\r\n");
        self.read = written.len();
        if frame.is_empty() {
            return;
        }
        assert_eq!(frame.matches(BEGIN).count(), 1, "{frame:?}");
        assert!(
            frame.starts_with(BEGIN) && frame.ends_with(END),
            "{frame:?}"
        );
        let (before, scrolled) = (
            rows(&self.emulator),
            self.emulator.screen().scrollback_len(),
        );
        let mut between = Vec::new();
        for byte in frame.bytes() {
            self.emulator.process(&[byte]);
            between.push(rows(&self.emulator));
        }
        if self.emulator.screen().scrollback_len() > scrolled {
            return;
        }
        let after = rows(&self.emulator);
        for (at, (old, new)) in before.iter().zip(&after).enumerate() {
            let is_stable = |rows: &Vec<String>| rows[at] == *new;
            assert!(
                old != new || between.iter().all(is_stable),
                "row {at}: {old:?}, {frame:?}"
            );
        }
    }

    /// Changes the width, to which the terminal wraps all rows again.
    fn resize(&mut self, columns: u16) {
        let shown = self.all().replace('\n', "\r\n");
        let [rows, columns] = [ROWS, columns].map(|count| NonZeroU16::new(count).unwrap());
        self.emulator = vt100::Parser::new(rows, columns, 100_000);
        self.emulator.process(shown.as_bytes());
        self.terminal.resize(columns.get().into());
    }

    /// Everything that the terminal has shown, without trailing spaces.
    fn all(&mut self) -> String {
        let screen = self.emulator.screen_mut();
        let (mut rows, scrolled) = (Vec::new(), screen.scrollback_len());
        let (_, columns) = screen.size();
        for back in (1..=scrolled).rev() {
            screen.set_scrollback(back);
            rows.extend(screen.rows(0, columns.get()).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns.get()));
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

#[test]
fn resized_terminal_shows_each_word_once() {
    let words = |text: &str| text.replace([' ', '\n', '─'], "");
    for widths in [[80, 40, 60], [30, 79, 24]] {
        let mut resized = Emulator::new(80);
        let pieces: Vec<char> = TEXT.chars().collect();
        for (pieces, columns) in pieces.chunks(TEXT.chars().count() / 3).zip(widths) {
            resized.resize(columns);
            for piece in pieces.chunks(40) {
                resized.screen.push(&piece.iter().collect::<String>());
                let draw = |screen: &mut Screen, terminal: &mut Terminal| {
                    screen.draw(terminal, Some("asking"))
                };
                resized.frame(|screen, terminal| draw(screen, terminal).unwrap());
            }
        }
        resized.frame(|screen, terminal| screen.end_text(terminal, TextKind::Answer).unwrap());
        let mut whole = Emulator::new(80);
        whole.screen.push(TEXT);
        whole.frame(|screen, terminal| screen.end_text(terminal, TextKind::Answer).unwrap());
        assert_eq!(words(&resized.all()), words(&whole.all()), "{widths:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn frames_neither_flicker_nor_tear(
        columns in 20_u16..60,
        sizes in prop::collection::vec(1_usize..100, 1..40),
    ) {
        let mut streamed = Emulator::new(columns);
        let mut rest = TEXT.repeat(2);
        for size in sizes {
            let piece: String = rest.chars().take(size).collect();
            rest.drain(..piece.len());
            streamed.screen.push(&piece);
            streamed.frame(|screen, terminal| screen.draw(terminal, Some("asking")).unwrap());
        }
        streamed.screen.push(&rest);
        streamed.frame(|screen, terminal| screen.end_text(terminal, TextKind::Answer).unwrap());
        let mut whole = Emulator::new(columns);
        whole.screen.push(&TEXT.repeat(2));
        whole.frame(|screen, terminal| screen.end_text(terminal, TextKind::Answer).unwrap());
        prop_assert_eq!(streamed.all(), whole.all());
    }
}
