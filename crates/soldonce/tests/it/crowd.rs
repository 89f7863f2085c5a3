//! More connections than the system lets the server have open.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::crash::server::{PROGRAM, Server, arguments};
use crate::program;
use crate::store::folder;

/// The server under limits of open files as a shell sets them.
fn limited(name: &str, limits: &str) -> Server {
    let data = folder(name).join("data");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), PROGRAM]);
    command.args(arguments(&data));
    Server::run(command, &data).unwrap()
}

#[test]
fn the_server_takes_as_many_open_files_as_it_may() {
    let server = limited("crowd-raised", "ulimit -Sn 200");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut words = line.unwrap().split_whitespace().skip(3);
    let (soft, hard) = (words.next().unwrap(), words.next().unwrap());
    assert_ne!(soft, "200", "{limits}");
    assert_eq!(soft, hard, "{limits}");
}

#[test]
fn the_doctor_judges_the_open_files_to_which_a_server_raises_its_limit() {
    let limits = "ulimit -n 300; ulimit -Sn 200; exec \"$0\" doctor";
    let mut doctor = Command::new("sh");
    doctor.args(["-c", limits, PROGRAM]);
    let (_, said) = program::said(doctor.current_dir(folder("crowd-doctor")));
    let low = "remark  open files: 300 files";
    assert!(
        said.contains(low) && said.contains("to 256 more than"),
        "{said}"
    );
}

#[test]
fn a_server_without_descriptors_ends_silent_connections_for_one_that_asks() {
    let server = limited("crowd-full", "ulimit -n 96");
    let silent: Vec<TcpStream> = (0..120)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    let mut asks = TcpStream::connect(server.address).unwrap();
    let request = "GET /healthz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    asks.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    asks.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(silent);
}
