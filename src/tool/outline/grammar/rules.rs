//! Grammars of languages as patterns over the text of a [`Statement`].

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::{Role, Statement};
use crate::{
    model::words,
    tool::outline::{SymbolKind, collect::Language},
};

/// What is known about the declarations of a language.
pub(super) struct Grammar {
    language: Language,
    /// Modifiers, annotations and attributes before a declaration.
    pub(super) prelude: Regex,
    /// Words that are no names, though they stand where names do.
    pub(super) no_names: &'static str,
    /// The patterns of all rules, which tell quickly that most statements define nothing.
    pub(super) patterns: RegexSet,
    pub(super) rules: Vec<Rule>,
}

/// A pattern of definitions, for the text after the prelude.
pub(super) struct Rule {
    pub(super) kind: SymbolKind,
    pub(super) place: Place,
    pub(super) pattern: Regex,
}

words! {
    /// Where a rule applies.
    pub(super) enum Place {
        Any = "any",
        /// In a file or module.
        Open = "open",
        /// In a file or module, after `export`.
        Exported = "exported",
        /// In a type.
        Member = "member",
        /// In a type that has the name.
        Constructor = "constructor",
        /// In a type, or before a body outside of it.
        Method = "method",
        /// In a type, before a body.
        Property = "property",
        /// In a type, after `static final`.
        StaticFinal = "static_final",
        /// In an object literal, before a body.
        Object = "object",
        /// In an object literal.
        Field = "field",
        /// Before parentheses that begin with a function.
        Callback = "callback",
    }
}

impl Place {
    pub(super) fn fits(self, statement: &Statement<'_>, role: Role<'_>, opens: bool) -> bool {
        static CALLBACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"^(?:async )?(?:function |\( \) (?:=>|:)|[\w$]+ =>)").ok()
        });
        let in_type = matches!(role, Role::Type(_));
        let is_open = matches!(role, Role::File | Role::Module);
        match self {
            Self::Any => true,
            Self::Open => is_open,
            Self::Exported => is_open && statement.text.starts_with("export "),
            Self::Member | Self::Constructor => in_type,
            Self::Method => in_type || (opens && role != Role::File),
            Self::Property => in_type && opens,
            Self::StaticFinal => {
                let has = |word: &str| statement.prelude().split(' ').any(|one| one == word);
                in_type && has("static") && (has("final") || has("readonly"))
            }
            Self::Object => role == Role::Other && opens,
            Self::Field => role == Role::Other,
            Self::Callback => {
                let first = statement.group.iter().take(4).map(|token| token.text);
                let first = first.collect::<Vec<_>>().join(" ");
                CALLBACK.iter().any(|callback| callback.is_match(&first))
            }
        }
    }
}

