//! Evaluation of a classifier on labelled queries.

use std::{collections::BTreeMap, fmt};

use super::{Basis, Classifier, QueryContext};
use crate::model::QueryType;

/// A query with its expected type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledQuery {
    /// Expected type.
    pub query_type: QueryType,
    /// Language code.
    pub language: String,
    /// Query text.
    pub query: String,
}

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{origin}:{line}: {problem}; write lines of a type, a tab, optionally a language and a tab, \
     and a query"
)]
pub struct LabelError {
    /// File name.
    pub origin: String,
    /// Line number, from 1.
    pub line: usize,
    /// Reason.
    pub problem: String,
}

impl LabelledQuery {
    /// Reads lines of type, optional language and query, separated by tabs. Skips empty lines,
    /// comments (`#`) and a byte order mark.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str, origin: &str) -> Result<Vec<Self>, LabelError> {
        let mut all = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            all.push(Self::of(line).map_err(|problem| LabelError {
                origin: origin.to_owned(),
                line: number,
                problem,
            })?);
        }
        Ok(all)
    }

    fn of(line: &str) -> Result<Self, String> {
        let cells: Vec<&str> = line.split('\t').collect();
        let (label, language, query) = match cells.as_slice() {
            [label, query] => (*label, "en", *query),
            [label, language, query] => (*label, *language, *query),
            _ => return Err(format!("{} columns", cells.len())),
        };
        let mut types = QueryType::ALL.into_iter();
        let query_type = types.find(|known| known.as_str() == label);
        let query_type = query_type.ok_or_else(|| format!("unknown query type `{label}`"))?;
        Ok(Self {
            query_type,
            language: language.to_owned(),
            query: query.to_owned(),
        })
    }
}

/// A count of answers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// Number of answers.
    pub all: u32,
    /// Number of right answers.
    pub right: u32,
    sure: f64,
}

impl Tally {
    /// Share of right answers; 0 without answers.
    pub fn accuracy(&self) -> f64 {
        f64::from(self.right) / f64::from(self.all.max(1))
    }

    /// Mean confidence; 0 without answers.
    pub fn confidence(&self) -> f64 {
        self.sure / f64::from(self.all.max(1))
    }

    fn count(&mut self, right: bool, sure: f64) {
        self.all += 1;
        self.right += u32::from(right);
        self.sure += sure;
    }
}

/// A misclassified query.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// Labelled query.
    pub row: LabelledQuery,
    /// Chosen type.
    pub predicted: QueryType,
    /// Confidence in that type.
    pub confidence: f64,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evaluation {
    /// All rows.
    pub total: Tally,
    /// By language.
    pub languages: BTreeMap<String, Tally>,
    /// By expected type.
    pub types: BTreeMap<QueryType, Tally>,
    /// By basis.
    pub bases: BTreeMap<Basis, Tally>,
    /// Rows by expected and chosen type.
    pub confusion: BTreeMap<(QueryType, QueryType), u32>,
    /// By confidence, in tenths.
    pub tenths: [Tally; 10],
    /// Wrong answers, most confident first.
    pub mistakes: Vec<Mistake>,
}

impl Evaluation {
    /// Classifies all rows without context.
    pub fn of(classifier: &Classifier, rows: &[LabelledQuery]) -> Self {
        let mut all = Self::default();
        for row in rows {
            let (got, basis) = classifier.classify_by(&row.query, QueryContext::Fresh);
            all.count(row, basis, got.query_type, got.confidence);
        }
        all.sort();
        all
    }

    fn count(&mut self, row: &LabelledQuery, basis: Basis, predicted: QueryType, sure: f64) {
        let right = row.query_type == predicted;
        self.total.count(right, sure);
        let language = self.languages.entry(row.language.clone());
        language.or_default().count(right, sure);
        let query_type = self.types.entry(row.query_type);
        query_type.or_default().count(right, sure);
        self.bases.entry(basis).or_default().count(right, sure);
        let answer = (row.query_type, predicted);
        *self.confusion.entry(answer).or_default() += 1;
        let tenth = ((sure * 10.0) as usize).min(self.tenths.len() - 1);
        self.tenths[tenth].count(right, sure);
        if !right {
            self.mistakes.push(Mistake {
                row: row.clone(),
                predicted,
                confidence: sure,
            });
        }
    }

