//! A screen as a picture (SVG), in the palette of a light or a dark page.

use std::fmt::Write as _;

use vt100::{Cell, Color};

const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;

/// The palettes: background, text, and the colours 1 to 6 of a terminal.
const LIGHT: [&str; 8] = [
    "#ffffff", "#1f2328", "#cf222e", "#116329", "#7d4e00", "#0550ae", "#8250df", "#1b7c83",
];
const DARK: [&str; 8] = [
    "#0d1117", "#e6edf3", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf",
];

fn palette([background, text, colours @ ..]: [&str; 8]) -> String {
    let mut style = format!(
        "rect{{fill:{background}}}text{{fill:{text}}}\
         .v{{fill:{text}}}text.v{{fill:{background}}}"
    );
    for (number, colour) in (1..).zip(colours) {
        let _ = write!(style, ".c{number}{{fill:{colour}}}");
    }
    style
}

fn style() -> String {
    let (light, dark) = (palette(LIGHT), palette(DARK));
    format!(
        "text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}}.d{{opacity:.6}}\
         .b{{font-weight:bold}}.i{{font-style:italic}}.u{{text-decoration:underline}}{light}\
         @media(prefers-color-scheme:dark){{{dark}}}"
    )
}

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
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" xml:space=\"preserve\">\
         <style>{}</style><rect width=\"100%\" height=\"100%\" rx=\"8\"/>\n",
        style()
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
        let top = MARGIN + CELL.1 * f64::from(row);
        let y = top + CELL.1 * 0.75;
        for (column, columns, style, text) in runs {
            let x = MARGIN + CELL.0 * f64::from(column);
            if style.starts_with('v') {
                let (width, height) = (CELL.0 * f64::from(columns), CELL.1);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height}\" class=\"{style}\"/>"
                );
            }
            let end = text.trim_end();
            if end.is_empty() {
                continue;
            }
            let columns = columns - u16::try_from(text.len() - end.len()).unwrap();
            let length = CELL.0 * f64::from(columns);
            let text = end.replace('&', "&amp;").replace('<', "&lt;");
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
        (cell.inverse(), "v"),
        (cell.dim(), "d"),
        (cell.bold(), "b"),
        (cell.italic(), "i"),
        (cell.underline(), "u"),
    ];
    classes.extend(
        effects
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, class)| (*class).to_owned()),
    );
    match cell.fgcolor() {
        Color::Default => {}
        // Of these, each palette has one that can be read.
        Color::Idx(colour @ (1..=6 | 9..=14)) => classes.push(format!("c{}", colour % 8)),
        other => panic!("{other:?} cannot be read on each background"),
    }
    classes.join(" ")
}
