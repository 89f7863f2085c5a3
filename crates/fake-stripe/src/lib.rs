//! fake-stripe: a payment provider on a private port of this machine, for tests and for
//! `soldonce demo`. It keeps Stripe's rules: manual capture, idempotency keys, legal transitions,
//! signed notices at least once in any sequence. It also does what Stripe does on a bad day, when a
//! test or a seed says so. No real money moves.
//!
//! Reading order: [`FakeStripe`] below, what goes wrong (`plan`), one call (`api`), what calls do
//! (`account`), what happened to money (`money`), notices on their way (`post`).

mod account;
mod api;
mod cards;
mod failure;
mod form;
mod idempotency;
mod intent;
mod journal;
mod known;
mod limits;
pub mod money;
mod plan;
mod post;
mod refund;
mod route;
mod send;
mod server;
pub mod signature;
mod webhook;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde_json::Value;
use soldonce_clock::{Clock, Entropy, SystemClock, SystemEntropy};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use api::SeenCall;
pub use cards::{Charged, Verdict};
pub use plan::{CallFault, Delivery, Plan};
pub use post::Sent;
pub use route::Route;

use account::{Account, Answered, Asked, RefundFails};
use api::{Api, ApiKeys, Holdings, Keeping};
use form::Form;
use idempotency::Keys;
use journal::Journal;
use money::{MoneyEntry, MoneyLine};
use post::Post;
use send::Endpoint;
use webhook::SigningSecrets;

const UNWRITTEN: &str = "the file of the account cannot be written";

/// The version of the API whose words are spoken here.
pub const API_VERSION: &str = "2025-03-31.basil";

/// A provider with one account. Ends when it is dropped, with all calls and notices under way.
pub struct FakeStripe {
    address: SocketAddr,
    api: Arc<Api>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeStripe {
    /// A provider on the machine's clock, where nothing goes wrong.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start() -> Result<Self> {
        Self::start_at(Arc::new(SystemClock))
    }