/// Languages with their modifiers, words that are no names, and rules, one per line: the kind of
/// symbol, the place, the pattern.
const GRAMMARS: [(Language, &str, &str, &str); 8] = [
    (
        Language::Rust,
        "pub default async unsafe crate auto safe",
        "_",
        r#"
function        any     (?:(?:const|async|unsafe|safe|extern|extern "") )*fn NAME
type            any     (?:struct|enum|type|union) NAME
interface       any     trait NAME
module          any     mod NAME
macro           any     (?:macro|macro_rules !) NAME
constant        any     (?:const|static) (?:mut )?NAME :
implementation  any     impl (?:! )?(?:\w+ :: )*OWNER (?:\( \) .*)?for REFERENCE(?:\w+ :: )*NAME
implementation  any     impl REFERENCE(?:\w+ :: )*NAME
"#,
    ),
    (
        Language::Go,
        "",
        "_",
        r"
function        any     func (?:\( \) )?NAME
interface       any     type NAME (?:\[ \] )?interface
type            any     type NAME
constant        open    const NAME
variable        open    var NAME
method          member  NAME \(
",
    ),
    (
        Language::Java,
        "public private protected internal static final abstract sealed virtual override async \
         extern unsafe partial readonly new synchronized native default transient volatile strictfp \
         non required file ref",
        "if for foreach while switch catch synchronized lock using fixed try return throw new else \
         do when",
        r"
type            any             (?:class|enum|struct|record class|record struct) NAME
type            any             record NAME (?:[({:;]|$)
type            any             delegate (?:\S+ )*?NAME \(
interface       any             interface NAME
module          any             namespace (?:\w+ \. )*NAME
method          constructor     (?:~ )?NAME \(
method          method          (?<type>(?:(?:[\w$]+|\. [\w$]+|[\[\],?&*:]|::) )+)NAME \(
variable        property        (?:[^\s=(]+ )+NAME $
variable        member          (?:[^\s=(]+ )+NAME =>
constant        member          const (?:[^\s=]+ )+?NAME =
constant        static_final    (?:[^\s=]+ )*?NAME =
",
    ),
    (
        Language::Kotlin,
        "public private protected internal open abstract final sealed data inner enum annotation \
         value inline override suspend operator infix tailrec external lateinit expect actual",
        "",
        r"
interface       any     (?:fun )?interface NAME
type            any     (?:class|typealias|(?:companion )?object) NAME
type            any     (?:companion )?(?<name>object)\b
function        any     fun (?:(?:\w+ (?:\? )?\. )*OWNER (?:\? )?\. )?NAME \(
method          member  (?<name>constructor)\b
constant        open    val NAME
constant        any     const val NAME
variable        open    var NAME
",
    ),
    (
        Language::Swift,
        "public private internal open fileprivate final override mutating nonmutating static \
         indirect required convenience lazy weak unowned dynamic optional nonisolated prefix postfix \
         infix package distributed",
        "func var let",
        r"
function        any     (?:class )?func NAME
type            any     (?:class|struct|enum|actor|typealias) NAME
interface       any     protocol NAME
implementation  any     extension (?:\w+ \. )*NAME
method          member  (?<name>init|deinit|subscript)\b
constant        open    let NAME
variable        open    var NAME
",
    ),
    (
        Language::Php,
        "public protected private static abstract final readonly var",
        "",
        r"
function        any     function (?:& )?NAME
type            any     (?:class|trait|enum) NAME
interface       any     interface NAME
module          any     namespace NAME
constant        any     const (?:\w+ )*?NAME =
",
    ),
    (
        Language::Script,
        "export default declare async abstract public private protected static readonly override \
         accessor",
        "if for while switch catch with function return super await extends",
        r"
function        any       function (?:\* )?NAME
type            any       (?:class|(?:const )?enum) NAME
interface       any       interface NAME
type            any       type NAME =
module          any       (?:namespace|module) (?:[\w$]+ \. )*NAME
function        any       (?:const|let|var) NAME TYPED= FN
type            any       (?:const|let|var) NAME TYPED= class\b
function        callback  (?:const|let|var) NAME TYPED= (?:React \. )?[\w$]+ \(
constant        open      const NAME TYPED=\s
variable        open      (?:let|var) NAME TYPED=\s
variable        exported  (?:const|let|var) NAME (?:[^=]|=>)*$
method          member    (?:(?:get|set|\*) )?NAME (?:\? )?\( \) (?::|$)
method          object    (?:(?:get|set|\*) )?NAME (?:\? )?\( \) (?::|$)
method          member    NAME (?:\? )?TYPED= FN
method          field     NAME (?:\? )?: FN
function        any       (?:[\w$]+ \. )*OWNER \. prototype \. NAME = FN
function        any       (?:[\w$]+ \. )+NAME = FN
type            any       (?:[\w$]+ \. )+NAME = class\b
",
    ),
    (
        Language::C,
        "static inline virtual explicit friend constexpr consteval extern export template",
        "",
        "",
    ),
];

/// What some words of the rules stand for. `FN` is the beginning of a function as a value.
const ABBREVIATIONS: [(&str, &str); 5] = [
    ("NAME", r"(?<name>[\w$#]+)"),
    ("OWNER", r"(?<owner>[\w$]+)"),
    ("REFERENCE", r"(?:(?:[&*!?]|' \w+|dyn|mut|const|::) )*"),
    ("TYPED", r"(?:: (?:[^=]|=>)*)?"),
    (
        "FN",
        r"(?:async )?(?:function |(?:\( \)|[\w$]+) (?:=>|: .*=>))",
    ),
];

pub(super) fn of(language: Language) -> Option<&'static Grammar> {
    static COMPILED: LazyLock<Vec<Grammar>> =
        LazyLock::new(|| GRAMMARS.into_iter().filter_map(compiled).collect());
    let language = match language {
        Language::CSharp => Language::Java,
        other => other,
    };
    COMPILED.iter().find(|grammar| grammar.language == language)
}

fn compiled(
    (language, modifiers, no_names, rules): (Language, &str, &'static str, &str),
) -> Option<Grammar> {
    let mut parts = vec![
        r"# (?:! )?\[ \]",
        r"@ (?:[\w$]+ [.:] )*[\w$]+(?: \( \))?",
        r"\[ \]",
        ",",
        r"(?:pub|private|public|internal|fileprivate|unowned|nonisolated) \( \)",
        r"(?:__attribute__|__declspec|alignas) \( \)",
        "(?:public|private|protected) :",
    ];
    parts.extend(modifiers.split_ascii_whitespace());
    let prelude = format!("^(?:(?:{}) )*", parts.join("|"));
    let rules: Vec<Rule> = rules.lines().filter_map(rule).collect();
    Some(Grammar {
        language,
        prelude: Regex::new(&prelude).ok()?,
        no_names,
        patterns: RegexSet::new(rules.iter().map(|rule| rule.pattern.as_str())).ok()?,
        rules,
    })
}

fn rule(line: &str) -> Option<Rule> {
    let (kind, rest) = line.split_once(' ')?;
    let (place, pattern) = rest.trim_start().split_once(' ')?;
    let mut pattern = format!("^{}", pattern.trim_start());
    for (word, means) in ABBREVIATIONS {
        pattern = pattern.replace(word, means);
    }
    Some(Rule {
        kind: SymbolKind::ALL
            .into_iter()
            .find(|one| one.as_str() == kind)?,
        place: Place::ALL.into_iter().find(|one| one.as_str() == place)?,
        pattern: Regex::new(&pattern).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_valid() {
        for (language, .., rules) in GRAMMARS {
            let grammar = of(language).unwrap();
            assert_eq!(
                grammar.rules.len(),
                rules.trim().lines().count(),
                "{language:?}"
            );
        }
    }
}
