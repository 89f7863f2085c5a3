//! The API description.

/// The OpenAPI document.
pub fn document() -> String {
    String::new()
}
