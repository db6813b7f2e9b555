//! Reports checks, observations and remedies. Text is printed check by check, because some are slow;
//! JSON at the end.

use serde::Serialize;
use serde_json::json;

use crate::{
    cli::{
        CliResult, exit,
        models::usd,
        terminal::{Terminal, harmless},
        text::used,
    },
    model::Usage,
};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    /// Works, but not as well as it could.
    Warn,
    Fail,
}

/// A finding of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The model concerned, or this machine.
    pub subject: String,
    /// The name of the check.
    pub check: &'static str,
    /// The result.
    pub verdict: Verdict,
    /// The observation.
    pub seen: String,
    /// The remedy.
    pub mend: Option<String>,
}

impl Finding {
    /// A finding without a problem.
    pub(super) fn ok(check: &'static str, seen: impl Into<String>) -> Self {
        Self {
            subject: String::new(),
            check,
            verdict: Verdict::Ok,
            seen: seen.into(),
            mend: None,
        }
    }

    /// A finding that could be better, with a remedy.
    pub(super) fn warn(
        check: &'static str,
        seen: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Warn,
            mend: Some(mend.into()),
            ..Self::ok(check, seen)
        }
    }

    /// A finding that something fails, with a remedy.
    pub(super) fn fail(
        check: &'static str,
        seen: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(check, seen, mend)
        }
    }
}

/// Collects findings and prints them.
pub(super) struct Report<'a> {
    terminal: &'a mut Terminal,
    /// The subject of the next findings.
    subject: String,
    findings: Vec<Finding>,
    used: Usage,
}

impl<'a> Report<'a> {
    /// Creates an empty report.
    pub(super) fn new(terminal: &'a mut Terminal) -> Self {
        Self {
            terminal,
            subject: String::new(),
            findings: Vec::new(),
            used: Usage::default(),
        }
    }

    /// Sets the subject of the next findings.
    pub(super) fn about(&mut self, subject: &str) -> CliResult {
        subject.clone_into(&mut self.subject);
        if !self.terminal.json {
            self.terminal.line(subject)?;
        }
        Ok(())
    }

    /// Shows which check is running.
    pub(super) fn waiting(&mut self, what: &str) {
        self.terminal.status(&format!("{} · {what}", self.subject));
    }

    /// Adds a finding.
    pub(super) fn add(&mut self, finding: Finding) -> CliResult {
        if !self.terminal.json {
            self.terminal.line(&line(&finding))?;
        }
        self.findings.push(Finding {
            subject: self.subject.clone(),
            ..finding
        });
        Ok(())
    }

    /// Adds the usage of a call.
    pub(super) fn used(&mut self, usage: Usage) {
        self.used += usage;
    }

    /// Prints the total and returns the exit code.
    pub(super) fn finish(self) -> CliResult<u8> {
        self.terminal.clear_status();
        if self.terminal.json {
            self.terminal.out.json(&json!({
                "findings": self.findings,
                "usage": self.used,
                "cost_usd": self.used.known_cost().map(usd),
            }))?;
        } else if self.used != Usage::default() {
            let used = used(&self.used);
            self.terminal.line(&format!("these checks used {used}"))?;
        }
        let failed = |finding: &Finding| finding.verdict == Verdict::Fail;
        let is_wrong = self.findings.iter().any(failed);
        Ok(exit::done_unless(is_wrong, exit::FAILED))
    }
}

fn line(finding: &Finding) -> String {
    let verdict = match finding.verdict {
        Verdict::Ok => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
    };
    let mend = finding.mend.as_ref();
    let mend = mend.map_or(String::new(), |mend| format!("; {mend}"));
    let seen = harmless(&finding.seen).replace('\n', " ");
    format!("  {verdict:<4}  {:<10}  {seen}{mend}", finding.check)
}
