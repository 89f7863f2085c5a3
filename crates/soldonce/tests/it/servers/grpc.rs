//! A client that protoc makes of `proto/` for Python: it holds, buys and watches on both ledgers, and works under a
//! lease wherever leases are.

use std::path::Path;
use std::process::Command;

use soldonce_testkit::redis::Redis;
use soldonce_testkit::{program, workspace};

use super::{create, database, logs, serve};
use crate::crash::server::{ADMIN_KEY, Server, serving, verify};
use crate::program::ends_well;
use crate::store::folder;

const PURCHASE: &str = "crates/soldonce/tests/client/grpc_purchase.py";
const LEASE: &str = "crates/soldonce/tests/client/grpc_lease.py";

/// Runs Python with the compiler's packages in this folder; returns what it printed.
fn python(folder: &Path, arguments: &[&str]) -> String {
    let compiler = program("python-grpc-tools-protoc").unwrap();
    let packages = compiler.ancestors().nth(2).unwrap();
    let paths = std::env::join_paths([packages, folder]).unwrap();
    let mut command = Command::new(program("python3").unwrap());
    command.args(arguments).current_dir(folder);
    ends_well(command.env("PYTHONPATH", paths))
}

/// Makes the client as docs/grpc.md says.
fn make_client(folder: &Path) {
    let workspace = workspace().unwrap();
    let proto = workspace.join("proto");
    let mut files: Vec<String> = std::fs::read_dir(proto.join("soldonce/v1"))
        .unwrap()
        .map(|file| file.unwrap().path().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let include = format!("-I{}", proto.to_str().unwrap());
    let mut arguments = vec!["-m", "grpc_tools.protoc", &include];
    arguments.extend(["--python_out=.", "--grpc_python_out=."]);
    arguments.extend(files.iter().map(String::as_str));
    python(folder, &arguments);
}

/// Runs a script of the client at these servers.
fn runs(script: &str, folder: &Path, servers: &[&Server]) {
    make_client(folder);
    let script = workspace().unwrap().join(script);
    let addresses = servers.iter().map(|server| server.address.to_string());
    let addresses: Vec<String> = addresses.collect();
    let mut arguments = vec![script.to_str().unwrap(), ADMIN_KEY];
    arguments.extend(addresses.iter().map(String::as_str));
    python(folder, &arguments);
}

#[test]
fn a_python_client_buys_from_a_file() {
    let folder = folder("grpc-client");
    let data = folder.join("data");
    let server = Server::run(serving(&data), &data).unwrap();
    runs(PURCHASE, &folder, &[&server]);
    assert!(server.stop().success());
    verify(&data).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_python_client_buys_from_postgresql() {
    let (database, folder) = (database(), logs("grpc-postgres"));
    let server = serve(&database, &folder.join("server"));
    runs(PURCHASE, &folder, &[&server]);
    assert!(server.stop().success());
}

#[test]
fn a_paused_worker_loses_its_lease_in_memory_and_the_target_refuses_it() {
    let folder = folder("grpc-lease");
    let data = folder.join("data");
    let server = Server::run(serving(&data), &data).unwrap();
    runs(LEASE, &folder, &[&server]);
    assert!(server.stop().success());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_paused_worker_loses_its_lease_in_redis_and_the_target_refuses_it() {
    let (redis, folder) = (Redis::start().unwrap(), folder("grpc-lease-redis"));
    let data = folder.join("data");
    let mut command = serving(&data);
    command.args(["--lease-url", &redis.url()]);
    let server = Server::run(command, &data).unwrap();
    runs(LEASE, &folder, &[&server]);
    assert!(server.stop().success());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_paused_worker_loses_its_lease_in_the_database_of_two_servers() {
    let (database, folder) = (database(), logs("grpc-lease-postgres"));
    let server = |name: &str| serve(&database, &folder.join(name));
    let (first, second) = (server("first"), server("second"));
    runs(LEASE, &folder, &[&first, &second]);
    assert!(first.stop().success() && second.stop().success());
}

#[test]
fn the_lines_of_the_docs_hold_buy_watch_and_read_a_reason() {
    let folder = folder("grpc-docs");
    let data = folder.join("data");
    let server = Server::run(serving(&data), &data).unwrap();
    create(&mut server.client("docs"));
    make_client(&folder);
    let docs = workspace().unwrap().join("docs/grpc.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let blocks = docs.split("```python\n").skip(1);
    let lines: String = blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect();
    assert!(lines.contains(": print(message)\n"), "{lines}");
    let lines = lines
        .replace("127.0.0.1:8080", &server.address.to_string())
        .replace("hamlet", "hamlet-1")
        .replace("print(message)", "break");
    let script = folder.join("first_call.py");
    std::fs::write(&script, format!("KEY = {ADMIN_KEY:?}\n{lines}")).unwrap();
    let said = python(&folder, &[script.to_str().unwrap()]);
    assert!(said.ends_with("hold_consumed\n"), "{said}");
    assert!(server.stop().success());
    std::fs::remove_dir_all(folder).unwrap();
}
