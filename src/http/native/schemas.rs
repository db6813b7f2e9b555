//! OpenAPI schemas of the model's names and enums.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, RefOr, SchemaFormat,
        schema::{Schema, Type},
    },
};

use crate::{
    control::Subject,
    model::{
        BusyPolicy, CallId, ProfileName, QueryId, QueryType, Seq, SessionName, SessionState,
        Severity, SignalType, Source, Speaker, StateFilter, TenantId, Timestamp, Turn,
        command::Author, id::MAX_NAME, usage::NanoUsd,
    },
};

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn word(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    text().enum_values(Some(words)).into()
}

fn name(prefix: &str) -> RefOr<Schema> {
    let text = text().min_length(Some(1)).max_length(Some(MAX_NAME));
    text.pattern(Some(format!("^{prefix}[A-Za-z0-9._:-]+$")))
        .into()
}

fn subject() -> RefOr<Schema> {
    let name = "[A-Za-z0-9._:-]{1,128}";
    text().pattern(Some(format!("^({name}/)?~*{name}$"))).into()
}

fn time() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    text().format(Some(format)).into()
}

macro_rules! described {
    ($($type:ident as $schema:expr,)+) => {
        $(
            impl PartialSchema for $type {
                fn schema() -> RefOr<Schema> {
                    $schema
                }
            }

            impl ToSchema for $type {
                fn name() -> Cow<'static, str> {
                    Cow::Borrowed(stringify!($type))
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
    Subject as subject(),
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
