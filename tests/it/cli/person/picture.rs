//! A screen as a picture (SVG), in the palette of a light or a dark page.

use std::fmt::Write as _;

use vt100::{Cell, Color};

const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;

/// The palettes: text, background, and the colours 1 to 6 of a terminal.
const STYLE: &str = "\
svg{--bg:#fff;--fg:#1f2328;--c1:#cf222e;--c2:#116329;--c3:#7d4e00;--c4:#0550ae;--c5:#8250df;--c6:#1b7c83}\
@media(prefers-color-scheme:dark){svg{--bg:#0d1117;--fg:#e6edf3;--c1:#ff7b72;--c2:#3fb950;--c3:#d29922;--c4:#58a6ff;\
--c5:#bc8cff;--c6:#39c5cf}}\
rect{fill:var(--bg)}text{fill:var(--fg);font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}\
.d{opacity:.6}.b{font-weight:bold}.i{font-style:italic}.u{text-decoration:underline}\
.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}";

/// Draws the rows of the screen down to the last one with text.
pub(super) fn svg(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let text = screen.contents();
    let used = u16::try_from(text.trim_end().lines().count()).unwrap();
    let (width, height) = (
        f64::from(columns.get()) * CELL.0 + 2.0 * MARGIN,
        f64::from(used) * CELL.1 + 2.0 * MARGIN,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\">\
         <style>{STYLE}</style><rect width=\"100%\" height=\"100%\" rx=\"8\"/>\n"
    );
    for row in 0..used.min(rows.get()) {
        let mut runs: Vec<(u16, u16, String, String)> = Vec::new();
        for column in 0..columns.get() {
            let Some(cell) = screen
                .cell(row, column)
                .filter(|cell| !cell.is_wide_continuation())
            else {
                continue;
            };
            let (style, text) = (classes(cell), cell.contents());
            let text = if text.is_empty() { " " } else { text };
            let width = if cell.is_wide() { 2 } else { 1 };
            match runs.last_mut() {
                Some((_, columns, last, run)) if *last == style => {
                    *columns += width;
                    run.push_str(text);
                }
                _ => runs.push((column, width, style, text.to_owned())),
            }
        }
        let y = MARGIN + CELL.1 * (f64::from(row) + 0.75);
        for (column, columns, style, text) in runs.iter().filter(|run| !run.3.trim().is_empty()) {
            let (x, length) = (
                MARGIN + CELL.0 * f64::from(*column),
                CELL.0 * f64::from(*columns),
            );
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" class=\"{style}\">{text}</text>"
            );
        }
    }
    svg + "</svg>\n"
}

fn classes(cell: &Cell) -> String {
    let mut classes = Vec::new();
    let effects = [
        (cell.dim(), "d"),
        (cell.bold(), "b"),
        (cell.italic(), "i"),
        (cell.underline(), "u"),
    ];
    classes.extend(
        effects
            .iter()
            .filter_map(|(is, class)| is.then(|| (*class).to_owned())),
    );
    match cell.fgcolor() {
        Color::Default => {}
        // Of these, each palette has one that can be read.
        Color::Idx(colour @ (1..=6 | 9..=14)) => classes.push(format!("c{}", colour % 8)),
        other => panic!("{other:?} cannot be read on each background"),
    }
    classes.join(" ")
}
