//! The documents beside the code: the README's commands are CI's, and ARCHITECTURE.md stays short.

use std::fs;
use std::path::Path;

use super::Violation;

const README: &str = "README.md";
const CI: &str = ".ci/run";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The heading over the README's fenced block of commands.
const HEADING: &str = "## Checking";
/// What stands before a command in CI, in quotes that pass it on as it is.
const STEP: &str = "step '";
/// Lines that somebody reads at one sitting.
const CAP_OF_ARCHITECTURE: usize = 300;

/// All that is wrong with the documents of the repository at `root`.
pub(super) fn violations(root: &Path) -> Vec<Violation> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut found = checks_differ(&read(README), &read(CI));
    found.extend(too_long(&read(ARCHITECTURE)));
    found
}

fn violation(path: &str, line: usize, what: String) -> Violation {
    Violation {
        path: path.into(),
        line,
        what,
    }
}

/// Whoever follows the README runs what CI runs, in the same order, and nothing else.
fn checks_differ(readme: &str, ci: &str) -> Vec<Violation> {
    let (told, run) = (commands_of_readme(readme), commands_of_ci(ci));
    let mut found = Vec::new();
    for (path, commands, need) in [(README, &told, HEADING), (CI, &run, STEP)] {
        if commands.is_empty() {
            found.push(violation(
                path,
                1,
                format!("no commands found: write them after `{need}`"),
            ));
        }
    }
    let lacks = |commands: &[(usize, String)], command: &str| {
        !commands.iter().any(|(_, other)| other == command)
    };
    for (line, command) in told.iter().filter(|(_, command)| lacks(&run, command)) {
        found.push(violation(
            README,
            *line,
            format!("`{command}` is not in {CI}: add a step"),
        ));
    }
    for (line, command) in run.iter().filter(|(_, command)| lacks(&told, command)) {
        found.push(violation(
            CI,
            *line,
            format!("`{command}` is not in {README}: tell it there"),
        ));
    }
    let differs = told
        .iter()
        .zip(&run)
        .find(|((_, one), (_, other))| one != other);
    if let (true, Some((_, (line, command)))) = (found.is_empty(), differs) {
        found.push(violation(
            CI,
            *line,
            format!("`{command}` comes in another order in {README}"),
        ));
    }
    found
}

fn commands_of_readme(readme: &str) -> Vec<(usize, String)> {
    (1..)
        .zip(readme.lines())
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .skip_while(|(_, line)| !line.starts_with("```"))
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("```"))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| (number, line.to_owned()))
        .collect()
}

fn commands_of_ci(ci: &str) -> Vec<(usize, String)> {
    (1..)
        .zip(ci.lines())
        .filter_map(|(number, line)| {
            Some((
                number,
                line.trim_start()
                    .strip_prefix(STEP)?
                    .strip_suffix('\'')?
                    .to_owned(),
            ))
        })
        .collect()
}

fn too_long(architecture: &str) -> Vec<Violation> {
    let lines = architecture.lines().count();
    if lines <= CAP_OF_ARCHITECTURE {
        return Vec::new();
    }
    let what = format!(
        "{lines} lines, at most {CAP_OF_ARCHITECTURE}: move details to the code's own docs"
    );
    vec![violation(ARCHITECTURE, CAP_OF_ARCHITECTURE + 1, what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readme(commands: &str) -> String {
        format!(
            "# Name\n\n```\nelsewhere\n```\n\n{HEADING}\n\nWhy.\n\n```sh\n{commands}```\n\n## Next\n\n```\nno\n```\n"
        )
    }

    #[test]
    fn a_difference_between_readme_and_ci_is_found() {
        let both = "step 'cargo test'\nstep 'A=\"b c\" cargo doc'\n";
        for (name, told, run, expected) in [
            ("same", "cargo test\nA=\"b c\" cargo doc\n", both, vec![]),
            (
                "remarks aside",
                "# first\ncargo test\n\nA=\"b c\" cargo doc\n",
                both,
                vec![],
            ),
            (
                "told, not run",
                "cargo test\ncargo x\nA=\"b c\" cargo doc\n",
                both,
                vec!["README.md:13"],
            ),
            ("run, not told", "cargo test\n", both, vec![".ci/run:2"]),
            (
                "spelt otherwise",
                "cargo  test\nA=\"b c\" cargo doc\n",
                both,
                vec!["README.md:12", ".ci/run:1"],
            ),
            (
                "another order",
                "A=\"b c\" cargo doc\ncargo test\n",
                both,
                vec![".ci/run:1"],
            ),
            (
                "not a step",
                "cargo test\n",
                "cargo test\n",
                vec![".ci/run:1", "README.md:12"],
            ),
            ("nothing at all", "", "", vec!["README.md:1", ".ci/run:1"]),
        ] {
            let found: Vec<String> = checks_differ(&readme(told), run)
                .iter()
                .map(|violation| format!("{}:{}", violation.path, violation.line))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_readme_without_the_section_is_found() {
        let found = checks_differ("# Name\n\n```\ncargo test\n```\n", "step 'cargo test'\n");
        assert_eq!(
            found
                .iter()
                .map(|violation| violation.path.as_str())
                .collect::<Vec<_>>(),
            [README, CI]
        );
    }

    #[test]
    fn an_architecture_that_nobody_reads_is_found() {
        assert_eq!(too_long(&"line\n".repeat(300)), []);
        assert_eq!(too_long(&"line\n".repeat(301)).len(), 1);
    }
}
