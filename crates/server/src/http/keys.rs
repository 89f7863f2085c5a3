//! API keys. A key's text is in the answer that makes it, and nowhere else.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use soldonce_engine::keys::{ApiKey, KeyId, Revocation, Scope};
use soldonce_engine::reply::Rfc3339;

use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::json::{self, Str};
use super::operation::{Tag, delete, get, post};
use super::problem::{Handled, Problem};
use super::route::Admission::Admin;
use super::table::Table;
use super::{answer, kinds};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Access);
    table.add(
        post("/v1/keys", Admin)
            .id("create_key")
            .summary("Makes an API key, which is told here and never again")
            .takes::<KeyRequest<'_>>(r#"{"name": "box office", "scopes": ["sell"]}"#)
            .gives::<NewKey>(201, "The key"),
        create,
    );
    table.add(
        get("/v1/keys", Admin)
            .id("list_keys")
            .summary("Every API key, oldest first, revoked ones too")
            .gives::<KeyList>(200, "The keys"),
        list,
    );
    table.add(
        delete("/v1/keys/{key}", Admin)
            .id("revoke_key")
            .summary(
                "Revokes an API key; this server refuses it at once, others of the ledger within \
                 a second. A key that replaces it does not own its holds and bookings: those \
                 open by their secrets, or with a key of scope `admin`",
            )
            .refuses(&[&[&kinds::LAST_ADMIN_KEY]])
            .gives::<KeyRow>(200, "The key"),
        revoke,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeyRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = String)]
    name: Str<'a>,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
}

#[derive(Serialize, ToSchema)]
struct NewKey {
    id: String,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Rfc3339>,
    /// Its text, in this answer alone.
    key: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyRow {
    id: String,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    #[schema(value_type = Option<String>, format = DateTime)]
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

async fn create(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let request: KeyRequest<'_> = json::parse(&body)?;
    let name = soldonce_core::Text::parse(&request.name.0);
    let name = name.map_err(|error| Problem::invalid("name", error))?;
    let mut scopes = request.scopes;
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        let rule = format!("name at least one of `{}`", Scope::WORDS.join("`, `"));
        return Err(Problem::invalid("scopes", rule));
    }
    let (made, key) = req.app.engine.create_key(name, scopes).await?;
    let row = KeyRow::new(&made);
    let answer = NewKey {
        id: row.id,
        name: row.name,
        scopes: row.scopes,
        created_at: row.created_at,
        revoked_at: row.revoked_at,
        key,
    };
    Ok(answer::object(&req.app, StatusCode::CREATED, &answer))
}

#[derive(Serialize, ToSchema)]
struct KeyList {
    keys: Vec<KeyRow>,
    next: Option<String>,
}

async fn list(req: ApiRequest) -> Handled {
    req.query()?;
    let keys = req.app.engine.keys();
    let list = KeyList {
        keys: keys.iter().map(KeyRow::new).collect(),
        next: None,
    };
    Ok(answer::object(&req.app, StatusCode::OK, &list))
}

async fn revoke(req: ApiRequest) -> Handled {
    req.query()?;
    let missing = || Problem::detailed(&kinds::NOT_FOUND, "there is no API key of this id");
    let id: KeyId = req.segment(2).parse().map_err(|_| missing())?;
    let engine = &req.app.engine;
    match engine.revoke_key(id).await? {
        Revocation::Revoked(key) => {
            Ok(answer::object(&req.app, StatusCode::OK, &KeyRow::new(&key)))
        }
        Revocation::Unknown => Err(missing()),
        Revocation::LastAdmin => Err(Problem::new(&kinds::LAST_ADMIN_KEY)),
    }
}
