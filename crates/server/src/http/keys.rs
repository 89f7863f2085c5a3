//! API keys. A key's text is in the answer that makes it, and nowhere else.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use soldonce_engine::keys::{ApiKey, KeyId, Revocation, Scope};
use soldonce_engine::reply::Rfc3339;

use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::json::{self, Str};
use super::kinds;
use super::problem::{Handled, Problem};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = String)]
    name: Str<'a>,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
}

#[derive(Serialize)]
struct NewKey {
    #[serde(flatten)]
    row: KeyRow,
    key: String,
}

#[derive(Serialize)]
struct KeyRow {
    id: String,
    name: String,
    scopes: Vec<Scope>,
    created_at: Rfc3339,
    revoked_at: Option<Rfc3339>,
}

impl KeyRow {
    fn new(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.as_str().to_owned(),
            scopes: key.scopes.clone(),
            created_at: Rfc3339(key.created_at),
            revoked_at: key.revoked_at.map(Rfc3339),
        }
    }
}

/// `POST /v1/keys`
pub(super) async fn create(mut asked: Asked) -> Handled {
    let body = asked.json().await?;
    let request: KeyRequest<'_> = json::parse(&body)?;
    let name = soldonce_core::Text::parse(&request.name.0);
    let name = name.map_err(|error| Problem::invalid("name", error))?;
    let mut scopes = request.scopes;
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        let rule = "name at least one of `admin`, `sell`, `read`";
        return Err(Problem::invalid("scopes", rule));
    }
    let (made, key) = asked.app.engine.create_key(name, scopes).await?;
    let answer = NewKey {
        row: KeyRow::new(&made),
        key,
    };
    Ok(answer::object(&asked.app, StatusCode::CREATED, &answer))
}

#[derive(Serialize)]
struct KeyList {
    keys: Vec<KeyRow>,
    next: Option<String>,
}

/// `GET /v1/keys`
pub(super) async fn list(asked: Asked) -> Handled {
    asked.query(&[])?;
    let keys = asked.app.engine.keys();
    let list = KeyList {
        keys: keys.iter().map(KeyRow::new).collect(),
        next: None,
    };
    Ok(answer::object(&asked.app, StatusCode::OK, &list))
}

/// `DELETE /v1/keys/{id}`
pub(super) async fn revoke(asked: Asked) -> Handled {
    asked.query(&[])?;
    let missing = || Problem::detailed(&kinds::NOT_FOUND, "there is no API key of this id");
    let id: KeyId = asked.segment(2).parse().map_err(|_| missing())?;
    let engine = &asked.app.engine;
    match engine.revoke_key(id).await? {
        Revocation::Revoked(key) => {
            let row = KeyRow::new(&key);
            Ok(answer::object(&asked.app, StatusCode::OK, &row))
        }
        Revocation::Unknown => Err(missing()),
        Revocation::LastAdmin => Err(Problem::new(&kinds::LAST_ADMIN_KEY)),
    }
}
