//! Shoppers' sessions: let in without a key, each for itself alone.

use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use soldonce_engine::reply::Rfc3339;

use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::auth::SECURE_COOKIE;
use super::operation::{Tag, post};
use super::problem::{Handled, Problem};
use super::route::Admission::NewShopper;
use super::table::Table;
use super::{answer, json, origin};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Access);
    table.add(
        post("/v1/sessions", NewShopper)
            .id("open_session")
            .summary("Lets a shopper in; also sets a cookie")
            .may_take::<SessionRequest>("{}")
            .gives::<SessionBody<'_>>(201, "The session"),
        open,
    );
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SessionRequest {}

/// A shopper's session.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
struct SessionBody<'a> {
    /// The token, for clients that keep no cookies.
    session: &'a str,
    holder: &'a str,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Rfc3339,
}

async fn open(mut req: ApiRequest) -> Handled {
    // A page of another origin must not replace the shopper's session by a new one.
    origin::require_own(&req.app.settings, &req.parts)?;
    let SessionRequest {} = json::parse(&req.json().await?)?;
    let app = &req.app;
    let (session, token) = app.engine.open_session();
    let answer = SessionBody {
        session: &token,
        holder: session.holder.as_str(),
        expires_at: Rfc3339(session.expires_at),
    };
    let mut response = answer::object(app, StatusCode::CREATED, &answer);
    let seconds = app.engine.now().until(session.expires_at).ms() / 1_000;
    let name = app.session_cookie(&req.parts);
    let secure = if name == SECURE_COOKIE {
        "; Secure"
    } else {
        ""
    };
    let cookie =
        format!("{name}={token}; HttpOnly; SameSite=Lax; Path=/; Max-Age={seconds}{secure}");
    let mut cookie = HeaderValue::try_from(cookie).map_err(|error| Problem::internal(&error))?;
    cookie.set_sensitive(true);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
