//! The ceiling of a feed: a server that writes the same bytes to every socket at every tick, and nothing else.

use std::time::Duration;

use anyhow::Context;
use soldonce_clock::{Clock, SystemClock};
use soldonce_server::listen;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::kit::{serves_line, stop_signal};
use crate::output::print;

/// What is sent, and how often.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Plan {
    /// Bytes of a frame
    #[arg(long)]
    pub(super) bytes: u64,
    /// Milliseconds between two frames
    #[arg(long)]
    pub(super) period_ms: u64,
}

/// Builds the command that starts this program as such a server.
pub(super) fn command(plan: Plan) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let (bytes, period) = (plan.bytes.to_string(), plan.period_ms.to_string());
    command.args(["bench-fan-out", "--bytes", &bytes, "--period-ms", &period]);
    Ok(command)
}

/// Runs the hidden command `bench-fan-out` until a signal ends it.
pub(crate) fn run_server(plan: &Plan) -> anyhow::Result<Exit> {
    tokio::runtime::Runtime::new()?.block_on(async {
        tokio::select! {
            served = serve(*plan) => served?,
            () = stop_signal() => {}
        }
        Ok(Exit::Done)
    })
}

async fn serve(plan: Plan) -> anyhow::Result<()> {
    let listener = listen("127.0.0.1:0").await?;
    print(&serves_line("fan-out", listener.local_addr()?))?;
    let (mut opening, mut sockets) = (JoinSet::new(), Vec::new());
    let period = Duration::from_millis(plan.period_ms);
    let mut next = SystemClock.boot().plus(period);
    let mut seq = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                opening.spawn(greet(accepted?.0));
            }
            Some(opened) = opening.join_next() => sockets.push(opened??),
            () = SystemClock.sleep_until(next) => {
                next = next.plus(period);
                seq += 1;
                send(&mut sockets, &frame(plan.bytes, seq));
            }
        }
    }
}

/// Reads a request, and answers with the head of a stream as the feed does.
async fn greet(mut stream: TcpStream) -> anyhow::Result<TcpStream> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        anyhow::ensure!(stream.read_buf(&mut request).await? > 0, "closed");
    }
    let no_delay = stream.set_nodelay(true);
    no_delay.context("no option of the socket")?;
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: here\n\n";
    stream.write_all(head).await?;
    Ok(stream)
}

/// Builds a message of so many bytes.
fn frame(bytes: u64, seq: u64) -> Vec<u8> {
    let mut message =
        format!("id: {seq}\ndata: {{\"from\":{seq},\"seq\":{seq},\"x\":\"").into_bytes();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    message.resize(bytes.max(message.len() + 4) - 4, b'x');
    message.extend_from_slice(b"\"}\n\n");
    message
}

/// Writes to every socket; one that does not take the whole message is dropped.
fn send(sockets: &mut Vec<TcpStream>, message: &[u8]) {
    sockets.retain(|socket| socket.try_write(message).ok() == Some(message.len()));
}
