//! `soldonce why`: the history of one unit, for support and operators who must explain what happened to it.

use anyhow::Context;
use clap::Args;
use comfy_table::Table;
use serde_json::json;
use soldonce_engine::ledger::{Tombstone, TombstoneBody, postgres, sqlite};
use soldonce_engine::reply::TransitionBody;

use crate::block_on;
use crate::exit::Exit;
use crate::output::{print_json, report};
use crate::serve::{LedgerArgs, LedgerPlace};

/// Arguments of `soldonce why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce why hamlet A-12
  soldonce why hamlet floor.17 --data /var/lib/soldonce --json
  soldonce why hamlet A-12 --database-url postgres://soldonce@db/soldonce

Reads only; servers go on meanwhile.")]
pub(crate) struct WhyArgs {
    /// The event's id
    event: String,
    /// A seat's id, or a place such as floor.17
    unit: String,
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<Exit> {
    let (event, unit) = (args.event.as_str(), args.unit.as_str());
    let place = args.ledger.place()?;
    if let Some(tombstone) = dropped(&place, event)? {
        return tell_dropped(args, &tombstone);
    }
    let found = match &place {
        LedgerPlace::Folder(options) => {
            let asked = sqlite::verify::unit_history(&options.folder, event, unit);
            asked.map_err(LedgerPlace::unread)?
        }
        LedgerPlace::Database(options) => {
            let asked = postgres::unit_history(options, event, unit);
            block_on(asked)?.context("database_url")?
        }
    };
    let Some(commits) = found else {
        let missing = format!("no unit `{unit}` in an event `{event}` of {place}");
        if args.ledger.json {
            print_json(&json!({ "error": missing }))?;
        } else {
            eprintln!("{missing}; a place in an area is written floor.17");
        }
        return Ok(Exit::Refused);
    };
    let steps = TransitionBody::of(&commits);
    report(args.ledger.json, &steps, || match steps.as_slice() {
        [] => format!("{unit} of {event} is free and always was\n"),
        steps => format!("{}\n", table(steps)),
    })?;
    Ok(Exit::Done)
}

fn dropped(place: &LedgerPlace, event: &str) -> anyhow::Result<Option<Tombstone>> {
    match place {
        LedgerPlace::Folder(options) => {
            sqlite::verify::dropped(&options.folder, event).map_err(LedgerPlace::unread)
        }
        LedgerPlace::Database(options) => {
            block_on(postgres::dropped(options, event))?.context("database_url")
        }
    }
}

fn tell_dropped(args: &WhyArgs, tombstone: &Tombstone) -> anyhow::Result<Exit> {
    let (event, body) = (&args.event, tombstone.body());
    report(args.ledger.json, &body, || {
        let TombstoneBody {
            dropped_at,
            actor,
            request_id,
            seq,
            bookings,
            transitions,
            ..
        } = &body;
        format!(
            "{event} was dropped at {dropped_at} by {actor} (request {request_id}), after commit {seq}; \
             {bookings} bookings and {transitions} transitions of it are deleted\n"
        )
    })?;
    Ok(Exit::Done)
}

fn table(steps: &[TransitionBody<'_>]) -> Table {
    let mut table = Table::new();
    table.set_header([
        "at", "what", "from", "to", "owner", "fence", "by", "request",
    ]);
    for step in steps {
        let owner = step.booking.clone().or_else(|| step.hold.clone());
        let owner = owner.unwrap_or_default();
        let what = match step.reason {
            Some(reason) => format!("{}: {reason}", step.cause),
            None => step.cause.to_owned(),
        };
        let (at, fence) = (step.at.to_string(), step.fence.to_string());
        let (from, to) = (step.from.to_owned(), step.to.to_owned());
        let (by, request) = (step.actor.clone(), step.request_id.to_owned());
        table.add_row([at, what, from, to, owner, fence, by, request]);
    }
    table
}
