//! `soldonce keys`: make, list and revoke API keys, through a running server or on the data of a
//! stopped one.

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use soldonce_core::{CallerId, Text};
use soldonce_engine::Engine;
use soldonce_engine::keys::{ApiKey, Revocation, Scope, refuses_name};
use soldonce_engine::reply::Rfc3339;
use soldonce_server::Client;

use crate::block_on;
use crate::exit::{Exit, REFUSED, code_of, refused};
use crate::output::{print, print_json};
use crate::target::{TargetArgs, success};

/// Arguments of `soldonce keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Makes a key and prints it; it cannot be shown again
    #[command(after_help = "Examples:
  SOLDONCE_ADMIN_KEY=sk_.. soldonce keys create --scope sell --name shop --url http://127.0.0.1:8080
  soldonce keys create --scope admin --data ./data")]
    Create {
        /// What it may do; may be given several times
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope())]
        scopes: Vec<Scope>,
        /// Its name for people
        #[arg(long, default_value = "key", value_parser = key_name)]
        name: Text,
    },
    /// Lists keys, without their texts
    #[command(after_help = "Examples:
  soldonce keys list --data ./data --json
  soldonce keys list --database-url postgres://soldonce@db/soldonce")]
    List,
    /// Refuses a key from now on
    #[command(after_help = "Example:
  soldonce keys revoke cal_01j.. --data ./data

Exit code 1 when it is not revoked: it is unknown, or the last one with scope admin.")]
    Revoke {
        /// The key's id, from `list`
        #[arg(value_parser = key_id)]
        id: CallerId,
    },
}

fn scope() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::WORDS)
        .try_map(|word| Scope::parse(&word).ok_or("it is no scope"))
}

pub(crate) fn run(args: &KeysArgs) -> anyhow::Result<Exit> {
    let answer = match args.target.client()? {
        Some(client) => block_on(through_server(&client, &args.command))?,
        None => block_on(on_data(args))?,
    };
    let answer = match answer {
        Err(error) if args.target.json && code_of(&error) == REFUSED => {
            print_json(&json!({ "error": format!("{error:#}") }))?;
            return Ok(Exit::Refused);
        }
        answer => answer?,
    };
    if args.target.json {
        print_json(&answer)?;
    } else {
        print_answer(&args.command, &answer)?;
    }
    Ok(Exit::Done)
}

async fn through_server(client: &Client, command: &KeysCommand) -> anyhow::Result<Value> {
    let response = match command {
        KeysCommand::Create { scopes, name } => {
            let body = json!({ "name": name.as_str(), "scopes": scopes });
            client.send(Method::POST, "/v1/keys", Some(&body)).await?
        }
        KeysCommand::List => client.send(Method::GET, "/v1/keys", None).await?,
        KeysCommand::Revoke { id } => {
            let path = format!("/v1/keys/{id}");
            client.send(Method::DELETE, &path, None).await?
        }
    };
    success(response)
}

fn key_name(text: &str) -> Result<Text, String> {
    let name = Text::parse(text).map_err(|wrong| wrong.to_string())?;
    let refused = refuses_name(&name).map(str::to_owned);
    refused.map_or(Ok(name), Err)
}

fn key_id(text: &str) -> Result<CallerId, String> {
    let rule = |_| "this is no key's id; `soldonce keys list` has them".to_owned();
    text.parse().map_err(rule)
}

async fn on_data(args: &KeysArgs) -> anyhow::Result<Value> {
    let engine = args.target.open().await?;
    let answer = on_engine(&engine, &args.command).await;
    engine.close().await;
    answer
}

async fn on_engine(engine: &Engine, command: &KeysCommand) -> anyhow::Result<Value> {
    match command {
        KeysCommand::Create { scopes, name } => {
            let (key, text) = engine.create_key(name.clone(), scopes.clone()).await?;
            let mut made = describe(&key);
            if let Some(members) = made.as_object_mut() {
                members.insert("key".to_owned(), text.into());
            }
            Ok(made)
        }
        KeysCommand::List => {
            let keys: Vec<Value> = engine.keys().iter().map(describe).collect();
            Ok(json!({ "keys": keys, "next": null }))
        }
        KeysCommand::Revoke { id } => match engine.revoke_key(*id).await? {
            Revocation::Revoked(key) => Ok(describe(&key)),
            Revocation::Unknown => Err(refused(anyhow!("no key {id} that could be revoked"))),
            Revocation::LastAdmin => Err(refused(anyhow!(
                "key {id} is the last one with scope admin: make another one first, by \
                 `soldonce keys create --scope admin`"
            ))),
        },
    }
}

fn describe(key: &ApiKey) -> Value {
    json!({
        "id": key.id.to_string(),
        "name": key.name.as_str(),
        "scopes": key.scopes,
        "created_at": Rfc3339(key.created_at),
        "revoked_at": key.revoked_at.map(Rfc3339),
    })
}

/// Prints the answer as text. For `create` that is the key alone, so that a script can take it.
fn print_answer(command: &KeysCommand, answer: &Value) -> anyhow::Result<()> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or("-").to_owned();
    match command {
        KeysCommand::Create { .. } => print(&(text(answer, "key") + "\n")),
        KeysCommand::Revoke { id } => print(&format!("{id} is refused from now on\n")),
        KeysCommand::List => {
            let mut table = comfy_table::Table::new();
            table.set_header(["id", "name", "scopes", "created", "revoked"]);
            for key in answer["keys"].as_array().into_iter().flatten() {
                let scopes = key["scopes"].as_array().into_iter().flatten();
                let scopes: Vec<_> = scopes.filter_map(Value::as_str).collect();
                let [id, name, made, revoked] =
                    ["id", "name", "created_at", "revoked_at"].map(|name| text(key, name));
                table.add_row([id, name, scopes.join(","), made, revoked]);
            }
            print(&format!("{table}\n"))
        }
    }
}
