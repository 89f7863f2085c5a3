//! `soldonce demo`: a hall on an embedded ledger, open to shoppers, with bots if asked for.

mod bots;
mod hall;

use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;
use crate::limits::DEMO_BOTS_MAX;
use crate::serve::{ServeArgs, Settings, start, start_logging, until_stopped};

/// Arguments of `soldonce demo`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  soldonce demo
  soldonce demo --bots 50
  soldonce demo --listen 127.0.0.1:9000 --data /tmp/soldonce-demo")]
pub(crate) struct DemoArgs {
    /// Where to listen
    #[arg(
        long,
        env = "SOLDONCE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    listen: String,
    /// The folder of the ledger; what is sold stays sold at the next start
    #[arg(
        long,
        env = "SOLDONCE_DATA",
        value_name = "FOLDER",
        default_value = "./soldonce-demo"
    )]
    data: PathBuf,
    /// How many bots buy beside you
    #[arg(long, value_name = "N", default_value_t = 0)]
    bots: usize,
}

/// Runs `soldonce demo`.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        args.bots <= DEMO_BOTS_MAX,
        "--bots {}: at most {DEMO_BOTS_MAX}",
        args.bots
    );
    let settings = Settings::gather(&ServeArgs::demo(&args.listen, &args.data))?;
    start_logging(settings.log_format.value)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut started = start(&settings).await?;
        hall::prepare(&started.engine).await?;
        println!(
            "{}",
            welcome(args, &started.address, started.new_admin_key.as_deref())
        );
        let (engine, stop) = (started.engine.clone(), started.shutdown.clone());
        for number in 0..args.bots {
            started
                .tasks
                .spawn(bots::run(engine.clone(), number, stop.clone()));
        }
        until_stopped(started).await
    })
}

fn welcome(args: &DemoArgs, address: &str, new_admin_key: Option<&str>) -> String {
    let bots = match args.bots {
        0 => "no bots: try --bots 50".to_owned(),
        1 => "1 bot buys beside you".to_owned(),
        bots => format!("{bots} bots buy beside you"),
    };
    let mut lines = vec![
        "Soldonce: hold scarce things for a moment; sell each of them once.".to_owned(),
        String::new(),
        format!("  seat map   http://{address}/"),
        format!("  API        http://{address}/docs"),
        format!("  ledger     {} ({bots})", args.data.display()),
    ];
    if let Some(key) = new_admin_key {
        lines.push(format!("  admin key  {key} (shown once)"));
    }
    lines.push(String::new());
    lines.push(
        "  Open the map in two windows and race yourself for a seat. Ctrl-C ends it.".to_owned(),
    );
    lines.join("\n")
}
