//! Three processes behind one `PgBouncer` in transaction mode.

use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use soldonce_testkit::postgres::PgBouncer;

use super::{SEATS, ask, create, database, hold, logs, until};
use crate::crash::client::HttpAnswer;
use crate::crash::server::{PROGRAM, Server};
use crate::program::said;

const SERVERS: [&str; 3] = ["one", "two", "three"];
/// Connections of the pool: what the servers use, and a command with them.
const CONNECTIONS: u32 = 32;
/// Buyers of each seat, at each server as many.
const BUYERS: usize = 12;

/// The program behind the pool, its statements sent whole.
fn behind(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command.args(["--database-url", url, "--database-statements", "unprepared"]);
    command
}

fn serve(url: &str, log: &Path) -> Server {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--accept-loss"];
    Server::run(behind(url, &serve), log).unwrap()
}

/// What becomes of buyers who want one seat at the same time, over all servers.
fn race(servers: &[Server], seat: &str) -> Vec<HttpAnswer> {
    let barrier = Barrier::new(BUYERS);
    thread::scope(|scope| {
        let buyers: Vec<_> = (0..BUYERS)
            .map(|n| {
                let who = format!("{seat}-{n}");
                let mut client = servers[n % servers.len()].client(&who);
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    ask(&mut client, &hold(&who, seat))
                })
            })
            .collect();
        let heard = buyers.into_iter().map(|buyer| buyer.join().unwrap());
        heard.collect()
    })
}

#[test]
fn behind_a_pool_each_seat_is_sold_once() {
    let (database, logs) = (database(), logs("pool"));
    let pool = PgBouncer::start(&database, CONNECTIONS).unwrap();
    let url = pool.url_of("postgres");
    let servers = SERVERS.map(|name| serve(&url, &logs.join(name)));
    create(&mut servers[0].client("maker"));
    for server in &servers {
        until(&mut server.client("looker"), SEATS, |_| true);
    }
    for seat in ["A-1", "A-2", "A-3"] {
        let heard = race(&servers, seat);
        let won = heard.iter().filter(|heard| heard.status == 201).count();
        assert_eq!(won, 1, "{seat}");
        for lost in heard.iter().filter(|heard| heard.status != 201) {
            assert_eq!(lost.code(), "unit_unavailable", "{}", lost.shown());
        }
    }
    for arguments in [
        &["verify"][..],
        &["why", "hamlet-1", "A-1"],
        &["keys", "list"],
    ] {
        // With servers that may lose commits, which only they accept.
        let (code, said) = said(&mut behind(&url, arguments));
        let is_told = code == Some(0) || said.contains("fsync = off");
        assert!(is_told, "{arguments:?}: {said}");
    }
}

#[test]
fn a_pool_that_takes_no_settings_is_named_with_its_mend() {
    let database = database();
    let pool = PgBouncer::start(&database, CONNECTIONS).unwrap();
    let url = pool.url_of("postgres");
    for arguments in [
        &["serve", "--accept-loss", "--listen", "127.0.0.1:0"][..],
        &["verify"],
        &["why", "hamlet-1", "A-1"],
        &["keys", "list"],
    ] {
        let mut command = Command::new(PROGRAM);
        let (code, said) = said(command.args(arguments).args(["--database-url", &url]));
        assert_eq!(code, Some(3), "{arguments:?}: {said}");
        let fix = "set database_statements to unprepared";
        assert!(said.contains(fix), "{arguments:?}: {said}");
    }
    // Its lock would stay in the pool's session, in everybody's way.
    let (code, said) = said(&mut behind(&url, &["migrate"]));
    assert_eq!(code, Some(3), "{said}");
    let fix = "give `migrate` and `doctor` the address of the server itself";
    assert!(said.contains(fix), "{said}");
    let kept = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(database.query(kept).unwrap(), "0");
}
