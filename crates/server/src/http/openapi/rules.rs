//! What requests must look like beyond their types: patterns, lengths and bounds, and which of their
//! fields go together. A field has one meaning wherever its name occurs.

use serde_json::{Map, Value, json};
use soldonce_core::limits::{HOLD_LIFETIME_MS_MAX, HOLD_TTL_MS_MIN, PRICE_MAX, TEXT_CHARS_MAX};
use soldonce_core::{BookingState, HoldState};
use soldonce_engine::keys::{ADOPTED_NAME, Scope};
use soldonce_engine::webhook::MessageKind;
use soldonce_lease::limits::NAMES_MAX;

use crate::limits::{LEASE_CAP_MS_MAX, LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX};

const LEASE_NAME: &str = "^[A-Za-z0-9._:-]{1,128}$";
const ID: &str = "^[A-Za-z0-9._-]{1,64}$";
/// 128 bits in Crockford's base 32.
const MINTED: &str = "[0-7][0-9a-hjkmnp-tv-z]{25}$";
const ONE_LINE: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/// One line with a character that is no space.
const NOT_BLANK: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$";

/// Finds the rule of a field or parameter of this name.
pub(super) fn of_field(name: &str) -> Option<Value> {
    let text = || json!({"maxLength": TEXT_CHARS_MAX, "pattern": ONE_LINE});
    Some(match name {
        "holder" | "id" => json!({"pattern": ID}),
        "reason" | "reference" | "name" => text(),
        "return_url" => json!({
            "maxLength": TEXT_CHARS_MAX, "format": "uri",
            "pattern": "^[A-Za-z][A-Za-z0-9+.-]{0,30}://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?$",
        }),
        "url" => json!({"format": "uri", "pattern": "^https://[!-~]+$"}),
        "chart" => json!({"$ref": "#/components/schemas/ChartRequest"}),
        "price" => json!({"type": ["integer", "null"]}),
        "version" => json!({"type": ["integer", "null"], "minimum": 0}),
        "state" => json!({"type": ["string", "null"]}),
        "currency" => json!({"pattern": "^[A-Z]{3}$"}),
        "prices" => json!({"additionalProperties": {
            "type": "integer", "format": "int64", "minimum": 0, "maximum": PRICE_MAX,
        }}),
        "booking" => json!({"pattern": format!("^bkg_{MINTED}")}),
        "hold" => json!({"pattern": format!("^hld_{MINTED}")}),
        "scopes" => {
            json!({"minItems": 1, "items": {"type": "string", "enum": Scope::WORDS}})
        }
        "types" => {
            json!({"minItems": 1, "items": {"type": "string", "enum": MessageKind::WORDS}})
        }
        "units" | "release" => json!({"minItems": 1}),
        "quantity" | "amount" => json!({"minimum": 1}),
        "limit" => json!({"minimum": 1, "maximum": 100}),
        "owner" => json!({"pattern": "^[A-Za-z0-9._~-]{1,64}$"}),
        "names" => {
            json!({"minItems": 1, "maxItems": NAMES_MAX, "items": {"type": "string", "pattern": LEASE_NAME}})
        }
        "group" => json!({"pattern": LEASE_NAME}),
        "token" | "floor" => {
            json!({"minLength": 16, "maxLength": 16, "pattern": "^[0-9]*[1-9][0-9]*$"})
        }
        "ttl_ms" => json!({"minimum": HOLD_TTL_MS_MIN, "maximum": HOLD_LIFETIME_MS_MAX}),
        "cap_ms" => json!({"minimum": LEASE_TTL_MS_MIN, "maximum": LEASE_CAP_MS_MAX}),
        "wait_ms" => json!({"minimum": 0, "maximum": LEASE_WAIT_MS_MAX}),
        "fence" => json!({"minimum": 0, "maximum": u64::MAX}),
        // The id of an event in one list, a number where it has no rule of its own.
        "after" => json!({"pattern": ID, "minimum": 0, "maximum": u64::MAX}),
        "digest" => json!({"pattern": "^[0-9a-f]{8}$"}),
        "Last-Event-ID" => json!({"pattern": "^[0-9]{1,19}(\\.[0-9a-f]{8})?$"}),
        _ => return None,
    })
}

/// Finds the rule of a field of a request: the schema's own if it has one, else that of every field
/// of this name.
fn of_part(schema: &str, field: &str) -> Option<Value> {
    match (schema, field) {
        ("EventRequest" | "KeyRequest" | "UpdateRequest", "name") => {
            Some(json!({"minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": NOT_BLANK}))
        }
        _ => of_field(field),
    }
}

/// Finds the rule of a parameter in the path: only names of leases have one, and a wrong id of
/// anything else is not found.
pub(super) fn of_segment(name: &str) -> Option<Value> {
    (name == "name").then(|| json!({"pattern": LEASE_NAME}))
}

