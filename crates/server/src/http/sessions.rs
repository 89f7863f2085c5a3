//! Shoppers' sessions: let in without a key, each for itself alone.

use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use soldonce_engine::reply::Rfc3339;

use utoipa::ToSchema;

use super::answer;
use super::asked::Asked;
use super::auth::SECURE_COOKIE;
use super::json;
use super::origin;
use super::problem::{Handled, Problem};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionRequest {}

#[derive(Serialize)]
struct SessionBody<'a> {
    session: &'a str,
    holder: &'a str,
    expires_at: Rfc3339,
}

/// `POST /v1/sessions`
pub(super) async fn open(mut asked: Asked) -> Handled {
    // A page of another origin must not replace the shopper's session by a new one.
    origin::require_own(&asked.app.settings, &asked.parts)?;
    let body = asked.json_or_nothing().await?;
    let SessionRequest {} = json::parse(&body)?;
    let app = &asked.app;
    let (session, token) = app.engine.open_session();
    let answer = SessionBody {
        session: &token,
        holder: session.holder.as_str(),
        expires_at: Rfc3339(session.expires_at),
    };
    let mut response = answer::object(app, StatusCode::CREATED, &answer);
    let seconds = app.engine.now().until(session.expires_at).ms() / 1_000;
    let name = app.session_cookie(&asked.parts);
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
