//! Parameters of statements. The SQL type of each follows from its type in Rust: the database is
//! never asked for it.

use tokio_postgres::types::{ToSql, Type};

use super::tables::Id;

/// A value for a statement and its type.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// Pairs a value with its SQL type.
pub(super) fn bind<T: Bind>(value: &T) -> Value<'_> {
    (value, T::TYPE)
}

/// A Rust type that can be the parameter of a statement.
pub(super) trait Bind: ToSql + Sync {
    const TYPE: Type;
}

/// A Rust type whose arrays can be the parameter of a statement.
pub(super) trait Element: ToSql + Sync {
    const ARRAY: Type;
}

macro_rules! types {
    ($($rust:ty: $one:ident $many:ident,)*) => {
        $(
            impl Bind for $rust {
                const TYPE: Type = Type::$one;
            }
            impl Element for $rust {
                const ARRAY: Type = Type::$many;
            }
        )*
    };
}
types! {
    bool: BOOL BOOL_ARRAY,
    i16: INT2 INT2_ARRAY,
    i32: INT4 INT4_ARRAY,
    i64: INT8 INT8_ARRAY,
    &str: TEXT TEXT_ARRAY,
    String: TEXT TEXT_ARRAY,
    Id: BYTEA BYTEA_ARRAY,
    &[u8]: BYTEA BYTEA_ARRAY,
    Vec<u8>: BYTEA BYTEA_ARRAY,
}

impl<T: Bind> Bind for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: Element> Element for Option<T> {
    const ARRAY: Type = T::ARRAY;
}

impl<T: Element> Bind for Vec<T> {
    const TYPE: Type = T::ARRAY;
}

impl<T: Element> Bind for &[T] {
    const TYPE: Type = T::ARRAY;
}
