//! A client that a public generator makes of the server's own description: it type-checks, and buys.

use std::path::Path;
use std::process::Command;

use soldonce_testkit::{program, workspace};

use crate::crash::server::{ADMIN_KEY, Server, serving, verify};
use crate::program::ends_well;
use crate::store::folder;

const SCRIPT: &str = "crates/soldonce/tests/client/purchase.py";
const CLIENT: &str = "soldonce_client";
/// What the generator says of what it leaves out.
const LEFT_OUT: &str = "WARNING";

/// Runs a script of the generator's packages in this folder; what it said.
fn python(folder: &Path, arguments: &[&str]) -> String {
    let script = program("openapi-python-client").unwrap();
    let packages = script.ancestors().nth(2).unwrap();
    let paths = [packages, folder];
    let mut command = Command::new(program("python3").unwrap());
    command.args(arguments).current_dir(folder);
    ends_well(command.env("PYTHONPATH", std::env::join_paths(paths).unwrap()))
}

#[test]
fn a_generated_client_type_checks_and_buys() {
    let folder = folder("generated-client");
    let data = folder.join("data");
    let mut command = serving(&data);
    command.args(["--shoppers", "open", "--free-sales=on"]);
    let server = Server::run(command, &data).unwrap();
    let url = format!("http://{}", server.address);

    // Formatting would take longer than all the rest.
    std::fs::write(folder.join("config.yml"), "post_hooks: []\n").unwrap();
    let generator = program("openapi-python-client").unwrap();
    let generated = python(
        &folder,
        &[
            generator.to_str().unwrap(),
            "generate",
            "--url",
            &format!("{url}/openapi.json"),
            "--output-path",
            CLIENT,
            "--meta",
            "none",
            "--config",
            "config.yml",
        ],
    );
    assert!(!generated.to_uppercase().contains(LEFT_OUT), "{generated}");
    let script = workspace().unwrap().join(SCRIPT);
    let script = script.to_str().unwrap();
    python(&folder, &["-m", "mypy", "--strict", CLIENT, script]);
    python(&folder, &[script, &url, ADMIN_KEY]);
    assert!(server.stop().success());
    verify(&data).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