/// Finds the rule of a query parameter: of its name in this operation, else of its name.
pub(super) fn of_query(operation: &str, name: &str) -> Option<Value> {
    Some(match (operation, name) {
        (_, "state") => {
            let word = format!("({})", words_of_query(operation, name).join("|"));
            json!({"pattern": format!("^{word}(,{word})*$")})
        }
        ("list_holds" | "list_holds_of_event", "after") => {
            json!({"pattern": format!("^hld_{MINTED}")})
        }
        ("list_bookings" | "list_bookings_of_event", "after") => {
            json!({"pattern": format!("^bkg_{MINTED}")})
        }
        (_, "from" | "until") => json!({"format": "date-time"}),
        _ => return of_field(name),
    })
}

/// Returns the words of a query parameter that is one or more of some, with commas between.
pub(super) fn words_of_query(operation: &str, name: &str) -> &'static [&'static str] {
    match (operation, name) {
        ("list_holds_of_event", "state") => &HoldState::WORDS,
        ("list_bookings_of_event", "state") => &BookingState::WORDS,
        _ => &[],
    }
}

/// Finds the rule of a schema: which of its fields go together. A field that is `null` is left out.
fn of_schema(name: &str) -> Option<Value> {
    let nothing = json!({"type": "null"});
    let of_area = json!({"required": ["area", "quantity"], "properties": {
        "area": {"type": "string"}, "quantity": {"type": "integer"},
    }});
    Some(match name {
        "UnitRequest" => either(
            ("seat", "string"),
            &json!({"properties": {"area": nothing, "quantity": nothing}}),
            &of_area,
        ),
        "OwnUnitRequest" => either(
            ("seat", "string"),
            &json!({"properties": {"area": nothing, "quantity": nothing, "place": nothing}}),
            &either(
                ("place", "string"),
                &json!({"properties": {"quantity": nothing}}),
                &of_area,
            ),
        ),
        "KeyRequest" => {
            json!({"not": {"required": ["name"], "properties": {"name": {"const": ADOPTED_NAME}}}})
        }
        "HoldRequest" => either(
            ("units", "array"),
            &json!({"properties": {"best": nothing}}),
            &json!({"required": ["best"], "properties": {"best": {"type": "object"}}}),
        ),
        _ => return None,
    })
}

/// Builds a rule: the first one where this field is there, else the second. Not `oneOf`: of that,
/// generators of clients make a type for each choice, without the fields that all of them have.
fn either((field, kind): (&str, &str), there: &Value, missing: &Value) -> Value {
    json!({
        "if": {"required": [field], "properties": {field: {"type": kind}}},
        "then": there,
        "else": missing,
    })
}

/// The formats of seat plans, each with an example, and their parts: schemas by name.
const CHARTS: &str = include_str!("charts.json");

/// Adds the rules to the schemas of requests.
pub(super) fn add(schemas: &mut Map<String, Value>) {
    let charts: Map<_, _> = serde_json::from_str(CHARTS).expect("the file is JSON");
    schemas.extend(charts);
    let requests = schemas
        .iter_mut()
        .filter(|(name, _)| name.ends_with("Request"));
    for (name, schema) in requests {
        if let Some(rule) = of_schema(name) {
            merge(schema, rule);
        }
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
            continue;
        };
        for (field, described) in properties {
            if name == "PolicyRequest" {
                or_null(described);
            }
            match of_part(name, field) {
                Some(link) if link.get("$ref").is_some() => *described = link,
                Some(rule) => merge(described, rule),
                None => {}
            }
            name_unsigned(described);
        }
    }
}

/// Lets a field be `null` too.
fn or_null(schema: &mut Value) {
    let kind = schema.get("type").filter(|kind| kind.is_string()).cloned();
    if let Some(kind) = kind {
        merge(schema, json!({"type": [kind, "null"]}));
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
}

/// Sets the parts of a rule.
pub(super) fn merge(schema: &mut Value, rule: Value) {
    if let (Some(schema), Value::Object(rule)) = (schema.as_object_mut(), rule) {
        schema.extend(rule);
    }
}

/// Gives whole numbers that are not negative an unsigned format: they have a bit more.
fn name_unsigned(schema: &mut Value) {
    if schema
        .get("minimum")
        .is_none_or(|least| least.as_i64() < Some(0))
    {
        return;
    }
    let (format, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => ("uint32", u64::from(u32::MAX)),
        Some("int64") => ("uint64", u64::MAX),
        _ => return,
    };
    let most = schema.get("maximum").cloned().unwrap_or(most.into());
    merge(schema, json!({"format": format, "maximum": most}));
}
