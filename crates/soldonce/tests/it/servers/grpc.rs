//! A client that protoc makes of `proto/` for Python: it holds, buys and watches, on both ledgers.

use std::path::Path;
use std::process::Command;

use soldonce_testkit::{program, workspace};

use super::{database, logs, serve};
use crate::crash::server::{ADMIN_KEY, Server, serving, verify};
use crate::store::folder;

const SCRIPT: &str = "crates/soldonce/tests/client/grpc_purchase.py";

/// Runs Python with the compiler's packages in this folder.
fn python(folder: &Path, arguments: &[&str]) {
    let compiler = program("python-grpc-tools-protoc").unwrap();
    let packages = compiler.ancestors().nth(2).unwrap();
    let output = Command::new(program("python3").unwrap())
        .args(arguments)
        .current_dir(folder)
        .env(
            "PYTHONPATH",
            std::env::join_paths([packages, folder]).unwrap(),
        )
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Makes the client as docs/grpc.md says, and buys at a server.
fn buys(folder: &Path, server: &Server) {
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
    let script = workspace.join(SCRIPT);
    let address = server.address.to_string();
    python(folder, &[script.to_str().unwrap(), &address, ADMIN_KEY]);
}

#[test]
fn a_python_client_buys_from_a_file() {
    let folder = folder("grpc-client");
    let data = folder.join("data");
    let server = Server::run(serving(&data), &data).unwrap();
    buys(&folder, &server);
    assert!(server.stop().success());
    verify(&data).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_python_client_buys_from_postgresql() {
    let (database, folder) = (database(), logs("grpc-postgres"));
    let server = serve(&database, &folder.join("server"));
    buys(&folder, &server);
    assert!(server.stop().success());
}
