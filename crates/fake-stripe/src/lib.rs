//! fake-stripe: a payment provider on a private port of this machine, for tests and for
//! `soldonce demo`. It has Stripe's rules: manual capture, idempotency keys, legal transitions,
//! signed notices (webhook events) at least once in any order. It also injects the faults of Stripe
//! when a test or a seed says so. No real money moves.
//!
//! Reading order: [`FakeStripe`] below, the faults (`plan`), one call (`api`), what calls do
//! (`account`), the effects on money (`money`), the delivery of notices (`post`).

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
use tokio::sync::oneshot;

pub use api::SeenCall;
pub use cards::{Charged, Verdict};
pub use plan::{CallFault, Delivery, Plan};
pub use post::Sent;
pub use route::Route;

use account::{Account, Answered, ApiCall};
use api::{Api, ApiKeys};
use form::Form;
use journal::holdings;
use money::{MoneyEntry, MoneyLine};
use post::Post;
use send::Endpoint;
use webhook::SigningSecrets;

const UNWRITTEN: &str = "the file of the account cannot be written";

/// The version of Stripe's API that is imitated.
pub const API_VERSION: &str = "2025-03-31.basil";

/// A provider with one account. It ends when it is dropped, with all calls and notices in progress.
pub struct FakeStripe {
    address: SocketAddr,
    api: Arc<Api>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeStripe {
    /// Starts a provider on the machine's clock, without faults.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start() -> Result<Self> {
        Self::start_at(Arc::new(SystemClock))
    }

