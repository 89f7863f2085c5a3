//! TLS to the database: every connection of the backend has it, or there is none.

use soldonce_lease::BackendError;
use soldonce_lease::backend::Backend;
use soldonce_lease::backend::postgres::PgConfig;
use soldonce_testkit::postgres::Postgres as Server;
use soldonce_testkit::{Authority, TempFolder, Validity};

use super::{ask, backend, granted, migrated, one};

#[tokio::test]
async fn every_connection_is_to_the_server_that_was_meant() {
    let folder = TempFolder::new().unwrap();
    let [authority, stranger] = [(); 2].map(|()| Authority::new().unwrap());
    let own = authority.certify("localhost", Validity::Now).unwrap();
    let server = Server::options().tls(&own, &authority).start().unwrap();
    let trusting = |authority: &Authority| {
        let roots = authority.write(folder.path()).unwrap();
        let (port, roots) = (server.address().port(), roots.display());
        let parameters = format!("sslmode=verify-full&sslrootcert={roots}");
        let url = format!("postgres://postgres@localhost:{port}/postgres?{parameters}");
        PgConfig::url(&url).unwrap()
    };
    let error = migrated(&trusting(&stranger)).await.unwrap_err();
    assert!(matches!(error, BackendError::Config(_)), "{error:?}");
    let config = trusting(&authority).notify();
    migrated(&config).await.unwrap();
    let backend = backend(config);
    let mine = ask(one("a"));
    granted(&backend, &mine).await;
    drop(backend.wake(&mine.names).await);
    let findings = backend.doctor().await;
    let pooling = findings.iter().find(|finding| finding.check == "pooling");
    assert_eq!(pooling.unwrap().found, "direct connection", "{findings:#?}");
    let links =
        "SELECT bool_and(ssl), count(*) >= 3 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                 WHERE application_name = 'soldonce-lease'";
    assert_eq!(server.query(links).unwrap(), "t|t");
}
