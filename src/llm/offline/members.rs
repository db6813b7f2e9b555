//! What a type has, by the outlines of the files that define it: a line each, set in by how deep it lies. Pure.

use super::{
    conversation::{Asked, Conversation},
    evidence::Evidence,
    rank::{Lies, implementing, is_said_in, names},
    source::{FileKind, Introduces, defines_type, implements, introduces},
    toolbox::{REPO_MAP, is_for_heads},
    uses::{Spot, has_word},
};
use crate::words::{Tongue, name_defined};

/// What a type has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// In the order of the outlines.
    pub(super) all: Vec<Member>,
    /// The files whose outlines were seen.
    pub(super) outlined: Vec<String>,
    /// Whether an outline has more than it shows.
    pub(super) is_cut: bool,
}

/// A line of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) text: String,
}

impl Member {
    /// Whether it is called.
    pub(super) fn is_method(&self) -> bool {
        self.text.contains('(')
    }
}

impl Members {
    /// By the outlines that were asked for.
    pub(super) fn of(conversation: &Conversation<'_>, name: &str) -> Self {
        let mut members = Self::default();
        for asked in &conversation.asked {
            if let Some((path, content)) = outline(asked) {
                members.take(&path, content, name);
                members.outlined.push(path);
            }
        }
        members
    }

    /// Whether nothing is known that may have more of it: files without an outline, or lines that the search for its
    /// heads did not show.
    pub(super) fn are_all(&self, evidence: &Evidence, name: &str) -> bool {
        let mut files = files(name, evidence).into_iter();
        let mut searched = evidence.searched.iter();
        let is_cut = |query: &str, unshown: u64| is_for_heads(query, name) && unshown > 0;
        files.all(|path| self.outlined.iter().any(|known| known == path))
            && !searched.any(|one| is_cut(&one.query, one.unshown) || one.is_stopped)
            && !self.is_cut
    }

    fn take(&mut self, path: &str, content: &str, name: &str) {
        let mut head = None;
        self.is_cut |= content
            .lines()
            .any(|line| line.starts_with("… ") && line.ends_with(path));
        for (line, text) in content.lines().filter_map(|line| of_outline(path, line)) {
            let bare = text.trim_start();
            let depth = text.len() - bare.len();
            if head.is_some_and(|head| depth <= head) {
                head = None;
            }
            let is_next = head.is_some_and(|head| depth == head + STEP);
            // What is all in one line stands there again for each of its members.
            if heads(path, bare, name) {
                head = head.or(Some(depth));
            } else if is_next || (head.is_none() && lies_in(path, bare, name)) {
                self.all.push(Member {
                    path: path.to_owned(),
                    line,
                    text: bare.to_owned(),
                });
            }
        }
    }
}

/// The files that define it, then those that implement something of it; code before tests.
pub(super) fn files<'a>(name: &str, evidence: &'a Evidence) -> Vec<&'a str> {
    let mut files: Vec<(bool, bool, &str)> = Vec::new();
    for (path, lines) in &evidence.files {
        let kind = FileKind::of(path);
        let defines = lines.keys().any(|at| {
            let introduced = introduces(path, lines, *at);
            matches!(introduced, Some(Introduces::Definition { name: defined }) if defined == name)
        });
        let is_of_it = |line: &String| {
            (implements(line) || line.starts_with("func (")) && has_word(line, name)
        };
        if kind != FileKind::Docs && (defines || lines.values().any(is_of_it)) {
            files.push((kind != FileKind::Code, !defines, path));
        }
    }
    files.sort_unstable();
    files.into_iter().map(|(.., path)| path).collect()
}

/// Where types of this name are defined.
pub(super) fn types<'a>(name: &str, evidence: &'a Evidence) -> Vec<Spot<'a>> {
    let code = evidence.files.iter();
    let code = code.filter(|(path, _)| FileKind::of(path) != FileKind::Docs);
    let heads = code.flat_map(|(path, lines)| {
        let heads = lines
            .keys()
            .filter(|at| defines_type(path, lines, **at, name));
        heads.map(move |at| Spot { path, line: *at })
    });
    heads.collect()
}

