//! Follows the feed of an event: a snapshot, then every commit, over reconnects without a gap.
//! `cargo run --example watch_feed -- 127.0.0.1:8080 hamlet`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::{error::Error, net::TcpStream};

use serde::Deserialize;

#[derive(Deserialize)]
struct Commit {
    seq: u64,
    /// Tells it from a commit that had its number before a backup was restored.
    digest: String,
    #[serde(flatten)]
    rest: serde_json::Value,
}

impl Commit {
    /// Prints it; gives what to go on from.
    fn print(&self) -> String {
        println!("{}: {}", self.seq, self.rest);
        format!("after={}&digest={}", self.seq, self.digest)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let named = args.next().zip(args.next());
    let (server, event) = named.ok_or("usage: watch_feed SERVER EVENT")?;
    let server = server.trim_start_matches("http://").trim_end_matches('/');
    let mut known = snapshot(server, &event)?;
    loop {
        known = follow(server, &event, known)?;
    }
}

/// Prints the seats as they are now; gives what to go on from.
fn snapshot(server: &str, event: &str) -> Result<String, Box<dyn Error>> {
    let body = get(server, &format!("/v1/events/{event}/seats"))?.last();
    let commit: Commit = serde_json::from_str(&body.ok_or("no answer")??)?;
    Ok(commit.print())
}

/// Prints changes until the stream ends; gives what to go on from.
fn follow(server: &str, event: &str, mut known: String) -> Result<String, Box<dyn Error>> {
    let mut kind = String::new();
    let path = format!("/v1/events/{event}/feed?{known}&each=true");
    for line in get(server, &path)? {
        let line = line?;
        if line.is_empty() {
            kind.clear();
        } else if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut kind);
        } else if let (Some(data), "") = (line.strip_prefix("data: "), kind.as_str()) {
            known = serde_json::from_str::<Commit>(data)?.print();
        } else if kind == "reset" {
            return snapshot(server, event); // what comes next is not kept
        }
    }
    Ok(known)
}

/// The lines of an answer, by HTTP/1.0 so that they come as they are.
fn get(server: &str, path: &str) -> io::Result<Lines<BufReader<TcpStream>>> {
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {server}\r\n\r\n")?;
    Ok(BufReader::new(stream).lines())
}
