//! One call from its request to its answer: authentication, the fault of the plan, the idempotency
//! key, the effect, and its notices.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use soldonce_clock::Clock;
use tokio::sync::watch;

use super::account::{Account, ApiCall};
use super::failure::Failure;
use super::form::Form;
use super::idempotency::{Answer, KeyState, Keys};
use super::journal::{Holdings, Keeping};
use super::known::{require_parameters, require_version};
use super::limits::{KEY_BYTES_MAX, OVERSIZED_BYTES, REMEMBERED_MAX};
use super::plan::{CallFault, Delivery, Fate, Plan};
use super::post::Post;
use super::route::Route;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCall {
    /// Which call.
    pub route: Route,
    /// The id in its path; empty if there is none.
    pub id: String,
    /// Its idempotency key.
    pub key: Option<String>,
    /// Its `Stripe-Version` header.
    pub version: Option<String>,
    /// Its `Stripe-Account` header.
    pub account: Option<String>,
    /// The status of its answer; `None` when its connection was closed.
    pub status: Option<u16>,
    /// Whether the answer was the stored one of its key.
    pub is_replayed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ApiKeys {
    pub(super) secret: String,
    pub(super) publishable: String,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) form: Form,
    /// The token after `Bearer`.
    pub(super) bearer: Option<String>,
    pub(super) key: Option<String>,
    pub(super) version: Option<String>,
    pub(super) account: Option<String>,
}

/// The state that calls share.
pub(super) struct Api {
    /// The id of the account.
    pub(super) own: String,
    is_connected: AtomicBool,
    /// How many requests got an id.
    requests: AtomicU64,
    pub(super) credentials: ApiKeys,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) post: Arc<Post>,
    account: Mutex<Account>,
    keys: Mutex<Keys>,
    /// Locked before account and keys, so that its lines are in the order of the changes.
    journal: Mutex<Keeping>,
    fate: Mutex<Fate>,
    seen: Mutex<Vec<SeenCall>>,
    /// How often held calls were released.
    released: watch::Sender<u64>,
    /// How many calls are held.
    held: watch::Sender<usize>,
}

/// The answer to a call; `None` closes its connection.
pub(super) type Reply = Option<Answer>;

impl Api {
    pub(super) fn new(
        own: String,
        credentials: ApiKeys,
        clock: Arc<dyn Clock>,
        post: Arc<Post>,
        holdings: Holdings,
    ) -> Self {
        Self {
            own,
            is_connected: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            credentials,
            clock,
            post,
            account: Mutex::new(holdings.account),
            keys: Mutex::new(holdings.keys),
            journal: Mutex::new(holdings.keeping),
            fate: Mutex::new(Fate::new(Plan::calm())),
            seen: Mutex::default(),
            released: watch::Sender::new(0),
            held: watch::Sender::new(0),
        }
    }

    pub(super) fn connect(&self) {
        self.is_connected.store(true, Ordering::Relaxed);
    }

    /// Returns the id that notices and calls must have; `None` if the account is the key's own.
    fn named(&self) -> Option<&str> {
        let is_named = self.is_connected.load(Ordering::Relaxed);
        is_named.then_some(self.own.as_str())
    }

    /// Creates the id of the next request.
    pub(super) fn request_id(&self) -> String {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("req_{:014}", before + 1)
    }

