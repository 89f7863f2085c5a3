//! The harness of these tests: the other one, with an app that is called.

use std::ops::{Deref, DerefMut};

use serde_json::Value;
use soldonce_server::{AdminRoutes, ServerSettings};

pub(crate) use crate::harness::*;

/// The other one's app, over gRPC.
pub(crate) struct TestApp(crate::harness::TestApp);

impl TestApp {
    pub(crate) async fn open() -> Self {
        Self::over_grpc(crate::harness::TestApp::open().await)
    }

    pub(crate) async fn open_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::over_grpc(crate::harness::TestApp::open_with(change).await)
    }

    pub(crate) async fn start(settings: ServerSettings, routes: AdminRoutes) -> Self {
        Self::over_grpc(crate::harness::TestApp::start(settings, routes).await)
    }

    pub(crate) async fn with_event(self, event: &Value) -> Self {
        Self(self.0.with_event(event).await)
    }

    pub(crate) async fn with_hall(self, rows: u32) -> Self {
        Self(self.0.with_hall(rows).await)
    }

    fn over_grpc(mut app: crate::harness::TestApp) -> Self {
        app.transport = Transport::Grpc;
        Self(app)
    }
}

impl Deref for TestApp {
    type Target = crate::harness::TestApp;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for TestApp {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
