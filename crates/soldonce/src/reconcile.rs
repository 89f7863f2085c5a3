//! `soldonce reconcile`: compares bookings with the payment provider, and settles what differs. Servers
//! do the same by themselves; this is for operators who want to see it, or have no server any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use comfy_table::Table;
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{BookingId, PaymentState, Span, Timestamp};
use soldonce_engine::ledger::{OpenMoney, sqlite};
use soldonce_engine::payment::PaymentProvider;
use soldonce_engine::payment::stripe::Capture;
use soldonce_engine::{Engine, Mismatch, mismatches};

use crate::block_on;
use crate::exit::{Exit, usage};
use crate::lease::span;
use crate::output::report;
use crate::serve::{LedgerArgs, LedgerPlace, capture, in_use, stripe};
use crate::verify::progress_bar;

/// Arguments of `soldonce reconcile`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples, with the key in SOLDONCE_STRIPE_KEY, as other users of the machine see flags:
  soldonce reconcile --dry-run --data ./data
  soldonce reconcile --database-url postgres://soldonce@db/soldonce --older 5m --json

Finds what is \"paid, not fulfilled\", \"authorised, never captured\", \"refund stuck\" and the like, and
settles it by the same rules as a server, with the steps that follow from it. A server does so every
few seconds: an alert may rest on `soldonce_outbox_stuck` and `soldonce_payments_unreconciled`
instead. With --dry-run nothing is changed and a folder may be in use; without it, stop its server
first. Exit code 0 when nothing is left to be settled, 1 when something is, 3 when the ledger cannot
be read."
)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The secret key of the Stripe account (`sk_..` or `rk_..`)
    #[arg(long, env = "SOLDONCE_STRIPE_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true)]
    stripe_key: String,
    /// The connected account whose payments are meant, if it is not the key's own
    #[arg(long, env = "SOLDONCE_STRIPE_ACCOUNT", value_name = "ACCOUNT")]
    stripe_account: Option<String>,
    /// When its servers have money taken, `manual` or `automatic`: a checkout whose outcome is unknown is asked for
    /// as it was begun [default: manual]
    #[arg(long, env = "SOLDONCE_STRIPE_CAPTURE", value_name = "WHEN", value_parser = capture())]
    stripe_capture: Option<Capture>,
    /// Where Stripe's API is, for tests [default: <https://api.stripe.com>]
    #[arg(long, env = "SOLDONCE_STRIPE_URL", value_name = "URL", hide = true)]
    stripe_url: Option<String>,
    /// Leave alone what began later than so long ago, as notices usually come at once [default: 1m; 0 for a folder
    /// without --dry-run, as no server has it]
    #[arg(long, value_name = "TIME", value_parser = span)]
    older: Option<Duration>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Line {
    #[serde(skip)]
    id: BookingId,
    booking: String,
    state: &'static str,
    payment: Option<&'static str>,
    found: &'static str,
    remedy: String,
    /// How settling it ended; None when it was not tried.
    outcome: Option<String>,
}

impl Line {
    fn of(mismatch: &Mismatch) -> Self {
        Self {
            id: mismatch.booking,
            booking: mismatch.booking.to_string(),
            state: mismatch.state.as_str(),
            payment: mismatch.known.map(PaymentState::as_str),
            found: mismatch.what,
            remedy: mismatch.remedy.to_string(),
            outcome: None,
        }
    }

    fn is_settled(&self) -> bool {
        self.outcome.as_deref() == Some(SETTLED)
    }
}

pub(crate) fn run(args: &ReconcileArgs) -> anyhow::Result<Exit> {
    let (compared, lines) = block_on(reconcile(args))??;
    report(args.ledger.json, &lines, || describe(compared, &lines))?;
    Ok(Exit::done_if(lines.iter().all(Line::is_settled)))
}

const SETTLED: &str = "settled";

/// Default of `--older` where servers run: they settle what is younger themselves.
const OLDER: Duration = Duration::from_mins(1);

/// Most rounds until a payment is settled: paid, captured, too late, refunded. The last round only
/// reports what is left.
const ROUNDS_MAX: usize = 5;

/// Bookings between two steps of the progress bar.
const BATCH: usize = 16;

