//! Who may come in: API keys and shoppers' sessions, and what the route table asks of them.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use soldonce_engine::keys::Scope;
use soldonce_engine::{Caller, EngineError};

use super::app::App;
use super::problem::Problem;
use super::route::{Admission, Route, Verb};
use super::{kinds, origin};
use crate::settings::CookieSecurity;

/// The cookie that carries a shopper's session over HTTP.
const PLAIN_COOKIE: &str = "soldonce_session";
/// The same for HTTPS alone. Browsers take a cookie of this prefix from this very host only, so that no
/// other host of the domain can plant one (RFC 6265bis, 4.1.3.2).
pub(super) const SECURE_COOKIE: &str = "__Host-soldonce_session";

/// The refusal of a new session while shoppers are not let in.
const CLOSED: &str = "shoppers are not let in here: the server lets them in with `--shoppers open`, and \
                      takes API keys meanwhile";

/// Where a token came from. A browser sends cookies by itself, also when another page asked it to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Header,
    Cookie,
}

impl App {
    /// Returns the caller if the route admits it; None where the route needs none.
    pub(super) fn admit(&self, route: Route, parts: &Parts) -> Result<Option<Caller>, Problem> {
        if route.admission == Admission::Anyone {
            return Ok(None);
        }
        let caller = self.identify(route, parts)?;
        let has = |scope| caller.as_ref().is_some_and(|caller| caller.has(scope));
        let may_pass = match route.admission {
            Admission::Anyone => true,
            Admission::NewShopper => self.is_open(),
            Admission::Look => caller.is_some() || self.is_open(),
            Admission::Buy => matches!(caller, Some(Caller::Shopper(_))) || has(Scope::Sell),
            Admission::Sell => has(Scope::Sell),
            Admission::Lease => has(Scope::Lease),
            Admission::Staff => has(Scope::Read),
            Admission::Admin => has(Scope::Admin),
        };
        match (may_pass, &caller) {
            (true, _) => Ok(caller),
            (false, None) if route.admission == Admission::NewShopper => {
                Err(Problem::detailed(&kinds::UNAUTHENTICATED, CLOSED))
            }
            (false, None) => Err(Problem::new(&kinds::UNAUTHENTICATED)),
            (false, Some(_)) => Err(forbidden(route.admission)),
        }
    }

    /// Returns the same admission, or another one if the credentials are a key that another server has just
    /// made.
    pub(super) async fn admit_new_key(
        &self,
        route: Route,
        parts: &Parts,
        admitted: Result<Option<Caller>, Problem>,
    ) -> Result<Option<Caller>, Problem> {
        let is_refused = |problem: &Problem| problem.code() == kinds::UNAUTHENTICATED.code;
        if !admitted.as_ref().is_err_and(is_refused) {
            return admitted;
        }
        let sent = token(self.session_cookie(parts), &parts.headers);
        let Ok(Some((token, Carrier::Header))) = sent else {
            return admitted;
        };
        match self.engine.look_for_key(token).await {
            Ok(true) => self.admit(route, parts),
            Ok(false) => admitted,
            Err(error) => Err(EngineError::from(error).into()),
        }
    }

    /// Returns the name of the cookie that carries a shopper's session, by how this request came.
    pub(super) fn session_cookie(&self, parts: &Parts) -> &'static str {
        match self.settings.cookie {
            CookieSecurity::Forwarded if self.came_by_https(parts) => SECURE_COOKIE,
            CookieSecurity::Plain | CookieSecurity::Forwarded => PLAIN_COOKIE,
            CookieSecurity::Secure => SECURE_COOKIE,
        }
    }

    /// Authenticates the request's credentials. Wrong ones are refused, except where a browser
    /// sends the cookie of a session that is over to a route that asks for none.
    fn identify(&self, route: Route, parts: &Parts) -> Result<Option<Caller>, Problem> {
        let Some((token, carrier)) = token(self.session_cookie(parts), &parts.headers)? else {
            return Ok(None);
        };
        let known = self.engine.authenticate(token);
        let caller = match known {
            // Keys do not come by cookie, and sessions only while shoppers are let in.
            Some(Caller::Key { .. }) if carrier == Carrier::Cookie => None,
            Some(Caller::Shopper(_)) if !self.is_open() => None,
            known => known,
        };
        let is_optional = matches!(route.admission, Admission::Look | Admission::NewShopper);
        match (caller, carrier) {
            (Some(caller), Carrier::Cookie) if route.verb != Verb::Get => {
                origin::require_own(&self.settings, parts)?;
                Ok(Some(caller))
            }
            (Some(caller), _) => Ok(Some(caller)),
            (None, Carrier::Cookie) if is_optional => Ok(None),
            (None, _) => Err(Problem::new(&kinds::UNAUTHENTICATED)),
        }
    }
}

fn forbidden(admission: Admission) -> Problem {
    let needs = match admission {
        Admission::Admin => "this route needs a key with the scope `admin`",
        Admission::Staff => "this route needs a key with the scope `read` or `admin`",
        Admission::Sell => "this route needs a key with the scope `sell`",
        Admission::Lease => "this route needs a key with the scope `lease`",
        Admission::NewShopper => "shoppers are not let in here",
        Admission::Buy | Admission::Look | Admission::Anyone => {
            "this route needs a session or a key with the scope `sell`"
        }
    };
    Problem::detailed(&kinds::FORBIDDEN, needs)
}

/// Reads the token that was sent, from the `Authorization` header; else from the cookie `name`.
fn token<'a>(name: &str, headers: &'a HeaderMap) -> Result<Option<(&'a str, Carrier)>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(value) = values.next() {
        if values.next().is_some() {
            let text = "more than one `Authorization` was sent";
            return Err(Problem::detailed(&kinds::UNAUTHENTICATED, text));
        }
        let bearer = value.to_str().ok().and_then(bearer);
        let token = bearer.ok_or_else(|| Problem::new(&kinds::UNAUTHENTICATED))?;
        return Ok(Some((token, Carrier::Header)));
    }
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut sessions = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(named, _)| *named == name);
    let Some((_, token)) = sessions.next() else {
        return Ok(None);
    };
    // One of them may be planted; which one, nothing tells.
    if sessions.next().is_some() {
        let text = format!("more than one cookie `{name}` was sent");
        return Err(Problem::detailed(&kinds::UNAUTHENTICATED, text));
    }
    Ok(Some((token, Carrier::Cookie)))
}

/// Parses the token of `Bearer <token>`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
