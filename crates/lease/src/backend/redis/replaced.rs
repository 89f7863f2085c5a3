//! Reports replaced connections.

use crate::Notices;
use crate::backend::Kind;

#[derive(Clone, Debug)]
pub(super) struct Replaced {
    kind: Kind,
    notices: Notices,
}

impl Replaced {
    pub(super) fn new(kind: Kind, notices: &Notices) -> Self {
        let notices = notices.clone();
        Self { kind, notices }
    }

    /// Reports `which` connection, and where it leads to or why it was replaced.
    pub(super) fn tell(&self, which: &str) {
        // Many callers share the connection, so the event is in no span of one of them.
        tracing::warn!(parent: None, backend = self.kind.as_str(), which, "connection replaced");
        self.notices.link_rebuilt(self.kind, which);
    }
}
