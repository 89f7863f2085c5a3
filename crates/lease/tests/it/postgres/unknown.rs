//! B7 on a PostgreSQL behind a proxy that loses answers, in a session that may only read, and gone.

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_testkit::chaos::{Fault, FaultProxy};

use super::{backend, config, server};
use crate::conformance::{
    Unheard, b7_what_found_nobody_is_not_sent, b7_what_is_rejected_did_not_run,
    b7_what_ran_unheard_is_unknown,
};

/// `read_only_sql_transaction`.
const READ_ONLY: &str = "25006";

#[tokio::test]
async fn b7_what_ran_and_was_not_heard_is_unknown() {
    let server = server().await;
    let witness = backend(config(&server));
    let proxy = FaultProxy::to(server.address()).unwrap();
    let url = proxy.url(&server.url(), server.address());
    // One connection, on which everything is prepared before an answer is lost.
    let behind = backend(PgConfig::url(&url).unwrap().connections(1));
    let lose = |text: &str| proxy.next_with(text, Fault::DropReply);
    b7_what_ran_unheard_is_unknown(&behind, &witness, Unheard::Stays, lose).await;
    assert_eq!(proxy.to_come(), 0);
}

#[tokio::test]
async fn b7_what_the_server_rejects_did_not_run() {
    let server = server().await;
    let url = server.url();
    let separator = if url.contains('?') { '&' } else { '?' };
    let option = "options=-c%20default_transaction_read_only%3Don";
    let reads = PgConfig::url(&format!("{url}{separator}{option}")).unwrap();
    let witness = backend(config(&server));
    b7_what_is_rejected_did_not_run(&backend(reads), &witness, READ_ONLY).await;
}

#[tokio::test]
async fn b7_what_found_a_closed_port_was_not_sent() {
    let mut server = server().await;
    let backend = backend(config(&server));
    server.kill().unwrap();
    b7_what_found_nobody_is_not_sent(&backend).await;
}
