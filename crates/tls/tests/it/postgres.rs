//! What each `sslmode` makes of each server: encrypted, in clear text, or no connection at all.

use std::error::Error;

use soldonce_testkit::postgres::{Postgres, PostgresOptions};
use soldonce_testkit::{Authority, Certificate, PATIENCE, Port, TempFolder, Validity};
use soldonce_tls::postgres::{self, read};
use tokio::task::JoinSet;
use tokio::time::timeout;

const MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];

#[derive(Debug, PartialEq, Eq)]
enum Link {
    Clear,
    Encrypted,
    Refused,
}

use Link::{Clear, Encrypted, Refused};

/// Connects, and asks the server whether the connection is encrypted.
async fn connect(url: &str) -> Result<Link, String> {
    let address = read(url).map_err(|error| error.to_string())?;
    let connected = postgres::connect(&address.config, &address.tls).await;
    let (client, connection) = connected.map_err(|error| {
        let cause = error.source().map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    })?;
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let shown = "-- shown\nSELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let row = client.query_one(shown, &[]).await.unwrap();
    Ok(if row.get(0) { Encrypted } else { Clear })
}

async fn link(url: &str) -> Link {
    connect(url).await.unwrap_or(Refused)
}

/// The address of the server by name, with these parameters.
fn address(server: &Postgres, user: &str, parameters: &str) -> String {
    let port = server.address().port();
    format!("postgres://{user}@localhost:{port}/postgres?{parameters}")
}

#[tokio::test]
async fn each_mode_takes_what_it_promises_and_nothing_less() {
    let folder = TempFolder::new().unwrap();
    let [authority, stranger] = [(); 2].map(|()| Authority::new().unwrap());
    let roots = authority.write(folder.path()).unwrap();
    let certified = |host, validity| Some(authority.certify(host, validity).unwrap());
    let others = stranger.certify("localhost", Validity::Now).unwrap();
    let own = Certificate::self_signed("localhost").unwrap();
    for (name, certificate, expected) in [
        ("no TLS", None, [Clear, Clear, Refused, Refused, Refused]),
        (
            "right",
            certified("localhost", Validity::Now),
            [Clear, Encrypted, Encrypted, Encrypted, Encrypted],
        ),
        (
            "of another host",
            certified("elsewhere.example", Validity::Now),
            [Clear, Encrypted, Encrypted, Encrypted, Refused],
        ),
        (
            "expired",
            certified("localhost", Validity::Over),
            [Clear, Encrypted, Encrypted, Refused, Refused],
        ),
        (
            "of another authority",
            Some(others),
            [Clear, Encrypted, Encrypted, Refused, Refused],
        ),
        (
            "self-signed",
            Some(own),
            [Clear, Encrypted, Encrypted, Refused, Refused],
        ),
    ] {
        let options = Postgres::options();
        let options = match &certificate {
            Some(certificate) => options.tls(certificate, &authority),
            None => options,
        };
        let server = options.start().unwrap();
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let named = format!("sslmode={mode}&sslrootcert={}", roots.display());
            let plain = format!("sslmode={mode}");
            let verifies = mode.starts_with("verify");
            let url = address(&server, "postgres", [&plain, &named][usize::from(verifies)]);
            assert_eq!(link(&url).await, expected, "{mode} with a server: {name}");
        }
        // `require` with an authority is no weaker than `verify-ca`.
        let named = format!("sslmode=require&sslrootcert={}", roots.display());
        let expected = match name {
            "right" | "of another host" => Encrypted,
            _ => Refused,
        };
        let url = address(&server, "postgres", &named);
        assert_eq!(link(&url).await, expected, "require with roots: {name}");
    }
}

/// A server that takes the user `app` with a certificate of its name, and `bound` with a password.
fn strict(authority: &Authority, rules: &str) -> Postgres {
    let own = authority.certify("localhost", Validity::Now).unwrap();
    let options = PostgresOptions::default().tls(&own, authority);
    let server = options.access(rules).start().unwrap();
    server
        .query("CREATE ROLE app LOGIN; CREATE ROLE bound LOGIN PASSWORD 'word'")
        .unwrap();
    server
}

#[tokio::test]
async fn a_client_shows_its_certificate_where_it_has_one() {
    let folder = TempFolder::new().unwrap();
    let [authority, stranger] = [(); 2].map(|()| Authority::new().unwrap());
    let roots = authority.write(folder.path()).unwrap();
    let server = strict(
        &authority,
        "hostssl all app all cert\nhost all app all reject\n",
    );
    for (name, by, expected) in [
        ("app", &authority, Encrypted),
        ("ann", &authority, Refused),
        ("app", &stranger, Refused),
    ] {
        let [own, key] = by
            .certify(name, Validity::Now)
            .and_then(|own| own.write(folder.path(), name))
            .unwrap();
        let parameters = format!(
            "sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
            roots.display(),
            own.display(),
            key.display()
        );
        assert_eq!(
            link(&address(&server, "app", &parameters)).await,
            expected,
            "{name}"
        );
    }
    assert_eq!(
        link(&address(&server, "app", "sslmode=require")).await,
        Refused
    );
}

#[tokio::test]
async fn a_password_is_bound_to_the_certificate_that_was_shown() {
    let authority = Authority::new().unwrap();
    let server = strict(&authority, "host all bound all scram-sha-256\n");
    let bound = |parameters: &str| address(&server, "bound:word", parameters);
    let required = "channel_binding=require";
    assert_eq!(
        link(&bound(&format!("sslmode=require&{required}"))).await,
        Encrypted
    );
    let unbound = connect(&bound(&format!("sslmode=disable&{required}"))).await;
    assert!(unbound.unwrap_err().contains("channel binding"));
}

#[tokio::test]
async fn a_server_that_says_nothing_keeps_none_waiting() {
    // The kernel takes connections for it, as for a process that is stopped.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Postgres::start().unwrap();
    let hosts = [silent.local_addr().unwrap(), server.address()].map(|host| host.to_string());
    let url = format!("postgres://postgres@{}/postgres", hosts.join(","));
    assert_eq!(timeout(PATIENCE, link(&url)).await, Ok(Clear));
    // Nor where no other takes it: a server that is asked again is perhaps promoted.
    let closed = Port::reserve().unwrap();
    let standby = url.replace(&hosts[1], &format!("127.0.0.1:{}", closed.number()));
    assert_eq!(timeout(PATIENCE, link(&standby)).await, Ok(Refused));
}