    /// Starts a provider on this clock, without faults.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start_at(clock: Arc<dyn Clock>) -> Result<Self> {
        Self::start_on(clock, None)
    }

    /// Starts a provider on the machine's clock, whose intents, refunds and idempotency keys are
    /// stored in this file. The file is not written before something changes; then no other process
    /// may write it. Notices of an earlier run are not sent again; effects are those of this run.
    ///
    /// # Errors
    /// If there is no free port, or the file is not one that this wrote.
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
            .spawn(move || server::run(listener, &own, stopped))?;
        Ok(Self {
            address,
            api,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the URL of its API, without a path: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the secret API key, for servers.
    pub fn secret_key(&self) -> &str {
        &self.api.credentials.secret
    }

    /// Returns the publishable API key, for pages.
    pub fn publishable_key(&self) -> &str {
        &self.api.credentials.publishable
    }

    /// Returns the secret that its notices are signed with.
    pub fn webhook_secret(&self) -> &str {
        &self.api.post.secrets.first
    }

    /// Returns the secret of [`Delivery::SecondSecret`], as while the first one is being replaced.
    pub fn second_webhook_secret(&self) -> &str {
        &self.api.post.secrets.second
    }

    /// Returns the id of the account. As at Stripe, notices of one's own account do not have it.
    pub fn account(&self) -> &str {
        &self.api.own
    }

    /// Makes the account a connected account of a platform from now on: each call with the secret
    /// key must name it in `Stripe-Account`, and its notices name it.
    pub fn connect(&self) {
        self.api.connect();
    }

    /// Sends notices to this URL from now on.
    ///
    /// # Errors
    /// If it is not `http://`, a loopback address with its port, and a path.
    pub fn deliver_to(&self, url: &str) -> Result<()> {
        self.api.post.deliver_to(Endpoint::parse(url)?);
        Ok(())
    }

    /// Sends notices to this path of the server that listens on this address, in this process or
    /// another of the same machine.
    pub fn deliver_to_own(&self, server: SocketAddr, path: &str) {
        self.api.post.deliver_to(Endpoint::own(server, path));
    }

    /// Injects faults by this plan from now on.
    pub fn plan(&self, plan: Plan) {
        self.api.fate().follow(plan);
    }

    /// Gives this fault to the next call of the route, with any plan.
    pub fn next_call(&self, route: Route, fault: CallFault) {
        self.api.fate().script_call(route, fault);
    }

    /// Delivers the next notice of this type, such as `payment_intent.succeeded`, in this way.
    pub fn next_notice(&self, kind: &str, way: Delivery) {
        self.api.fate().script_notice(kind, way);
    }

    /// Counts the faults asked for by [`FakeStripe::next_call`] and [`FakeStripe::next_notice`]
    /// that have not happened yet.
    pub fn to_come(&self) -> usize {
        self.api.fate().to_come()
    }

    /// Releases every call that is held.
    pub fn release(&self) {
        self.api.release();
    }

    /// Waits until at least `calls` calls are held.
    pub async fn until_held(&self, calls: usize) {
        self.api.until_held(calls).await;
    }

    /// Queues every notice that was held back.
    pub fn release_notices(&self) {
        self.api.post.release();
    }

    /// Retries now every notice that waits for its next try.
    pub fn retry_notices(&self) {
        self.api.post.retry_now();
    }

    /// Waits until every notice that is not held back was accepted or given up. On a clock that is
    /// stopped it never returns while a notice is not accepted: advance the clock, or retry.
    pub async fn quiet(&self) {
        self.api.post.quiet().await;
    }

    /// Counts the notices that are queued or being sent, without those held back.
    pub fn waiting_notices(&self) -> usize {
        self.api.post.waiting()
    }

    /// Counts the notices that are held back.
    pub fn held_notices(&self) -> usize {
        self.api.post.held_back()
    }

    /// Returns the outcome of every sending of a notice so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.api.post.sent()
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<SeenCall> {
        self.api.seen()
    }

    /// Returns the effects on money so far. At 200,000 the older half is dropped.
    pub fn effects(&self) -> Vec<MoneyEntry> {
        self.api.account().entries.clone()
    }

    /// Returns the totals of money of each intent, by its id.
    pub fn money(&self) -> BTreeMap<String, MoneyLine> {
        money::lines(&self.api.account().entries)
    }

    /// Returns every intent in the JSON of the API.
    pub fn intents(&self) -> Vec<Value> {
        self.api.account().intents()
    }

    /// Returns every refund in the JSON of the API, oldest first.
    pub fn refunds(&self) -> Vec<Value> {
        self.api.account().refunds()
    }

    /// Pays an intent with a card, as the buyer's page does, without a [`CallFault`].
    ///
    /// # Errors
    /// If it cannot be paid. A card that declines is no error.
    pub async fn pay(&self, intent: &str, payment_method: &str) -> Result<Charged> {
        let form = Form::parse(&format!("payment_method={payment_method}"));
        let asked = ApiCall {
            route: Route::Confirm,
            id: intent,
            form: &form.context("an odd payment method")?,
            key: None,
            refund_fails: false,
        };
        let now_ms = self.api.clock.wall_ms();
        self.act(|account| account.run(now_ms, &asked)).await
    }

    /// Tells whether this is the client secret of an intent.
    pub fn is_paid_with(&self, intent: &str, client_secret: &str) -> bool {
        self.api.account().client_secret(intent) == Some(client_secret)
    }

    /// Finds the booking that an intent was made for, from its metadata.
    pub fn booking_of(&self, intent: &str) -> Option<String> {
        self.api.account().booking(intent).cloned()
    }

    /// Ends the bank's page: the buyer authenticates, or fails to.
    ///
    /// # Errors
    /// If the bank has not asked the buyer.
    pub async fn prove(&self, intent: &str, verdict: Verdict) -> Result<()> {
        let proven = self.act(|account| account.authenticate(intent, verdict));
        proven.await.map(drop)
    }

    /// Lets a card that had not decided approve or decline.
    ///
    /// # Errors
    /// If the intent is not processing.
    pub async fn decide(&self, intent: &str, verdict: Verdict) -> Result<()> {
        let decided = self.act(|account| account.decide(intent, verdict));
        decided.await.map(drop)
    }

    /// Changes the amount of an intent by hand, without a notice.
    ///
    /// # Errors
    /// If there is no such intent.
    pub fn reprice(&self, intent: &str, amount: i64) -> Result<()> {
        paid(self.with_account(|account| account.reprice(intent, amount))?).map(drop)
    }

    /// Fails a refund: the buyer's bank sends the money back.
    ///
    /// # Errors
    /// If there is no such refund.
    pub async fn fail_refund(&self, refund: &str) -> Result<()> {
        let failed = self.act(|account| account.fail_refund(refund));
        failed.await.map(drop)
    }

    /// Lets the authorisation of an intent lapse now, and not after its seven days.
    ///
    /// # Errors
    /// If the intent is not authorised.
    pub async fn lapse(&self, intent: &str) -> Result<()> {
        self.act(|account| account.lapse(intent)).await.map(drop)
    }

    /// Lists the ids of the intents whose bank has not approved or declined yet.
    pub fn undecided(&self) -> Vec<String> {
        self.api.account().undecided()
    }

    /// Changes the account, and sends the notices of that.
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

/// Converts the answer to a payment. A card that declines is no error.
fn paid(answered: Answered) -> Result<Charged> {
    match answered {
        Err(failure) if failure.status != 402 => anyhow::bail!("{}", failure.json()),
        Err(_) => Ok(Charged::Declined),
        Ok(_) => Ok(Charged::Taken),
    }
}

impl Drop for FakeStripe {
    fn drop(&mut self) {
        // Tells the thread to end.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