/// Compares and, unless it is a dry run, settles. Returns how many were compared, and what differs.
async fn reconcile(args: &ReconcileArgs) -> anyhow::Result<(usize, Vec<Line>)> {
    let (provider, _) = stripe(
        &args.stripe_key,
        args.stripe_account.as_ref(),
        args.stripe_url.as_ref(),
        args.stripe_capture.unwrap_or_default(),
    )
    .map_err(usage)?;
    let place = args.ledger.place()?;
    let is_served = args.dry_run || place.is_shared();
    let older = args
        .older
        .unwrap_or(if is_served { OLDER } else { Duration::ZERO });
    let older = u64::try_from(older.as_millis()).context("--older is too long")?;
    let older = Span::from_ms(older);
    if let (LedgerPlace::Folder(options), true) = (&place, args.dry_run) {
        let now = Timestamp::from_ms(SystemClock.wall_ms());
        let open = sqlite::verify::open_money(&options.folder, now.minus(older)..now);
        return compare(&provider, &open.map_err(LedgerPlace::unread)?, None).await;
    }
    // That a database may lose commits is for servers to refuse; here it would hide money.
    let place = if place.is_shared() {
        place.accept_loss()
    } else {
        place
    };
    let provider: Arc<dyn PaymentProvider> = Arc::new(provider);
    let opened = place.open().await;
    let opened = opened.map_err(|error| in_use(error, "--dry-run reads it all the same"))?;
    let engine = opened.paid_by(Arc::clone(&provider));
    let found = async {
        if !is_served {
            // What is over, without a server to say so, has to be given up.
            engine.sweep_all().await?;
        }
        let before = if older == Span::from_ms(0) {
            Timestamp::MAX
        } else {
            engine.now().minus(older)
        };
        let open = engine.open_money(before).await?;
        if args.dry_run {
            compare(&*provider, &open, None).await
        } else {
            settle(&*provider, &engine, open).await
        }
    };
    let found = found.await;
    engine.close().await;
    found
}

/// Settles open money: first what the provider says of payments, then the steps of the same
/// bookings, read anew from the ledger in each round until none is left.
async fn settle(
    provider: &dyn PaymentProvider,
    engine: &Engine,
    open: OpenMoney,
) -> anyhow::Result<(usize, Vec<Line>)> {
    let compared = open.unsettled.len() + open.steps.len();
    let mut bookings: BTreeSet<BookingId> =
        open.steps.iter().map(|(booking, _)| booking.id).collect();
    let payments = OpenMoney {
        steps: Vec::new(),
        ..open
    };
    let mut lines = compare(provider, &payments, Some(engine)).await?.1;
    let settled = lines.iter().filter(|line| line.is_settled());
    bookings.extend(settled.map(|line| line.id));
    for round in 1..=ROUNDS_MAX {
        // Read anew: a step that was open before may be needless by now, and would undo what was paid.
        let mut steps = engine.open_money(Timestamp::MAX).await?.steps;
        steps.retain(|(booking, _)| bookings.contains(&booking.id));
        if steps.is_empty() {
            break;
        }
        let unsettled = Vec::new();
        let settler = (round < ROUNDS_MAX).then_some(engine);
        let (_, done) = compare(provider, &OpenMoney { unsettled, steps }, settler).await?;
        for failed in done.iter().filter(|line| !line.is_settled()) {
            bookings.remove(&failed.id);
        }
        lines.extend(done);
    }
    Ok((compared, lines))
}

/// Compares all open money with the provider's records; the engine, if given, settles what differs.
async fn compare(
    provider: &dyn PaymentProvider,
    open: &OpenMoney,
    settler: Option<&Engine>,
) -> anyhow::Result<(usize, Vec<Line>)> {
    let mut lines = Vec::new();
    let bar = progress_bar("payments")?;
    let all = open.unsettled.len() + open.steps.len();
    bar.set_length(all as u64);
    let unsettled = open.unsettled.chunks(BATCH).map(|some| OpenMoney {
        unsettled: some.to_vec(),
        steps: Vec::new(),
    });
    let steps = open.steps.chunks(BATCH).map(|some| OpenMoney {
        unsettled: Vec::new(),
        steps: some.to_vec(),
    });
    for some in unsettled.chain(steps) {
        for mismatch in mismatches(provider, &some).await {
            let mut line = Line::of(&mismatch);
            if let Some(engine) = settler {
                let repaired = engine.repair(&mismatch).await;
                line.outcome =
                    Some(repaired.map_or_else(|e| e.to_string(), |()| SETTLED.to_owned()));
            }
            lines.push(line);
        }
        bar.inc((some.unsettled.len() + some.steps.len()) as u64);
    }
    bar.finish_and_clear();
    Ok((all, lines))
}

fn describe(compared: usize, lines: &[Line]) -> String {
    if compared == 0 {
        let said = "no payment is open: the provider was not asked, and the key not tried\n";
        return said.to_owned();
    }
    if lines.is_empty() {
        return format!("{compared} compared: every payment is where it should be\n");
    }
    let mut table = Table::new();
    table.set_header(["booking", "state", "payment", "found", "remedy", "outcome"]);
    for line in lines {
        table.add_row([
            &line.booking,
            line.state,
            line.payment.unwrap_or("-"),
            line.found,
            &line.remedy,
            line.outcome.as_deref().unwrap_or("not tried"),
        ]);
    }
    format!("{table}\n")
}
