//! `soldonce events`: drop an event that is over, through a running server or on the data of a stopped one.

use anyhow::Context;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use soldonce_core::{EventId, Origin, Span};
use soldonce_engine::EngineError;
use soldonce_engine::reply::Rfc3339;
use soldonce_server::{Client, ClientError};

use crate::block_on;
use crate::exit::{Exit, usage};
use crate::output::{print_json, report};
use crate::target::{TargetArgs, success};

/// Arguments of `soldonce events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  SOLDONCE_ADMIN_KEY=sk_.. soldonce events drop hamlet --url http://127.0.0.1:8080
  soldonce events drop hamlet --data ./data
  soldonce events drop hamlet --database-url postgres://soldonce@db/soldonce

An event can be dropped once it is over and nothing of it has changed for 8 days. Its holds, bookings and
history are deleted and cannot be brought back; its id stays taken. `--data` needs the ledger to itself: stop
the server, or use `--url`.")]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    command: EventsCommand,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Deletes an event that is over with all its holds, bookings and history
    Drop {
        /// The event's id
        event: String,
    },
}

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<Exit> {
    let EventsCommand::Drop { event } = &args.command;
    let event = EventId::parse(event).map_err(|wrong| usage(anyhow::anyhow!("EVENT: {wrong}")))?;
    let dropped = match args.target.client()? {
        Some(client) => block_on(through_server(&client, &event))?,
        None => block_on(on_data(args, &event))?,
    };
    let dropped = match dropped {
        Err(error) if is_refusal(&error) => {
            let why = format!("{event} is not dropped: {error:#}");
            if args.target.json {
                print_json(&json!({ "error": why }))?;
            } else {
                eprintln!("{why}");
            }
            return Ok(Exit::Refused);
        }
        done => done?,
    };
    report(args.target.json, &dropped, || {
        format!("{event} is dropped\n")
    })?;
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
    let at = response.body.get("droppable_at").and_then(Value::as_str);
    let at = at.map(|at| format!("it can be from {at} on"));
    let done = success(response);
    match at {
        Some(at) => done.context(at),
        None => done,
    }
}

async fn on_data(args: &EventsArgs, event: &EventId) -> anyhow::Result<Value> {
    let engine = args.target.open().await?;
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