    /// A provider on this clock.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start_at(clock: Arc<dyn Clock>) -> Result<Self> {
        Self::start_on(clock, None)
    }

    /// A provider on the machine's clock, whose intents, refunds and idempotency keys outlive it in this
    /// file. The file is not touched before something changes; then no other process may write it. Notices
    /// that were on their way are not sent again, and effects are those of this run.
    ///
    /// # Errors
    /// If no port can be had, or the file is not one that this wrote.
    pub fn start_kept(path: &Path) -> Result<Self> {
        Self::start_on(Arc::new(SystemClock), Some(path))
    }

    fn start_on(clock: Arc<dyn Clock>, path: Option<&Path>) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut salt = [0; 8];
        SystemEntropy.fill(&mut salt);
        let salt = u64::from_le_bytes(salt);
        let secrets = SigningSecrets {
            first: format!("whsec_{salt:016x}"),
            second: format!("whsec_second_{salt:016x}"),
        };
        let credentials = ApiKeys {
            secret: format!("sk_test_{salt:016x}"),
            publishable: format!("pk_test_{salt:016x}"),
        };
        let post = Arc::new(Post::new(Arc::clone(&clock), secrets));
        let holdings = holdings(Account::new(format!("http://{address}"), salt), path)?;
        let own = format!("acct_{salt:016x}");
        let api = Arc::new(Api::new(own, credentials, clock, post, holdings));
        let (stop, stopped) = oneshot::channel();
        let own = Arc::clone(&api);
        let thread = std::thread::Builder::new()
            .name("fake-stripe".to_owned())
            .spawn(move || run(listener, &own, stopped))?;
        Ok(Self {
            address,
            api,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where its API is, without a path: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key of servers.
    pub fn secret_key(&self) -> &str {
        &self.api.credentials.secret
    }

    /// The key of pages.
    pub fn publishable_key(&self) -> &str {
        &self.api.credentials.publishable
    }

    /// With this its notices are signed.
    pub fn webhook_secret(&self) -> &str {
        &self.api.post.secrets.first
    }

    /// With this some are signed while the first one is being replaced.
    pub fn second_webhook_secret(&self) -> &str {
        &self.api.post.secrets.second
    }

    /// The name of the account. As at Stripe, notices of one's own account do not name it.
    pub fn account(&self) -> &str {
        &self.api.own
    }

    /// From now on the account is one that a platform acts for with its key: each call of a server must
    /// name it, and so do its notices.
    pub fn connect(&self) {
        self.api.connect();
    }

    /// Sends notices there from now on.
    ///
    /// # Errors
    /// If it is not `http://`, an address of this machine with its port, and a path.
    pub fn deliver_to(&self, url: &str) -> Result<()> {
        let endpoint = Endpoint::parse(url)?;
        self.api.post.deliver_to(Some(endpoint));
        Ok(())
    }

    /// Sends notices to this path of a server that listens there, in this process or another of the
    /// same machine.
    pub fn deliver_to_own(&self, server: SocketAddr, path: &str) {
        let endpoint = Endpoint::own(server, path);
        self.api.post.deliver_to(Some(endpoint));
    }

    /// Goes wrong by this plan from now on.
    pub fn plan(&self, plan: Plan) {
        self.api.fate().follow(plan);
    }

    /// The next such call goes wrong in this way, with any plan.
    pub fn next_call(&self, route: Route, fault: CallFault) {
        self.api.fate().script_call(route, fault);
    }

    /// The next notice of this kind, such as `payment_intent.succeeded`, is delivered in this way.
    pub fn next_notice(&self, kind: &str, way: Delivery) {
        self.api.fate().script_notice(kind, way);
    }

    /// How many of the faults asked for by [`FakeStripe::next_call`] and
    /// [`FakeStripe::next_notice`] have not happened yet.
    pub fn to_come(&self) -> usize {
        self.api.fate().to_come()
    }

    /// Lets go every call that is held.
    pub fn release(&self) {
        self.api.release();
    }

    /// Waits until so many calls are held.
    pub async fn until_held(&self, calls: usize) {
        self.api.until_held(calls).await;
    }

    /// Lets go every notice that was held back.
    pub fn release_notices(&self) {
        self.api.post.release();
    }

    /// Tries every notice again that waits for its next try.
    pub fn retry_notices(&self) {
        self.api.post.retry_now();
    }

    /// Waits until every notice that is not held back was taken or given up. On a clock that stands
    /// still, what was not taken waits for ever: move it, or retry.
    pub async fn quiet(&self) {
        self.api.post.quiet().await;
    }

    /// How many notices wait for their delivery, those held back apart.
    pub fn waiting_notices(&self) -> usize {
        self.api.post.waiting()
    }

    /// How many notices are held back.
    pub fn held_notices(&self) -> usize {
        self.api.post.held_back()
    }

    /// What became of each sending of a notice so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.api.post.sent()
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<SeenCall> {
        self.api.seen()
    }

    /// Every effect on money so far.
    pub fn effects(&self) -> Vec<MoneyEntry> {
        self.api.account().entries().to_vec()
    }

    /// The money of each intent.
    pub fn money(&self) -> BTreeMap<String, MoneyLine> {
        money::lines(self.api.account().entries())
    }

    /// Every intent, as the API shows it.
    pub fn intents(&self) -> Vec<Value> {
        self.api.account().intents()
    }

    /// Every refund, oldest first, as the API shows it.
    pub fn refunds(&self) -> Vec<Value> {
        self.api.account().refunds()
    }

    /// Pays an intent with a card, as the buyer's page does; nothing of the plan happens to it.
    ///
    /// # Errors
    /// If it cannot be paid. A card that declines is no error.
    pub async fn pay(&self, intent: &str, payment_method: &str) -> Result<Charged> {
        let form = Form::parse(&format!("payment_method={payment_method}"));
        let asked = Asked {
            route: Route::Confirm,
            id: intent,
            form: &form.context("an odd payment method")?,
            key: None,
            refund_fails: RefundFails::No,
        };
        let now_ms = self.api.clock.wall_ms();
        self.act(|account| account.run(now_ms, &asked)).await
    }

    /// Whether this is the secret that a page has for an intent.
    pub fn is_paid_with(&self, intent: &str, client_secret: &str) -> bool {
        self.api.account().client_secret(intent) == Some(client_secret)
    }

    /// The booking that an intent was made for, as it was told.
    pub fn booking_of(&self, intent: &str) -> Option<String> {
        self.api.account().booking(intent).cloned()
    }

    /// The buyer proves himself on the bank's page, or fails to.
    ///
    /// # Errors
    /// If the bank has not asked the buyer.
    pub async fn prove(&self, intent: &str, verdict: Verdict) -> Result<()> {
        let proven = self.act(|account| account.authenticate(intent, verdict));
        proven.await.map(drop)
    }

    /// A card that had not decided says yes or no.
    ///
    /// # Errors
    /// If the intent is not processing.
    pub async fn decide(&self, intent: &str, verdict: Verdict) -> Result<()> {
        let decided = self.act(|account| account.decide(intent, verdict));
        decided.await.map(drop)
    }

    /// Changes by hand what an intent costs, without a notice.
    ///
    /// # Errors
    /// If there is no such intent.
    pub fn reprice(&self, intent: &str, amount: i64) -> Result<()> {
        paid(self.with_account(|account| account.reprice(intent, amount))?).map(drop)
    }

    /// The buyer's bank sends a refund back.
    ///
    /// # Errors
    /// If there is no such refund.
    pub async fn fail_refund(&self, refund: &str) -> Result<()> {
        let failed = self.act(|account| account.fail_refund(refund));
        failed.await.map(drop)
    }

    /// The authorisation of an intent lapses now, and not after its seven days.
    pub async fn lapse(&self, intent: &str) {
        // What cannot be written is not told.
        self.with_account(|account| account.lapse(intent)).ok();
        self.api.tell().await;
    }

    /// The intents whose bank has not said yes or no, by their names.
    pub fn undecided(&self) -> Vec<String> {
        self.api.account().undecided()
    }

    /// Does something to the account, and sends the notices of it.
    async fn act(&self, act: impl FnOnce(&mut Account) -> Answered) -> Result<Charged> {
        let answered = self.with_account(act)?;
        self.api.tell().await;
        paid(answered)
    }

    fn with_account<T>(&self, act: impl FnOnce(&mut Account) -> T) -> Result<T> {
        let now_ms = self.api.clock.wall_ms();
        let done = self.api.written(|| {
            let mut account = self.api.account();
            account.at(now_ms);
            act(&mut account)
        });
        done.context(UNWRITTEN)
    }
}

/// What an earlier process left, if it is kept anywhere.
fn holdings(mut account: Account, path: Option<&Path>) -> Result<Holdings> {
    let mut keys = Keys::default();
    let keeping = match path {
        None => Keeping::None,
        Some(path) => {
            let read = Journal::read(path, &mut account, &mut keys);
            Keeping::Journal(read.with_context(|| format!("the account in {}", path.display()))?)
        }
    };
    Ok(Holdings {
        account,
        keys,
        keeping,
    })
}

/// A card that is refused is no failure of the request.
fn paid(answered: Answered) -> Result<Charged> {
    match answered {
        Err(failure) if failure.status != 402 => anyhow::bail!("{}", failure.json()),
        Err(_) => Ok(Charged::Declined),
        Ok(_) => Ok(Charged::Taken),
    }
}

impl Drop for FakeStripe {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Serves until it is told to stop; what was begun is dropped with the runtime.
fn run(listener: std::net::TcpListener, api: &Arc<Api>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(listener) = TcpListener::from_std(listener) else {
            return;
        };
        let post = Arc::clone(&api.post);
        tokio::select! {
            never = server::serve(listener, Arc::clone(api)) => match never {},
            () = post.run() => {}
            // A sender that was dropped says the same.
            _ = stopped => {}
        }
    });
}
