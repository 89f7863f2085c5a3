//! What a server on PostgreSQL writes to its log when everything is logged.

use super::{ask, confirm, create, database, hold, logs};
use crate::crash::server::Server;
use crate::program::serving_on;

/// Values of statements are secrets: the master key is one of them.
#[test]
fn no_level_logs_the_values_of_statements() {
    let (database, logs) = (database(), logs("servers-log"));
    for (name, filter) in [
        ("all", "trace"),
        (
            "driver",
            "info,tokio_postgres::query=trace,tokio_postgres=debug",
        ),
    ] {
        let log = logs.join(name);
        let written = log.with_extension("log");
        if written.exists() {
            // Of another run.
            std::fs::remove_file(&written).unwrap();
        }
        let mut command = serving_on(&database.url());
        command.env("SOLDONCE_LOG", filter);
        let server = Server::run(command, &log).unwrap();
        let mut client = server.client(name);
        if name == "all" {
            create(&mut client);
        }
        let held = ask(
            &mut client,
            &hold("canary-holder", &format!("A-{}", name.len())),
        );
        let booked = ask(&mut client, &confirm(&held.json()));
        assert_eq!(booked.status, 201, "{}", booked.shown());
        assert!(server.stop().success());
        let text = std::fs::read_to_string(&written).unwrap();
        assert!(name != "all" || text.contains("request served"), "{text}");
        for told in ["parameters", "executing statement", "canary-holder"] {
            assert!(!text.contains(told), "{filter}: {told} in the log");
        }
    }
}
