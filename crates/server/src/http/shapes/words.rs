//! Fields whose values are words of a list that the core or the engine has.

use soldonce_core::StateKind;
use soldonce_engine::webhook::MessageKind;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Declares the schema of one of some words, and what is said of it.
macro_rules! one_of {
    ($name:ident, $words:expr, $about:expr) => {
        pub(in crate::http) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let about: Option<&str> = $about;
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some($words))
                    .description(about)
                    .into()
            }
        }

        impl ToSchema for $name {}
    };
}

one_of!(UnitState, StateKind::WORDS, None);
one_of!(HoldState, soldonce_core::HoldState::WORDS, None);
one_of!(Advice, soldonce_core::Advice::WORDS, None);
one_of!(
    MessageType,
    MessageKind::WORDS,
    Some("What a message tells.")
);
one_of!(
    DeliveryState,
    soldonce_engine::webhook::DeliveryState::WORDS,
    Some("Where a delivery stands.")
);
