//! TLS of whole processes: to the database, and from the tools to the server.

use std::path::Path;
use std::process::Command;

use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{ClientCertificate, Redis};
use soldonce_testkit::{Authority, PATIENCE, Validity, until};

use crate::crash::server::{ADMIN_KEY, PROGRAM, Server, serving};
use crate::program::{said, serving_on};
use crate::store::folder;

/// The exit code of the program that trusts the authority of this file, and what it says.
fn run(arguments: &[&str], trusted: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    said(command.args(arguments).env("SSL_CERT_FILE", trusted))
}

#[test]
fn a_server_speaks_tls_to_its_database_and_to_its_tools() {
    let at = folder("tls");
    let authority = Authority::new().unwrap();
    let trusted = authority.write(&at).unwrap();
    let certificate = authority.certify("localhost", Validity::Now).unwrap();
    let [own, key] = certificate.write(&at, "own").unwrap();
    let database = Postgres::options().tls(&certificate, &authority);
    let database = database.start().unwrap();
    let port = database.address().port();
    let roots = format!("sslmode=verify-full&sslrootcert={}", trusted.display());
    let url = format!("postgres://postgres@localhost:{port}/postgres?{roots}");
    let (code, said) = run(&["migrate", "--database-url", &url], &trusted);
    assert_eq!(code, Some(0), "{said}");
    let mut command = serving_on(&url);
    command.arg("--tls-cert").arg(&own);
    command.arg("--tls-key").arg(&key);
    let log = at.join("server");
    let server = Server::run(command, &log).unwrap();
    let clear = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE application_name = 'soldonce' AND NOT ssl";
    assert_eq!(database.query(clear).unwrap(), "0");
    let url = format!("https://localhost:{}", server.address.port());
    let list = ["keys", "list", "--url", &url, "--admin-key", ADMIN_KEY];
    let (code, said) = run(&list, &trusted);
    assert_eq!(code, Some(0), "{said}");
    let stranger = folder("tls-stranger");
    let stranger = Authority::new().unwrap().write(&stranger).unwrap();
    let (code, said) = run(&list, &stranger);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("invalid peer certificate"), "{said}");
    // Renewed, and the server is told.
    let renewed = authority.certify("localhost", Validity::Now).unwrap();
    renewed.write(&at, "own").unwrap();
    server.hang_up();
    let is_shown = || {
        let log = std::fs::read_to_string(log.with_extension("log"));
        log.is_ok_and(|log| log.contains("the certificate is another one"))
    };
    until("the renewed certificate is shown", PATIENCE, is_shown).unwrap();
    let (code, said) = run(&list, &trusted);
    assert_eq!(code, Some(0), "{said}");
    let plain = format!("http://{}", server.address);
    let (_, said) = run(&["status", "--url", &plain], &trusted);
    assert!(said.contains("does it serve https://?"), "{said}");
}

#[test]
fn a_certificate_that_has_ended_is_told() {
    let at = folder("tls-ended");
    let authority = Authority::new().unwrap();
    let ended = authority.certify("localhost", Validity::Over).unwrap();
    let [own, key] = ended.write(&at, "own").unwrap();
    let mut command = serving(&at.join("data"));
    command.arg("--tls-cert").arg(&own);
    command.arg("--tls-key").arg(&key);
    let log = at.join("server");
    let server = Server::run(command, &log).unwrap();
    let is_told = || {
        let log = std::fs::read_to_string(log.with_extension("log"));
        log.is_ok_and(|log| log.contains("the certificate has ended"))
    };
    until("the end is told", PATIENCE, is_told).unwrap();
    drop(server);
}

/// Whether all connections to this Redis, but for the one that asks, have TLS; and how many there are.
fn encrypted(redis: &Redis) -> (bool, usize) {
    let all = redis.cli(&["CLIENT", "LIST"]).unwrap();
    let others = all.lines().filter(|line| !line.contains("cmd=client"));
    let others: Vec<&str> = others.collect();
    let here = format!("laddr={} ", redis.tls_address());
    (others.iter().all(|line| line.contains(&here)), others.len())
}

#[test]
fn servers_and_tools_speak_tls_to_redis() {
    let at = folder("tls-redis");
    let authority = Authority::new().unwrap();
    let trusted = authority.write(&at).unwrap();
    let certificate = authority.certify("127.0.0.1", Validity::Now).unwrap();
    let redis = Redis::options().tls(&certificate, &authority, ClientCertificate::Optional);
    let redis = redis.start().unwrap();
    let address = redis.tls_address();
    let url = format!("rediss://{address}?sslrootcert={}", trusted.display());
    let mut command = serving(&at.join("data"));
    command.args(["--redis-url", &url]);
    let server = Server::run(command, &at.join("server")).unwrap();
    let is_connected = || encrypted(&redis) == (true, 1);
    until("the server is connected", PATIENCE, is_connected).unwrap();
    drop(server);
    let job = ["lease", "run", "nightly", "--redis-url", &url];
    // A call without an answer, as on a machine that stalls, is made again.
    let job = [&job[..], &["--wait", "1m", "--", "true"]].concat();
    let (code, said) = run(&job, &trusted);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["doctor", "--redis-url", &url], &trusted);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("tokens can be minted"), "{said}");
    // This authority does not know the server.
    let stranger = Authority::new()
        .unwrap()
        .write(&folder("tls-redis-stranger"));
    let unknown = format!("rediss://{address}");
    let job = [
        "lease",
        "run",
        "nightly",
        "--redis-url",
        &unknown,
        "--",
        "true",
    ];
    let (code, said) = run(&job, &stranger.unwrap());
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("certificate"), "{said}");
}

#[test]
fn files_of_tls_that_cannot_be_used_are_named() {
    let at = folder("tls-files");
    let authority = Authority::new().unwrap();
    let trusted = authority.write(&at).unwrap();
    let trusted_name = trusted.display().to_string();
    let gone = "postgres://localhost:1/x?sslmode=verify-full&sslrootcert=/no/ca.pem";
    for (arguments, code, why) in [
        (
            vec!["serve", "--tls-cert", &trusted_name],
            2,
            "tls_key: is missing",
        ),
        (
            vec![
                "serve",
                "--tls-cert",
                &trusted_name,
                "--tls-key",
                &trusted_name,
            ],
            2,
            "holds no private key",
        ),
        (
            vec!["migrate", "--database-url", gone],
            2,
            "/no/ca.pem cannot be read",
        ),
        (
            vec!["keys", "list", "--url", "ftp://h", "--admin-key", "k"],
            2,
            "https://HOST:PORT",
        ),
    ] {
        let (ended, said) = run(&arguments, &trusted);
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}
