//! `soldonce events`: drop an event that is over, through a running server or on the data of a stopped one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use soldonce_core::{EventId, Origin, Span};
use soldonce_engine::EngineError;
use soldonce_engine::reply::Rfc3339;
use soldonce_server::{Client, ClientError};

use crate::block_on;
use crate::exit::{Exit, usage};
use crate::output::{print, print_json};
use crate::serve::{DatabaseArgs, LedgerPlace};

/// Arguments of `soldonce events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce events drop hamlet --url http://127.0.0.1:8080 --admin-key KEY
  soldonce events drop hamlet --data ./data
  soldonce events drop hamlet --database-url postgres://soldonce@db/soldonce

An event can be dropped once it is over and nothing of it has changed for 8 days. Its holds, bookings and
history are deleted and cannot be brought back; its id stays taken. `--data` needs the ledger to itself: stop
the server, or use `--url`.")]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    command: EventsCommand,
    /// The folder of a ledger whose server is stopped [default: ./data]
    #[arg(long, global = true, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// A running server, as http://HOST:PORT
    #[arg(
        long,
        global = true,
        value_name = "URL",
        requires = "admin_key",
        conflicts_with = "data"
    )]
    url: Option<String>,
    /// The admin key for `--url`
    #[arg(
        long,
        global = true,
        env = "SOLDONCE_ADMIN_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    admin_key: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Deletes an event that is over with all its holds, bookings and history
    Drop {
        /// The event's id
        event: String,
    },
}

/// Runs `soldonce events`.
pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<Exit> {
    let EventsCommand::Drop { event } = &args.command;
    let event = EventId::parse(event).map_err(|wrong| usage(anyhow::anyhow!("EVENT: {wrong}")))?;
    let dropped = match (&args.url, &args.admin_key) {
        (Some(url), Some(key)) => {
            let client = Client::new(url, key).map_err(|wrong| usage(wrong.into()))?;
            block_on(through_server(&client, &event))?
        }
        _ => block_on(on_data(args, &event))?,
    };
    let dropped = match dropped {
        Err(error) if is_refusal(&error) => {
            eprintln!("{event} is not dropped: {error:#}");
            return Ok(Exit::Refused);
        }
        done => done?,
    };
    if args.json {
        print_json(&dropped)?;
    } else {
        print(&format!("{event} is dropped\n"))?;
    }
    Ok(Exit::Done)
}

/// Whether the event is not over, in use, gone or unknown: asking again changes nothing.
fn is_refusal(error: &anyhow::Error) -> bool {
    let by_server = matches!(
        error.downcast_ref(),
        Some(ClientError::Problem(status, ..)) if status.is_client_error()
    );
    let Some(EngineError::Rejected(rejection)) = error.downcast_ref() else {
        return by_server;
    };
    [
        "event_not_found",
        "event_dropped",
        "event_not_over",
        "event_in_use",
    ]
    .contains(&rejection.code())
}

async fn through_server(client: &Client, event: &EventId) -> anyhow::Result<Value> {
    let path = format!("/v1/events/{event}");
    let response = client.send(Method::DELETE, &path, None).await?;
    anyhow::ensure!(
        response.status != StatusCode::UNAUTHORIZED,
        "--admin-key: the server does not know this key"
    );
    Ok(response.into_success()?)
}

async fn on_data(args: &EventsArgs, event: &EventId) -> anyhow::Result<Value> {
    let place = LedgerPlace::new(args.data.clone(), &args.database)?;
    anyhow::ensure!(
        place.is_made(),
        "there is no ledger in {place}: name --data, or --url of a running server"
    );
    let engine = place.open().await?;
    let done = async {
        let origin = Origin::system("soldonce events drop");
        let at = engine.drop_event(event, Span::default(), origin).await?;
        engine.clear_dropped().await?;
        Ok(json!({ "id": event.as_str(), "dropped_at": Rfc3339(at) }))
    };
    let done = done.await;
    engine.close().await;
    done
}
