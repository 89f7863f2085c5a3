//! Follows the feed of an event: a snapshot, then every commit, over reconnects without a gap.
//! `cargo run --example watch_feed -- 127.0.0.1:8080 hamlet`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::{error::Error, net::TcpStream};

use serde::Deserialize;

#[derive(Deserialize)]
struct Commit {
    seq: u64,
    #[serde(flatten)]
    rest: serde_json::Value,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let named = args.next().zip(args.next());
    let (server, event) = named.ok_or("usage: watch_feed SERVER EVENT")?;
    let server = server.trim_start_matches("http://").trim_end_matches('/');
    let mut seq = snapshot(server, &event)?;
    loop {
        seq = follow(server, &event, seq)?;
    }
}

/// Prints the seats as they are now; gives the number of their last commit.
fn snapshot(server: &str, event: &str) -> Result<u64, Box<dyn Error>> {
    let body = get(server, &format!("/v1/events/{event}/seats"))?.last();
    let Commit { seq, rest } = serde_json::from_str(&body.ok_or("no answer")??)?;
    println!("{seq}: {rest}");
    Ok(seq)
}

/// Prints changes until the stream ends; gives the number to go on from.
fn follow(server: &str, event: &str, mut after: u64) -> Result<u64, Box<dyn Error>> {
    let mut kind = String::new();
    for line in get(
        server,
        &format!("/v1/events/{event}/feed?after={after}&each=true"),
    )? {
        let line = line?;
        if line.is_empty() {
            kind.clear();
        } else if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut kind);
        } else if let (Some(data), "") = (line.strip_prefix("data: "), kind.as_str()) {
            let Commit { seq, rest } = serde_json::from_str(data)?;
            println!("{seq}: {rest}");
            after = seq;
        } else if kind == "reset" {
            return snapshot(server, event); // what comes next is no longer kept
        }
    }
    Ok(after)
}

/// The lines of an answer, by HTTP/1.0 so that they come as they are.
fn get(server: &str, path: &str) -> io::Result<Lines<BufReader<TcpStream>>> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {server}\r\n\r\n")?;
    Ok(BufReader::new(stream).lines())
}
