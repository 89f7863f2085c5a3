//! Records what one lease thread reports, and in which span.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use soldonce_testkit::log::Line;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Default)]
pub(crate) struct TraceLog(Arc<Mutex<Trace>>);

#[derive(Default)]
struct Trace {
    /// Each span's name and fields, by its number less one.
    spans: Vec<String>,
    entered: Vec<u64>,
    events: Vec<LoggedEvent>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedEvent {
    /// Its fields.
    pub(crate) what: String,
    /// The number of the span that it lies in; 0 is none.
    pub(crate) span: u64,
    /// That span's name and fields.
    pub(crate) within: String,
}

thread_local! {
    /// Lasts as long as its thread.
    static RECORDING: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

impl TraceLog {
    /// Records this thread from now on.
    pub(crate) fn record_thread(&self) {
        let guard = tracing::subscriber::set_default(self.clone());
        RECORDING.set(Some(guard));
    }

    /// All events whose fields contain `part`.
    pub(crate) fn events_with(&self, part: &str) -> Vec<LoggedEvent> {
        let trace = self.0.lock().unwrap();
        let events = trace.events.iter();
        let fit = events.filter(|event| event.what.contains(part));
        fit.cloned().collect()
    }
}

impl Subscriber for TraceLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("soldonce") || metadata.target().starts_with("it::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Line::default();
        span.record(&mut fields);
        let mut trace = self.0.lock().unwrap();
        let text = format!("{}{}", span.metadata().name(), fields.0);
        trace.spans.push(text);
        Id::from_u64(u64::try_from(trace.spans.len()).unwrap())
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Line::default();
        event.record(&mut fields);
        let mut trace = self.0.lock().unwrap();
        let entered = trace.entered.last().filter(|_| !event.is_root());
        let span = entered.copied().unwrap_or_default();
        let at = usize::try_from(span).unwrap().checked_sub(1);
        let within = at.map_or_else(String::new, |at| trace.spans[at].clone());
        let what = fields.0;
        trace.events.push(LoggedEvent { what, span, within });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let mut trace = self.0.lock().unwrap();
        let last = trace.entered.pop();
        assert_eq!(last, Some(id.into_u64()), "spans are left in order");
    }
}
