//! The shapes of what is serialised by hand, for the daemon's `OpenAPI` document.

use std::borrow::Cow;

use utoipa::openapi::schema::{KnownFormat, SchemaFormat};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::lease_id::LeaseId;
use crate::time::Timestamp;

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A moment in UTC, to the millisecond."))
            .examples(["2026-01-31T12:00:00.000Z"]);
        text.into()
    }
}

impl ToSchema for Timestamp {
    fn name() -> Cow<'static, str> {
        "Moment".into()
    }
}

impl PartialSchema for LeaseId {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The name of a lease. It carries its pool; do not take it apart."));
        text.into()
    }
}

impl ToSchema for LeaseId {
    fn name() -> Cow<'static, str> {
        "LeaseId".into()
    }
}