    fn sort(&mut self) {
        self.mistakes
            .sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", line("all", &self.total))?;
        writeln!(f, "\nby type:")?;
        for (query_type, tally) in &self.types {
            writeln!(f, "{}", line(query_type.as_str(), tally))?;
        }
        writeln!(f, "\nby language:")?;
        for (language, tally) in &self.languages {
            writeln!(f, "{}", line(language, tally))?;
        }
        writeln!(f, "\nby basis of the decision:")?;
        for (basis, tally) in &self.bases {
            writeln!(f, "{}", line(basis.as_str(), tally))?;
        }
        writeln!(
            f,
            "\nconfusion (rows: actual type; columns: predicted type):"
        )?;
        write!(f, "{:14}", "")?;
        for column in QueryType::ALL {
            write!(f, " {:>14}", column.as_str())?;
        }
        writeln!(f)?;
        for row in QueryType::ALL {
            write!(f, "{:14}", row.as_str())?;
            for column in QueryType::ALL {
                let count = self.confusion.get(&(row, column)).copied().unwrap_or(0);
                write!(f, " {count:>14}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "\nby confidence:")?;
        for (tenth, tally) in self.tenths.iter().enumerate().filter(|(_, t)| t.all > 0) {
            let (from, to) = (tenth as f64 / 10.0, (tenth + 1) as f64 / 10.0);
            writeln!(f, "{}", line(&format!("{from:.1} to {to:.1}"), tally))?;
        }
        Ok(())
    }
}

fn line(name: &str, tally: &Tally) -> String {
    format!(
        "{name:14} {:>5} of {:>5} correct  {:5.1} %   mean confidence {:.3}",
        tally.right,
        tally.all,
        100.0 * tally.accuracy(),
        tally.confidence()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labelled_rows_have_two_or_three_columns() {
        let rows = LabelledQuery::parse(
            "\u{feff}# a comment\ncode\twhere\r\n\naction\tde\tlösch das\n",
            "x",
        );
        let row = |query_type, language: &str, query: &str| LabelledQuery {
            query_type,
            language: language.into(),
            query: query.into(),
        };
        let want = vec![
            row(QueryType::Code, "en", "where"),
            row(QueryType::Action, "de", "lösch das"),
        ];
        assert_eq!(rows, Ok(want));
        for (name, text, want) in [
            ("no tab", "code where", "x:1: 1 columns"),
            ("too many", "a\tb\tc\td", "x:1: 4 columns"),
            (
                "no type",
                "code\ta\nnone\tb",
                "x:2: unknown query type `none`",
            ),
        ] {
            let error = LabelledQuery::parse(text, "x").unwrap_err().to_string();
            assert!(error.starts_with(want), "{name}: {error}");
        }
    }

    #[test]
    fn evaluation_counts_by_type_language_and_confidence() {
        let row = |query_type, language: &str| LabelledQuery {
            query_type,
            language: language.into(),
            query: "q".into(),
        };
        let mut all = Evaluation::default();
        all.count(
            &row(QueryType::Code, "en"),
            Basis::Weights,
            QueryType::Code,
            1.0,
        );
        all.count(
            &row(QueryType::Code, "de"),
            Basis::Weights,
            QueryType::Action,
            0.31,
        );
        all.count(
            &row(QueryType::Action, "de"),
            Basis::Weights,
            QueryType::Code,
            0.6,
        );
        all.sort();
        let of = |tally: &Tally| (tally.right, tally.all);
        assert_eq!(of(&all.total), (1, 3));
        assert_eq!(of(&all.types[&QueryType::Code]), (1, 2));
        assert_eq!(of(&all.languages["de"]), (0, 2));
        assert_eq!(all.confusion[&(QueryType::Code, QueryType::Action)], 1);
        assert_eq!([3, 6, 9].map(|tenth| all.tenths[tenth].all), [1, 1, 1]);
        let surest: Vec<f64> = all.mistakes.iter().map(|m| m.confidence).collect();
        assert_eq!(surest, [0.6, 0.31]);
    }
}
