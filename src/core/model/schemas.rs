//! OpenAPI schemas of the model's names and enums.

use utoipa::openapi::{
    KnownFormat, ObjectBuilder, RefOr, SchemaFormat,
    schema::{Schema, Type},
};

use crate::model::{
    BusyPolicy, CallId, ProfileName, QueryId, QueryType, Seq, SessionName, SessionState, Severity,
    SignalType, Source, Speaker, StateFilter, TenantId, Timestamp, Turn, command::Author,
    id::MAX_NAME, usage::NanoUsd,
};

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A text that is one of these words.
pub fn word(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    text().enum_values(Some(words)).into()
}

fn name(prefix: &str) -> RefOr<Schema> {
    let text = text().min_length(Some(1)).max_length(Some(MAX_NAME));
    text.pattern(Some(format!("^{prefix}[A-Za-z0-9._:-]+$")))
        .into()
}

fn time() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    text().format(Some(format)).into()
}

/// Gives types a schema and their name.
#[doc(hidden)]
#[macro_export]
macro_rules! described {
    ($($type:ident as $schema:expr,)+) => {
        $(
            impl utoipa::PartialSchema for $type {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                    $schema
                }
            }

            impl utoipa::ToSchema for $type {
                fn name() -> std::borrow::Cow<'static, str> {
                    std::borrow::Cow::Borrowed(stringify!($type))
                }
            }
        )+
    };
}

described! {
    SessionName as name("~*"),
    TenantId as name(""),
    ProfileName as name(""),
    Timestamp as time(),
    CallId as String::schema(),
    QueryId as u32::schema(),
    Turn as u32::schema(),
    Seq as u64::schema(),
    NanoUsd as u64::schema(),
    QueryType as word(Self::ALL.map(Self::as_str)),
    BusyPolicy as word(Self::ALL.map(Self::as_str)),
    SessionState as word(Self::ALL.map(Self::as_str)),
    StateFilter as word(Self::all().map(Self::as_str)),
    SignalType as word(Self::ALL.map(Self::as_str)),
    Severity as word(Self::ALL.map(Self::as_str)),
    Source as word(["session", "supervisor", "gateway", "control"]),
    Speaker as word(["user", "assistant"]),
    Author as word(["user", "operator"]),
}