/// So far is set in what lies in something.
const STEP: usize = 2;

/// The file and the text of an outline of a single one.
fn outline<'a>(asked: &Asked<'a>) -> Option<(String, &'a str)> {
    let result = asked
        .result
        .filter(|_| asked.worked() && asked.call.name == REPO_MAP)?;
    let arguments = asked.call.parsed().ok()?;
    let path = arguments.get("path")?.as_str()?;
    Some((path.to_owned(), &result.content))
}

/// `path:line:   text`, with the blanks before the text.
fn of_outline<'a>(path: &str, line: &'a str) -> Option<(u32, &'a str)> {
    let (line, text) = line
        .strip_prefix(path)?
        .strip_prefix(':')?
        .split_once(": ")?;
    Some((line.parse().ok()?, text))
}

/// Whether a line begins the type, or what is implemented of it.
fn heads(path: &str, bare: &str, name: &str) -> bool {
    if implements(bare) {
        let of = implementing(bare);
        return of.is_some_and(|of| matches!(names(&of, name), Lies::Within | Lies::InTrait));
    }
    let defined = name_defined(Tongue::of(path), bare, std::iter::empty());
    defined.is_some_and(|(start, end)| &bare[start..end] == name) && !bare.contains('(')
        || (has_word(bare, name) && is_type(bare, name))
}

/// `class Router(Base)`, of which the brackets are no arguments.
fn is_type(bare: &str, name: &str) -> bool {
    let words = [
        "class",
        "interface",
        "struct",
        "enum",
        "trait",
        "protocol",
        "object",
        "record",
    ];
    words.iter().any(|word| {
        let named = format!("{word} {name}");
        has_word(bare, &named)
            && bare
                .find(&named)
                .is_some_and(|at| !bare[..at].contains('('))
    })
}

/// Whether a line says itself that it lies in the type: `Status Table::Get(`, `func (s *Server) Serve(`.
fn lies_in(path: &str, bare: &str, name: &str) -> bool {
    let defined = name_defined(Tongue::of(path), bare, std::iter::empty());
    let is_said = defined.is_some_and(|(start, end)| is_said_in(bare, name, &bare[start..end]));
    let receiver = bare
        .strip_prefix("func (")
        .and_then(|rest| rest.split_once(')'));
    is_said || receiver.is_some_and(|(receiver, _)| has_word(receiver, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_type_is_set_in_below_it_or_says_so() {
        for (path, lines, name, has) in [
            (
                "a.rs",
                &[
                    "pub struct Router",
                    "  routes: Vec<Route>",
                    "impl<S> Router<S>",
                    "  pub fn nest(self) -> Self",
                    "    fn inner()",
                    "impl Clone for Router",
                    "  fn clone(&self) -> Self",
                    "impl From<Router> for Tree",
                    "  fn from(router: Router) -> Self",
                    "pub fn new(router: Router)",
                ][..],
                "Router",
                "2 4 7",
            ),
            (
                "a.py",
                &[
                    "class Base(Router)",
                    "  def run(self)",
                    "class Router(Base)",
                    "  def nest(self)",
                ],
                "Router",
                "4",
            ),
            (
                "a.go",
                &[
                    "type Server struct",
                    "  addr string",
                    "func (s *Server) Serve() error",
                    "func Run(s *Server)",
                ],
                "Server",
                "2 3",
            ),
            (
                "b.js",
                &["class Pool { get() {} }", "  class Pool { get() {} }"],
                "Pool",
                "",
            ),
            (
                "a.js",
                &[
                    "class Chunk",
                    "  addGroup(group)",
                    "class ChunkGroup",
                    "  add(a)",
                ],
                "Chunk",
                "2",
            ),
        ] {
            let content: String = (1..)
                .zip(lines)
                .map(|(at, line)| format!("{path}:{at}: {line}\n"))
                .collect();
            let mut members = Members::default();
            members.take(path, &content, name);
            let got: Vec<String> = members.all.iter().map(|one| one.line.to_string()).collect();
            assert_eq!(got.join(" "), has, "{path}");
        }
    }
}
