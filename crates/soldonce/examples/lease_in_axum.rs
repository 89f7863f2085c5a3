//! A web application whose job runs on one host at a time, though every host gets the request.
//! `cargo run --example lease_in_axum -- 127.0.0.1:3000`, then `curl -X POST 127.0.0.1:3000/report` twice at once.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use soldonce_lease::{LeaseRef, Leases, RunError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("usage: lease_in_axum ADDRESS")?;
    // For several hosts: `Leases::redis("redis://10.0.0.5").namespace("app").fence(..)`.
    let leases = Leases::memory().connect().await?;
    let app = Router::new()
        .route("/report", post(report))
        .with_state(leases);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn report(State(leases): State<Leases>) -> (StatusCode, String) {
    let written = match leases.lease("report").try_acquire().await {
        Ok(Some(lease)) => lease.run(write_report).await,
        Ok(None) => return (StatusCode::CONFLICT, "another host is at it\n".to_owned()),
        Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    };
    match written {
        Ok(()) => (StatusCode::OK, "written\n".to_owned()),
        Err(RunError::Lost { reason, .. }) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("stopped half-way: {reason}\n"),
        ),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn write_report(lease: LeaseRef) -> io::Result<()> {
    // Send the token with the write: the target refuses one that is lower than the highest it has seen.
    let token = lease.token().map_err(io::Error::other)?;
    let rows = tokio::task::spawn_blocking(move || format!("report by {token}").len()).await?;
    tracing::info!(rows, %token, "written");
    Ok(())
}
