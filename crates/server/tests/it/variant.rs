//! The harness of a module that runs tests once more: the other one, with an app of the module's variant.

use std::ops::{Deref, DerefMut};

use serde_json::Value;
use soldonce_server::ServerSettings;

pub(crate) use crate::harness::*;

use super::VARIANT;

/// The other one's app, of this variant.
pub(crate) struct TestApp(crate::harness::TestApp);

impl TestApp {
    pub(crate) async fn open() -> Self {
        Self(crate::harness::TestApp::open_as(VARIANT).await)
    }

    pub(crate) async fn open_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self(crate::harness::TestApp::open_with_as(VARIANT, change).await)
    }

    pub(crate) async fn with_event(self, event: &Value) -> Self {
        Self(self.0.with_event(event).await)
    }

    pub(crate) async fn with_hall(self, rows: u32) -> Self {
        Self(self.0.with_hall(rows).await)
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
