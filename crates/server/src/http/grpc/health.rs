//! `grpc.health.v1`: what `GET /readyz` says.

use std::sync::Arc;

use axum::extract::Request;
use futures_util::stream::{BoxStream, once, unfold};
use futures_util::{FutureExt, StreamExt};
use tonic::{Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::pool;
use crate::http::app::App;
use crate::http::endpoint::Endpoint;
use crate::http::problem::Problem;
use crate::limits::HEALTH_LOOK_MS;

/// Whether commands are taken.
#[derive(Clone)]
pub(super) struct Readiness {
    app: Arc<App>,
    ready: Endpoint,
}

impl Readiness {
    pub(super) fn new(app: Arc<App>, ready: Endpoint) -> Self {
        Self { app, ready }
    }

    async fn status(&self) -> ServingStatus {
        let (app, request) = (Arc::clone(&self.app), Request::default());
        let refused = Problem::into_response;
        let answer = self.ready.serve(app, request, None, refused).await;
        if answer.status().is_success() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        }
    }

    async fn changed(&self, seen: Option<ServingStatus>) -> ServingStatus {
        loop {
            let status = self.status().await;
            if seen != Some(status) || self.app.shutdown.is_cancelled() {
                return status;
            }
            let clock = self.app.clock();
            let next = clock.boot().plus_ms(HEALTH_LOOK_MS);
            let waiting = clock.sleep_until(next);
            self.app.shutdown.run_until_cancelled(waiting).await;
        }
    }
}

/// Tells whether there is such a service. The server itself has no name.
fn is_known(name: &str) -> bool {
    name.is_empty() || pool().get_service_by_name(name).is_some()
}

fn said(status: ServingStatus) -> HealthCheckResponse {
    let status = status.into();
    HealthCheckResponse { status }
}

#[tonic::async_trait]
impl Health for Readiness {
    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("there is no service of this name"));
        }
        Ok(Response::new(said(self.status().await)))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    /// Sends the status, and again when it is another. Ends at shutdown. An unknown service has its own status, as
    /// the protocol says: clients would ask again at once after an error.
    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        if !is_known(&request.get_ref().service) {
            let shutdown = self.app.shutdown.clone();
            let end = shutdown.cancelled_owned().map(|()| None);
            let unknown = Ok(said(ServingStatus::ServiceUnknown));
            let stream = once(std::future::ready(Some(unknown))).chain(once(end));
            return Ok(Response::new(stream.filter_map(std::future::ready).boxed()));
        }
        let seen: Option<ServingStatus> = None;
        let stream = unfold((self.clone(), seen), |(this, seen)| async move {
            if seen.is_some() && this.app.shutdown.is_cancelled() {
                return None;
            }
            let status = this.changed(seen).await;
            Some((Ok(said(status)), (this, Some(status))))
        });
        Ok(Response::new(stream.boxed()))
    }
}