    pub(super) fn fate(&self) -> MutexGuard<'_, Fate> {
        locked(&self.fate)
    }

    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        locked(&self.account)
    }

    pub(super) fn seen(&self) -> Vec<SeenCall> {
        locked(&self.seen).clone()
    }

    /// Releases every call that is held now.
    pub(super) fn release(&self) {
        self.released.send_modify(|times| *times += 1);
    }

    /// Waits until at least `calls` calls are held.
    pub(super) async fn until_held(&self, calls: usize) {
        let mut held = self.held.subscribe();
        // The sender lives in `self`.
        held.wait_for(|held| *held >= calls).await.ok();
    }

    pub(super) async fn answer(&self, request: &Request) -> Reply {
        let Some((route, id)) = Route::of(&request.method, &request.path) else {
            return Some(refusal(&Failure::route(&request.method, &request.path)));
        };
        let admitted = self
            .admit(route, id, request)
            .and_then(|()| require_version(request.version.as_deref()))
            .and_then(|()| require_parameters(route, &request.form));
        if let Err(failure) = admitted {
            return self.noted(route, id, request, Some(refusal(&failure)));
        }
        let fault = if route == Route::Authenticate {
            None
        } else {
            self.fate().of_call(route)
        };
        let reply = Box::pin(self.with_fault(route, id, request, fault)).await;
        self.noted(route, id, request, reply)
    }

    /// Fails if the caller may not make this call. Anyone may use the bank's page.
    fn admit(&self, route: Route, id: &str, request: &Request) -> Result<(), Failure> {
        let of_browser = |account: &Account| {
            let offered = request.form.get("client_secret");
            offered.is_some() && offered == account.client_secret(id)
        };
        match request.bearer.as_deref() {
            Some(bearer) if bearer == self.credentials.secret => self.require_account(request),
            _ if route == Route::Authenticate => Ok(()),
            Some(bearer) if bearer != self.credentials.publishable => Err(Failure::caller()),
            Some(_) if !route.is_for_browsers() => Err(Failure::forbidden()),
            Some(_) | None if route.is_for_browsers() && of_browser(&self.account()) => Ok(()),
            Some(_) | None => Err(Failure::caller()),
        }
    }

    /// Fails if a call with the secret key names another account, or none although the account is
    /// a connected one, which such a key reaches only by its id.
    fn require_account(&self, request: &Request) -> Result<(), Failure> {
        match request.account.as_deref() {
            Some(asked) if asked != self.own => Err(Failure::account(asked)),
            None if self.named().is_some() => Err(Failure::account("the platform's own")),
            Some(_) | None => Ok(()),
        }
    }

    async fn with_fault(
        &self,
        route: Route,
        id: &str,
        request: &Request,
        fault: Option<CallFault>,
    ) -> Reply {
        match fault {
            Some(CallFault::CloseBefore) => return None,
            Some(CallFault::RateLimited) => return Some(refusal(&Failure::rate())),
            Some(CallFault::RateLimitedFor(span)) => {
                return Some(Answer {
                    retry_after_s: Some(span.as_secs()),
                    ..refusal(&Failure::rate())
                });
            }
            _ => {}
        }
        let key = request.key.as_deref().filter(|_| route.has_effect());
        if let Some(key) = key {
            match self.begin(key, request) {
                KeyState::Fresh => {}
                KeyState::Replayed(answer) => return Some(answer),
                KeyState::Refused(failure) => return Some(refusal(&failure)),
            }
        }
        if fault == Some(CallFault::HoldCall) {
            self.hold().await;
        }
        let answer = self.written(|| {
            let answer = self.run(route, id, request, fault);
            if let Some(key) = key {
                self.finish(key, &answer);
            }
            answer
        })?;
        self.tell().await;
        match fault {
            Some(CallFault::CloseAfter) => return None,
            Some(CallFault::HoldReply) => self.hold().await,
            Some(CallFault::Slow(span)) => {
                self.clock.sleep_until(self.clock.boot().plus(span)).await;
            }
            _ => {}
        }
        Some(distorted(answer.answer, fault))
    }

    /// Changes the account and writes that to its file. `None` when a write failed, now or before:
    /// then no request may be answered with what was not stored.
    pub(super) fn written<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let mut keeping = locked(&self.journal);
        if matches!(*keeping, Keeping::Broken) {
            return None;
        }
        let done = act();
        let (mut account, mut keys) = (self.account(), locked(&self.keys));
        if let Keeping::Journal(journal) = &mut *keeping {
            if journal.write(&mut account, &mut keys).is_err() {
                *keeping = Keeping::Broken;
                return None;
            }
        } else {
            account.drop_changes();
            keys.take_answered();
        }
        Some(done)
    }

    fn begin(&self, key: &str, request: &Request) -> KeyState {
        if key.len() > KEY_BYTES_MAX {
            let why = "it is longer than 255 characters";
            return KeyState::Refused(Failure::parameter("Idempotency-Key", why));
        }
        let parameters = format!("{} {}", request.path, request.form.canonical());
        locked(&self.keys).begin(self.clock.wall_ms(), key, &parameters)
    }

    fn finish(&self, key: &str, ran: &Ran) {
        let mut keys = locked(&self.keys);
        if ran.is_remembered {
            keys.finish(key, &ran.answer);
        } else {
            keys.forget(key);
        }
    }

    /// Runs the effect of a call, with the faults that are part of it.
    fn run(&self, route: Route, id: &str, request: &Request, fault: Option<CallFault>) -> Ran {
        let broken = || Ran::of(Err(Failure::internal()));
        if fault == Some(CallFault::ErrorBefore) {
            return broken();
        }
        let asked = ApiCall {
            route,
            id,
            form: &request.form,
            key: request.key.as_deref(),
            refund_fails: fault == Some(CallFault::RefundFails),
        };
        let answered = self.account().run(self.clock.wall_ms(), &asked);
        match fault {
            Some(CallFault::ErrorAfter) => broken(),
            _ => Ran::of(answered),
        }
    }

    /// Queues the new notices by the plan, and delivers some of them before the call is answered.
    pub(super) async fn tell(&self) {
        let fresh = std::mem::take(&mut self.account().fresh);
        for mut notice in fresh {
            if let (Some(account), Some(notice)) = (self.named(), notice.as_object_mut()) {
                notice.insert("account".to_owned(), account.into());
            }
            let kind = notice.get("type").and_then(Value::as_str);
            let (way, at_once) = {
                let mut fate = self.fate();
                (fate.of_notice(kind.unwrap_or_default()), fate.at_once())
            };
            if way == Delivery::BeforeReply {
                self.post.deliver_first(&notice).await;
            } else {
                self.post.put(&notice, way, at_once);
            }
        }
    }

    /// Waits until [`Api::release`].
    async fn hold(&self) {
        let mut released = self.released.subscribe();
        released.borrow_and_update();
        self.held.send_modify(|held| *held += 1);
        // The sender lives in `self`.
        released.changed().await.ok();
        self.held.send_modify(|held| *held -= 1);
    }

    fn noted(&self, route: Route, id: &str, request: &Request, reply: Reply) -> Reply {
        let mut seen = locked(&self.seen);
        if seen.len() < REMEMBERED_MAX {
            seen.push(SeenCall {
                route,
                id: id.to_owned(),
                key: request.key.clone(),
                version: request.version.clone(),
                account: request.account.clone(),
                status: reply.as_ref().map(|answer| answer.status),
                is_replayed: reply.as_ref().is_some_and(|answer| answer.is_replayed),
            });
        }
        reply
    }
}

/// The answer of a call that ran, and whether its key remembers it.
struct Ran {
    answer: Answer,
    is_remembered: bool,
}

impl Ran {
    fn of(answered: Result<Value, Failure>) -> Self {
        match answered {
            Ok(shown) => Self {
                answer: answer(200, &shown),
                is_remembered: true,
            },
            Err(failure) => Self {
                answer: refusal(&failure),
                is_remembered: failure.is_remembered,
            },
        }
    }
}

fn answer(status: u16, shown: &Value) -> Answer {
    Answer {
        status,
        body: shown.to_string(),
        is_replayed: false,
        retry_after_s: None,
    }
}

fn refusal(failure: &Failure) -> Answer {
    answer(failure.status, &failure.json())
}

fn distorted(answer: Answer, fault: Option<CallFault>) -> Answer {
    match fault {
        Some(CallFault::Oversized) => Answer {
            body: " ".repeat(OVERSIZED_BYTES),
            ..answer
        },
        Some(CallFault::Garbage) => Answer {
            body: "<html>".to_owned(),
            ..answer
        },
        _ => answer,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
