//! How the words and names of the model are described.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, KnownFormat, ObjectBuilder, RefOr, SchemaFormat,
        schema::{Schema, Type},
    },
};

use crate::{
    actor::SessionState,
    model::{
        BusyPolicy, ProfileName, SessionName, Severity, Source, Speaker, TenantId, Timestamp,
        command::Author, id::MAX_NAME,
    },
};

fn word(words: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.enum_values(Some(words)).into()
}

fn name() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.min_length(Some(1)).max_length(Some(MAX_NAME));
    text.pattern(Some("^[A-Za-z0-9._:-]+$")).into()
}

fn time() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    text.format(Some(format)).into()
}

/// Beginnings of types of events.
pub(super) fn kinds() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    ArrayBuilder::new().items(text.min_length(Some(1))).into()
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
    SessionName as name(),
    TenantId as name(),
    ProfileName as name(),
    Timestamp as time(),
    BusyPolicy as word(Self::ALL.map(Self::as_str)),
    SessionState as word(Self::ALL.map(Self::as_str)),
    Severity as word(["info", "warning", "error"]),
    Source as word(["session", "supervisor", "gateway", "control"]),
    Speaker as word(["user", "assistant"]),
    Author as word(["user", "operator"]),
}
