//! `oracle doctor`: what was checked, what was seen, and how to mend what is not in order.
//!
//! Findings are told as they are made, because some take a while; as JSON all at the end.

use serde::Serialize;
use serde_json::json;

use super::{
    Stop, exit,
    models::usd,
    terminal::{Terminal, harmless},
    text::used,
};
use crate::model::Usage;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In order.
    Ok,
    /// It works, but not as well as it could.
    Warn,
    /// It does not work.
    Fail,
}

/// What a check gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whom it is about: a model, or this machine.
    pub subject: String,
    /// What was checked, in a word.
    pub check: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    pub mend: Option<String>,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(check: &'static str, seen: impl Into<String>) -> Self {
        Self {
            subject: String::new(),
            check,
            verdict: Verdict::Ok,
            seen: seen.into(),
            mend: None,
        }
    }

    /// It could be better, like this.
    #[must_use]
    pub fn warn(check: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warn,
            mend: Some(mend.into()),
            ..Self::ok(check, seen)
        }
    }

    /// It does not work, and this may help.
    #[must_use]
    pub fn fail(check: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(check, seen, mend)
        }
    }
}

/// Findings on their way to people or programs.
pub struct Report<'a> {
    terminal: &'a mut Terminal,
    json: bool,
    /// Whom the findings to come are about.
    subject: String,
    findings: Vec<Finding>,
    used: Usage,
}

impl<'a> Report<'a> {
    /// Nothing is found yet.
    #[must_use]
    pub fn new(json: bool, terminal: &'a mut Terminal) -> Self {
        Self {
            terminal,
            json,
            subject: String::new(),
            findings: Vec::new(),
            used: Usage::default(),
        }
    }

    /// What follows is about this.
    pub fn about(&mut self, subject: &str) -> Result<(), Stop> {
        subject.clone_into(&mut self.subject);
        if !self.json {
            self.terminal.line(subject)?;
        }
        Ok(())
    }

    /// Shows what is being waited for.
    pub fn waiting(&mut self, what: &str) {
        self.terminal.status(&format!("{} · {what}", self.subject));
    }

    /// Tells what was found.
    pub fn add(&mut self, finding: Finding) -> Result<(), Stop> {
        if !self.json {
            self.terminal.line(&line(&finding))?;
        }
        self.findings.push(Finding {
            subject: self.subject.clone(),
            ..finding
        });
        Ok(())
    }

    /// Counts what a call used.
    pub fn used(&mut self, usage: Usage) {
        self.used += usage;
    }

    /// Tells what it took; gives the exit code.
    pub fn finish(self) -> Result<u8, Stop> {
        self.terminal.clear_status();
        if self.json {
            self.terminal.out.json(&json!({
                "findings": self.findings,
                "usage": self.used,
                "cost_usd": usd(self.used.cost),
            }))?;
        } else if self.used != Usage::default() {
            let used = used(&self.used);
            self.terminal.line(&format!("these checks took {used}"))?;
        }
        let failed = |finding: &Finding| finding.verdict == Verdict::Fail;
        Ok(if self.findings.iter().any(failed) {
            exit::FAILED
        } else {
            exit::DONE
        })
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
