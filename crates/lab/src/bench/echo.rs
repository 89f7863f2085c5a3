//! The ceiling: a request of a hold's size is read into a struct and answered with JSON of a hold's
//! size, on the same accept loop, with nothing behind it.

use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::super::load::{Fixed, Makers, RequestMaker, post_json};
use super::scenario::{Prepared, Scenario, Setting, Target};

/// The scenario `echo`.
pub(crate) struct Echo;

const PATH: &str = "/v1/events/hamlet-1/holds";
const REQUEST: &str = r#"{"holder":"user-42","units":[{"seat":"A-1"}],"ttl_ms":300000}"#;

/// Shaped as a request for a hold (api.md 3).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EchoRequest {
    holder: String,
    units: Vec<EchoUnit>,
    ttl_ms: u64,
}

#[derive(Debug, Deserialize, Serialize)]
struct EchoUnit {
    seat: String,
}

/// Shaped as a hold (api.md 3).
#[derive(Debug, Serialize)]
struct EchoAnswer {
    id: &'static str,
    secret: &'static str,
    event: &'static str,
    holder: String,
    state: &'static str,
    fence: u64,
    units: Vec<EchoUnit>,
    total: u64,
    currency: &'static str,
    created_at: &'static str,
    expires_at: &'static str,
    max_expires_at: &'static str,
    server_time: &'static str,
    booking: Option<&'static str>,
}

async fn echo(Json(request): Json<EchoRequest>) -> Json<EchoAnswer> {
    Json(EchoAnswer {
        id: "hld_01890a5d-ac96-774b-bcce-b302099a8057",
        secret: "hs_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        event: "hamlet-1",
        holder: request.holder,
        state: "active",
        fence: 7,
        units: request.units,
        total: request.ttl_ms,
        currency: "EUR",
        created_at: "2026-12-01T19:30:00.000Z",
        expires_at: "2026-12-01T19:35:00.000Z",
        max_expires_at: "2026-12-01T20:00:00.000Z",
        server_time: "2026-12-01T19:30:00.000Z",
        booking: None,
    })
}

impl Scenario for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn about(&self) -> &'static str {
        "bare JSON POST, as large as a hold: the ceiling"
    }

    fn expects(&self) -> &'static [u16] {
        &[200]
    }

    fn target(&self) -> Target {
        Target::Router
    }

    fn router(&self) -> anyhow::Result<Router> {
        Ok(Router::new().route("/v1/events/{event}/holds", post(echo)))
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        let request = post_json(setting.address, PATH, REQUEST);
        let maker = move |_connection| Box::new(Fixed(request.clone())) as Box<dyn RequestMaker>;
        Box::pin(async move { Ok(Box::new(maker) as Makers) })
    }
}
