//! `soldonce demo`: a hall on an embedded ledger, open to shoppers, with bots if asked for. Money is
//! taken as `serve` takes it, by a provider on a private port that has test cards only.

mod bank;
mod bots;
mod cards;
mod hall;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use fake_stripe::FakeStripe;

use crate::env;
use crate::exit::{Exit, usage};
use crate::limits::DEMO_BOTS_MAX;
use crate::serve::{
    LEDGER, NewAdminKey, PaymentArgs, ServeArgs, Settings, start, start_logging, until_stopped,
};
use bank::Bank;

/// The file of the provider's account, in the folder of the ledger.
const ACCOUNT: &str = "provider.jsonl";
/// The file that marks a folder as made by a demo.
const MARK: &str = "demo";
/// The default folder of the ledger.
const FOLDER: &str = "./soldonce-demo";

/// Arguments of `soldonce demo`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  soldonce demo
  soldonce demo --bots 50
  soldonce demo --listen 127.0.0.1:9000 --data /tmp/soldonce-demo")]
pub(crate) struct DemoArgs {
    /// Where to listen
    #[arg(long, env = "SOLDONCE_LISTEN", value_name = "ADDRESS")]
    #[arg(default_value = "127.0.0.1:8080")]
    listen: String,
    /// The folder of the ledger; what is sold stays sold at the next start
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    #[arg(default_value = FOLDER)]
    data: PathBuf,
    /// An admin key to accept; else one is made at the first start, shown once on a terminal, or kept in
    /// the file `admin-key` of the folder
    #[arg(long, env = "SOLDONCE_ADMIN_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true)]
    admin_key: Option<String>,
    /// How many bots buy while you do
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(DEMO_BOTS_MAX)))]
    bots: u32,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Exit> {
    let folder = args.data.display();
    let has = |name: &str| args.data.join(name).exists();
    let is_own = args.data.as_path() == Path::new(FOLDER) || has(ACCOUNT) || has(MARK);
    if has(LEDGER) && !is_own {
        return Err(usage(anyhow::anyhow!(
            "{folder} has a ledger that no demo made, and a demo sells to everybody: choose another folder with --data"
        )));
    }
    let stripe = FakeStripe::start_kept(&args.data.join(ACCOUNT));
    let stripe = stripe
        .with_context(|| format!("{folder} cannot be used; choose another folder with --data"))?;
    let place = (args.listen.as_str(), args.data.as_path());
    let served = ServeArgs::demo(place, paid_through(&stripe), args.admin_key.clone());
    let settings = Settings::gather(&served).map_err(usage)?;
    let _traces = start_logging(&settings)?;
    env::warn_of_unknown();
    let runtime = tokio::runtime::Runtime::new()?;
    let exit = runtime.block_on(async {
        let bank = Arc::new(Bank::new(stripe));
        let mut started = start(&settings, Some(bank.clone())).await?;
        std::fs::write(args.data.join(MARK), "")?;
        bank.tell(started.address);
        hall::prepare(&started.engine).await?;
        println!(
            "{}",
            welcome(args, started.address, started.new_admin_key.as_ref())
        );
        let (engine, stop) = (started.engine.clone(), started.shutdown.clone());
        let silences = Arc::clone(&bank).end_silences(engine.clone(), stop.clone());
        started.tasks.spawn(silences);
        for number in 0..args.bots {
            let (engine, bank) = (engine.clone(), Arc::clone(&bank));
            started
                .tasks
                .spawn(bots::run(engine, bank, number, stop.clone()));
        }
        until_stopped(started).await
    });
    // Not dropped: that would wait for a lookup of a name, which may take longer than the end may.
    runtime.shutdown_background();
    exit
}

/// Builds the arguments by which `serve` takes fake-stripe for the real Stripe.
fn paid_through(stripe: &FakeStripe) -> PaymentArgs {
    PaymentArgs {
        stripe_key: Some(stripe.secret_key().to_owned()),
        stripe_webhook_secret: vec![stripe.webhook_secret().to_owned()],
        stripe_account: None,
        stripe_capture: None,
        stripe_url: Some(stripe.url()),
    }
}

fn welcome(args: &DemoArgs, address: SocketAddr, new_admin_key: Option<&NewAdminKey>) -> String {
    let bots = match args.bots {
        0 => "no bots: try --bots 50".to_owned(),
        1 => "1 bot buys too".to_owned(),
        bots => format!("{bots} bots buy too"),
    };
    let mut lines = vec![
        "Soldonce: hold scarce things for a moment; sell each of them once.".to_owned(),
        String::new(),
        format!("  seat map   http://{address}/"),
        format!("  API        http://{address}/docs"),
        format!("  ledger     {} ({bots})", args.data.display()),
        "  money      test cards, chosen on the page: none of it is real".to_owned(),
    ];
    if let Some(key) = new_admin_key {
        lines.push(format!("  admin key  {key}"));
    }
    lines.push(String::new());
    lines.push(
        "  Open the map in two windows and race yourself for a seat. Ctrl-C ends it.".to_owned(),
    );
    lines.join("\n")
}
