//! Checks that make no requests.

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    path::Path,
    process,
};

use super::report::{Finding, Report};
use crate::{
    app::{self, Builder},
    cli::{CliResult, Options, storage},
};
use oracle_config::{Environment, Loaded};
use oracle_journal::sqlite::{Inspection, OpenError};

const OTHER_DIRECTORY: &str = "or choose another directory with --data-dir";

pub(super) fn check(
    options: &Options,
    loaded: &Loaded,
    file: Option<&Path>,
    environment: &Environment,
    builder: &Builder,
    report: &mut Report<'_>,
) -> CliResult {
    let config = &loaded.config;
    let file = file.map_or("no file".into(), |file| {
        format!("file `{}`", file.display())
    });
    let chain = loaded.choice.chain.models().join(", ");
    let why = loaded.model_choice_reason();
    let seen = format!("{file}; using {chain}, {why}");
    report.add(Finding::ok("config", seen))?;
    let parts = [
        builder.tools().map(drop),
        builder.check_mcp(),
        app::classifier(config).map(drop),
        app::composer(config).map(drop),
        app::project_context(config).map(drop),
        app::prices(config, environment).map(drop),
        super::prompt(options, config).map(drop),
    ];
    let problems = parts.into_iter().filter_map(Result::err);
    let mut problems: Vec<String> = problems.map(|problem| problem.to_string()).collect();
    // One problem may prevent several parts.
    let mut told = HashSet::new();
    problems.retain(|problem| told.insert(problem.clone()));
    if problems.is_empty() {
        let seen = "project folder, MCP servers, lexicon and prompts are valid";
        report.add(Finding::ok("parts", seen))?;
    }
    for problem in problems {
        let mend = "run `oracle config check` for all problems";
        report.add(Finding::fail("parts", problem, mend))?;
    }
    report.add(history(&options.project))?;
    let folder = match storage::directory(config, environment) {
        Ok(folder) => folder,
        Err(stop) => {
            return report.add(Finding::fail("data", stop.to_string(), OTHER_DIRECTORY));
        }
    };
    report.add(writable(&folder))?;
    report.waiting("checking the journal");
    report.add(journal(&folder))
}

/// Checks that git knows the project, as the tool `history_search` needs.
fn history(project: &Path) -> Finding {
    let mut git = process::Command::new("git");
    let git = git.args(["rev-parse", "--git-dir"]).current_dir(project);
    let (seen, mend) = match git.output() {
        Ok(output) if output.status.success() => {
            return Finding::ok("history", "a git repository");
        }
        Ok(_) => (
            "the project folder is not a git repository",
            "run `git init`",
        ),
        Err(_) => ("git cannot be started", "install git"),
    };
    let mend = format!("{mend}, or do without `history_search`");
    Finding::warn("history", seen, mend)
}

/// Checks that a file can be created in the folder, or in its nearest existing ancestor.
fn writable(folder: &Path) -> Finding {
    let mut existing = folder.ancestors().filter(|ancestor| ancestor.is_dir());
    let existing = existing.next().unwrap_or_else(|| Path::new("."));
    let shown = folder.display();
    match try_to_write(existing) {
        Ok(()) if existing == folder => Finding::ok("data", format!("`{shown}` is writable")),
        Ok(()) => Finding::ok(
            "data",
            format!("`{shown}` will be created with the first question"),
        ),
        Err(error) => {
            let seen = format!("`{}` is not writable: {error}", existing.display());
            let mend = format!("change its permissions, {OTHER_DIRECTORY}");
            Finding::fail("data", seen, mend)
        }
    }
}

fn try_to_write(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".oracle-doctor-{}", process::id()));
    File::create_new(&probe)?;
    fs::remove_file(&probe)
}

fn journal(folder: &Path) -> Finding {
    const CHECK: &str = "journal";
    let inspection = match Inspection::open(folder) {
        Ok(inspection) => inspection,
        Err(OpenError::Absent(_)) => return Finding::ok(CHECK, "no journal yet"),
        Err(error) => return Finding::fail(CHECK, error.to_string(), OTHER_DIRECTORY),
    };
    match inspection.verify() {
        Ok(problems) if problems.is_empty() => Finding::ok(CHECK, "no corruption found"),
        Ok(problems) => {
            let seen = format!("{} records are corrupt", problems.len());
            Finding::fail(CHECK, seen, "run `oracle journal verify` for a list")
        }
        Err(error) => Finding::fail(CHECK, error.to_string(), "check the disk"),
    }
}
