//! Two processes behind one shield on Redis, and what is left of it when that Redis is gone.

use std::path::Path;
use std::process::Command;
use std::thread;

use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{Data, Redis};
use soldonce_testkit::{PATIENCE, until_some};

use super::{SEATS, ask, counted, create, database, hold, logs, until};
use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server};
use crate::program::{said, serving_on};

/// A server on these two.
pub(super) fn serve(database: &Postgres, redis: &Redis, extra: &[&str], log: &Path) -> Server {
    let mut command = serving_on(&database.url());
    command.args(["--redis-url", &redis.url()]).args(extra);
    Server::run(command, log).unwrap()
}

/// How often a server's shield between servers refused.
fn refusals(client: &mut Client) -> u64 {
    refusals_by(client, "redis")
}

fn refusals_by(client: &mut Client, shield: &str) -> u64 {
    let metric = format!(r#"soldonce_shield_refusals_total{{shield="{shield}"}}"#);
    counted(client, &metric)
}

/// A key must not cost a loser a read of the record, nor a winner the answer.
#[test]
fn what_is_known_to_be_taken_is_refused_with_a_key_too() {
    let (database, logs) = (database(), logs("shield-keyed"));
    let servers = ["one", "two"].map(|name| super::serve(&database, &logs.join(name)));
    let mut clients = [servers[0].client("one"), servers[1].client("two")];
    create(&mut clients[0]);
    let first = ask(&mut clients[0], &hold("ann", "A-1").keyed("anns"));
    assert_eq!(first.status, 201);
    until(&mut clients[1], SEATS, |seats| seats["seq"] == 1);
    for n in 0..10 {
        let refused = ask(
            &mut clients[1],
            &hold("bob", "A-1").keyed(&format!("bobs-{n}")),
        );
        assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    }
    assert_eq!(refusals_by(&mut clients[1], "local"), 10);
    let again = ask(&mut clients[1], &hold("ann", "A-1").keyed("anns"));
    assert_eq!(
        (again.status, again.json()["id"].clone()),
        (201, first.json()["id"].clone())
    );
}

/// Has both want one seat at the same time, until the shield turned one of them away.
fn until_one_is_turned_away(clients: &mut [Client; 2]) {
    let counted = |clients: &mut [Client; 2]| clients.iter_mut().map(refusals).sum::<u64>();
    let before = counted(clients);
    until_some("the shield turns one away", PATIENCE, || {
        let statuses: Vec<u16> = thread::scope(|scope| {
            let asked = clients.iter_mut().zip(["ann", "bob"]);
            let asked = asked.map(|(client, who)| scope.spawn(move || take_turns(client, who)));
            let asked: Vec<_> = asked.collect();
            asked.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(statuses.contains(&201), "{statuses:?}");
        Ok((counted(clients) > before).then_some(()))
    })
    .unwrap();
}

/// Holds a seat that another wants too, and gives it back.
fn take_turns(client: &mut Client, who: &str) -> u16 {
    let held = ask(client, &hold(who, "B-1"));
    if held.is_success() {
        let path = format!("/v1/holds/{}", held.json()["id"].as_str().unwrap());
        let released = ask(client, &Ask::new("DELETE", path, None).moving());
        assert!(released.is_success(), "{}", released.shown());
    } else {
        assert_eq!(held.code(), "unit_unavailable", "{}", held.shown());
    }
    held.status
}

#[test]
fn two_servers_share_a_shield_and_sell_without_it() {
    let (database, logs) = (database(), logs("shield"));
    let mut redis = Redis::start().unwrap();
    let servers = ["one", "two"].map(|name| serve(&database, &redis, &[], &logs.join(name)));
    let mut clients = [servers[0].client("one"), servers[1].client("two")];
    create(&mut clients[0]);
    until(&mut clients[1], SEATS, |_| true);
    until_one_is_turned_away(&mut clients);
    redis.kill().unwrap();
    for seat in 1..=10 {
        let seat = format!("A-{seat}");
        assert_eq!(ask(&mut clients[0], &hold("cid", &seat)).status, 201);
        assert_eq!(ask(&mut clients[1], &hold("dora", &seat)).status, 409);
    }
    redis.restart(Data::Lost).unwrap();
    until_one_is_turned_away(&mut clients);
}

/// What the doctor says of the shield at this address.
fn doctor(url: &str) -> String {
    let (_, told) = said(Command::new(PROGRAM).args(["doctor", "--shield-url", url]));
    let of_shield = told.lines().find(|line| line.contains("shield: "));
    of_shield.unwrap_or(&told).to_owned()
}

#[test]
fn a_shield_on_a_redis_of_its_own_outlives_the_other() {
    let (database, logs) = (database(), logs("shield-apart"));
    let (mut common, mut own) = (Redis::start().unwrap(), Redis::start().unwrap());
    let url = own.url();
    let extra = ["--shield-url", &url];
    let servers = ["one", "two"].map(|name| serve(&database, &common, &extra, &logs.join(name)));
    let mut clients = [servers[0].client("one"), servers[1].client("two")];
    create(&mut clients[0]);
    until(&mut clients[1], SEATS, |_| true);
    common.kill().unwrap();
    until_one_is_turned_away(&mut clients);
    let well = doctor(&url);
    assert!(well.starts_with("ok      shield: answers in"), "{well}");
    own.kill().unwrap();
    let gone = doctor(&url);
    assert!(gone.starts_with("WRONG   shield: "), "{gone}");
    assert_eq!(ask(&mut clients[0], &hold("cid", "A-1")).status, 201);
}
