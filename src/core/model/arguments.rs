//! How words of the model are parsed as arguments of a command line.

use clap::{
    builder::{
        BoolValueParser, PossibleValuesParser, StringValueParser, TypedValueParser, ValueParser,
        ValueParserFactory,
    },
    value_parser,
};

use super::{
    ApprovalToken, BusyPolicy, CallId, NanoUsd, QueryId, QueryType, Seq, Severity, StateFilter,
    Turn, access::Role, command::Author, decimal,
};

/// Says how an argument of a type is parsed.
macro_rules! arguments {
    ($($type:ty: $parser:expr;)*) => {$(
        impl ValueParserFactory for $type {
            type Parser = ValueParser;

            fn value_parser() -> ValueParser {
                ValueParser::new($parser)
            }
        }
    )*};
}

arguments! {
    ApprovalToken: StringValueParser::new().map(ApprovalToken);
    Author: BoolValueParser::new().map(|is_user| if is_user { Author::User } else { Author::Operator });
    BusyPolicy: one_of(BusyPolicy::ALL, BusyPolicy::as_str);
    CallId: StringValueParser::new().map(|id| CallId::new(&id));
    NanoUsd: money;
    QueryId: value_parser!(u32).map(QueryId);
    QueryType: one_of(QueryType::ALL, QueryType::as_str);
    Role: one_of(Role::ALL, Role::as_str);
    Seq: value_parser!(u64).map(Seq);
    Severity: one_of(Severity::ALL, Severity::as_str);
    StateFilter: one_of(StateFilter::all(), StateFilter::as_str);
    Turn: value_parser!(u32).map(Turn);
}

fn money(text: &str) -> Result<NanoUsd, &'static str> {
    let nanos = decimal::scaled(text, 9).map(NanoUsd);
    nanos.ok_or("write an amount in US dollars, such as 1.50")
}

/// Parses one of these values by its name.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let find = move |word: String| {
        let one = all.into_iter().find(|one| name(*one) == word);
        one.ok_or("no such value")
    };
    PossibleValuesParser::new(all.map(name)).try_map(find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_parsed_exactly() {
        for (text, nanos) in [
            ("1", Some(1_000_000_000)),
            ("1.50", Some(1_500_000_000)),
            ("0.000000001", Some(1)),
            ("18446744073.709551615", Some(u64::MAX)),
            ("18446744073.709551616", None),
            ("0.0000000001", None),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1", None),
            ("1e3", None),
        ] {
            assert_eq!(money(text).ok(), nanos.map(NanoUsd), "{text}");
        }
    }
}
