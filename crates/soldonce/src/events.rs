//! `soldonce events`: list, create and call off events of a running server; drop one that is over, also on the
//! data of a stopped server.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use soldonce_core::{EventId, Origin, Span};
use soldonce_engine::EngineError;
use soldonce_engine::reply::Rfc3339;
use soldonce_server::{Client, Response};

use crate::block_on;
use crate::exit::{Exit, REFUSED, code_of, usage};
use crate::output::{print_json, report};
use crate::target::{TargetArgs, success};

/// Arguments of `soldonce events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 refused, 2 usage, 3 the server or the ledger cannot be reached
or used."
)]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    command: EventsCommand,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Subcommand)]
enum EventsCommand {
    /// Lists the events of a running server
    #[command(after_help = "Example, with the admin key in SOLDONCE_ADMIN_KEY:
  soldonce events list --url http://127.0.0.1:8080")]
    List,
    /// Makes an event of a running server
    #[command(after_help = "Example, with the admin key in SOLDONCE_ADMIN_KEY:
  soldonce events create hamlet.json --url http://127.0.0.1:8080

The file is the body of `POST /v1/events`; the same file again is the same event if it has an `id`.")]
    Create {
        /// A JSON file: `name`, `currency`, `chart`, `prices` and more; `-` is standard input
        file: PathBuf,
    },
    /// Calls an event of a running server off
    #[command(after_help = "Example, with the admin key in SOLDONCE_ADMIN_KEY:
  soldonce events cancel hamlet --reason 'the hall is flooded' --url http://127.0.0.1:8080

It sells no more and its holds end; its bookings stay until they are cancelled.")]
    Cancel {
        /// The event's id
        event: EventId,
        /// Why, as buyers are told
        #[arg(long)]
        reason: String,
    },
    /// Deletes an event that is over with all its holds, bookings and history
    #[command(after_help = "Examples:
  SOLDONCE_ADMIN_KEY=sk_.. soldonce events drop hamlet --url http://127.0.0.1:8080
  soldonce events drop hamlet --data ./data

An event can be dropped once it is over and nothing of it has changed for 8 days. What is deleted cannot be
brought back; its id stays taken.")]
    Drop {
        /// The event's id
        event: EventId,
    },
}

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<Exit> {
    let done = match (args.target.client()?, &args.command) {
        (Some(client), command) => block_on(through_server(&client, command))?,
        (None, EventsCommand::Drop { event }) => block_on(on_data(args, event))?,
        (None, _) => {
            let missing = "name the running server: --url http://HOST:PORT";
            return Err(usage(anyhow::anyhow!(missing)));
        }
    };
    let done = match done {
        Err(error) if is_refusal(&error) => {
            let why = match &args.command {
                EventsCommand::List => format!("{error:#}"),
                EventsCommand::Create { .. } => format!("no event is made: {error:#}"),
                EventsCommand::Cancel { event, .. } => {
                    format!("{event} is not called off: {error:#}")
                }
                EventsCommand::Drop { event } => format!("{event} is not dropped: {error:#}"),
            };
            if args.target.json {
                print_json(&json!({ "error": why }))?;
            } else {
                eprintln!("{why}");
            }
            return Ok(Exit::Refused);
        }
        done => done?,
    };
    report(args.target.json, &done, || text(&args.command, &done))?;
    Ok(Exit::Done)
}

fn text(command: &EventsCommand, done: &Value) -> String {
    match command {
        EventsCommand::List => match done["events"].as_array().map(Vec::as_slice) {
            None | Some([]) => "there is no event\n".to_owned(),
            Some(events) => events.iter().map(line).collect(),
        },
        EventsCommand::Create { .. } => {
            let notes = done["notes"].as_array().into_iter().flatten();
            let notes: String = notes
                .filter_map(|note| Some(format!("  {}\n", note.as_str()?)))
                .collect();
            line(done) + &notes
        }
        EventsCommand::Cancel { event, .. } => format!("{event} is called off\n"),
        EventsCommand::Drop { event } => format!("{event} is dropped\n"),
    }
}

/// Writes an event as one line.
fn line(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
    let state = match event["on_sale"].as_bool() {
        Some(true) => "on sale".to_owned(),
        Some(false) | None if word("state") == "open" => "not on sale".to_owned(),
        Some(false) | None => word("state"),
    };
    let (free, total) = (&event["free"], &event["total"]);
    let (id, name, starts_at) = (word("id"), word("name"), word("starts_at"));
    format!("{id}  {state}  {free} of {total} free  {starts_at}  {name}\n")
}

async fn through_server(client: &Client, command: &EventsCommand) -> anyhow::Result<Value> {
    match command {
        EventsCommand::List => list(client).await,
        EventsCommand::Create { file } => {
            let body = read(file)?;
            success(client.send(Method::POST, "/v1/events", Some(&body)).await?)
        }
        EventsCommand::Cancel { event, reason } => {
            let path = format!("/v1/events/{event}/cancel");
            let body = json!({ "reason": reason });
            success(client.send(Method::POST, &path, Some(&body)).await?)
        }
        EventsCommand::Drop { event } => {
            let path = format!("/v1/events/{event}");
            dropped(client.send(Method::DELETE, &path, None).await?)
        }
    }
}

/// Reads every page of the list.
async fn list(client: &Client) -> anyhow::Result<Value> {
    let (mut path, mut events) = ("/v1/events".to_owned(), Vec::new());
    loop {
        let mut page = success(client.send(Method::GET, &path, None).await?)?;
        if let Some(found) = page.get_mut("events").and_then(Value::as_array_mut) {
            events.append(found);
        }
        let Some(next) = page.get("next").and_then(Value::as_str) else {
            return Ok(json!({ "events": events }));
        };
        path = format!("/v1/events?after={next}");
    }
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let named = || format!("FILE {}", file.display());
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.with_context(named).map_err(usage)?;
    let body = serde_json::from_str(&text).with_context(|| format!("{}: no JSON", named()));
    body.map_err(usage)
}

fn dropped(response: Response) -> anyhow::Result<Value> {
    let at = response.body.get("droppable_at").and_then(Value::as_str);
    let at = at.map(|at| format!("it can be from {at} on"));
    let done = success(response);
    match at {
        Some(at) => done.context(at),
        None => done,
    }
}

/// Tells whether the error is a refusal, as for an event that is not over, in use, gone or unknown.
fn is_refusal(error: &anyhow::Error) -> bool {
    let Some(EngineError::Rejected(rejection)) = error.downcast_ref() else {
        return code_of(error) == REFUSED;
    };
    [
        "event_not_found",
        "event_dropped",
        "event_not_over",
        "event_in_use",
    ]
    .contains(&rejection.code())
}

async fn on_data(args: &EventsArgs, event: &EventId) -> anyhow::Result<Value> {
    let engine = args.target.open().await?;
    let done = async {
        let origin = Origin::system("soldonce events drop");
        let at = engine.drop_event(event, Span::default(), origin).await?;
        let kept = || format!("{event} is dropped, and a server will delete what is left of it");
        engine.clear_dropped().await.with_context(kept)?;
        Ok(json!({ "id": event.as_str(), "dropped_at": Rfc3339(at) }))
    };
    let done = done.await;
    engine.close().await;
    done
}
