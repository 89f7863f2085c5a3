//! TLS to a server and to a cluster: what is certified is used, all else gets no command, and nothing falls back
//! to clear text.

use std::path::PathBuf;
use std::sync::Arc;

use soldonce_lease::backend::redis::{RedisBackend, RedisConfig};
use soldonce_lease::backend::{Backend, ReleaseReply};
use soldonce_lease::{BackendError, SystemClock};
use soldonce_testkit::redis::{ClientCertificate, Redis, RedisCluster};
use soldonce_testkit::{Authority, Certificate, TempFolder, Validity};

use super::site::{ask, granted, one, release, settings};
#[cfg(feature = "cluster")]
use super::site::{on_cluster, settings_of_cluster};

/// The host of every private server.
const HOST: &str = "127.0.0.1";

/// A folder with the certificate of an authority that clients trust.
struct Trust {
    authority: Authority,
    roots: PathBuf,
    folder: TempFolder,
}

impl Trust {
    fn new() -> Self {
        let folder = TempFolder::new().unwrap();
        let authority = Authority::new().unwrap();
        Self {
            roots: authority.write(folder.path()).unwrap(),
            authority,
            folder,
        }
    }

    fn server(&self, certificate: &Certificate, clients: ClientCertificate) -> Redis {
        let options = Redis::options().tls(certificate, &self.authority, clients);
        options.start().unwrap()
    }

    fn certified(&self) -> Certificate {
        self.authority.certify(HOST, Validity::Now).unwrap()
    }

    /// The parameters of a client that trusts the authority.
    fn parameters(&self) -> String {
        format!("sslrootcert={}", self.roots.display())
    }

    fn url(&self, server: &Redis) -> String {
        format!("rediss://{}?{}", server.tls_address(), self.parameters())
    }

    /// The parameters of one that shows this certificate besides.
    fn showing(&self, own: &Certificate, name: &str) -> String {
        let [own, key] = own.write(self.folder.path(), name).unwrap();
        let (own, key) = (own.display(), key.display());
        format!("{}&sslcert={own}&sslkey={key}", self.parameters())
    }
}

async fn connected(url: &str) -> Result<RedisBackend, BackendError> {
    RedisBackend::connect(&RedisConfig::from(url), settings()).await
}

/// How many connections there are to the server at this port, but for the one that asks.
fn connections(server: &Redis, port: u16) -> usize {
    let all = server.cli(&["CLIENT", "LIST"]).unwrap();
    let here = format!("laddr={HOST}:{port} ");
    let others = all.lines().filter(|line| !line.contains("cmd=client"));
    others.filter(|line| line.contains(&here)).count()
}

#[tokio::test]
async fn only_a_server_that_proves_its_name_gets_a_command() {
    let trust = Trust::new();
    let certify = |host, validity| trust.authority.certify(host, validity).unwrap();
    let stranger = Authority::new().unwrap();
    let wrong = [
        certify("elsewhere.example", Validity::Now),
        certify(HOST, Validity::Over),
        stranger.certify(HOST, Validity::Now).unwrap(),
        Certificate::self_signed(HOST).unwrap(),
    ];
    for certificate in wrong {
        let server = trust.server(&certificate, ClientCertificate::Optional);
        let error = connected(&trust.url(&server)).await.err().unwrap();
        let is_settings = matches!(error, BackendError::Config(_));
        assert!(
            is_settings && error.to_string().contains("certificate"),
            "{error:?}"
        );
    }
    let server = trust.server(&trust.certified(), ClientCertificate::Optional);
    // One that the system's authorities do not know, one without TLS, and TLS without a client of it.
    let [encrypted, clear] = [server.tls_address(), server.address()];
    let clear = format!("rediss://{clear}?{}", trust.parameters());
    for url in [
        format!("rediss://{encrypted}"),
        clear,
        format!("redis://{encrypted}"),
    ] {
        // Not on the slow clock: one of them gets no answer.
        let mut settings = settings();
        settings.clock = Arc::new(SystemClock);
        let refused = RedisBackend::connect(&RedisConfig::from(url.as_str()), settings).await;
        assert!(refused.is_err(), "{url}");
    }
}

#[tokio::test]
async fn leases_and_their_wake_ups_are_encrypted_throughout() {
    let trust = Trust::new();
    let server = trust.server(&trust.certified(), ClientCertificate::Optional);
    let backend = connected(&trust.url(&server)).await.unwrap();
    let mine = ask(one("a"));
    let token = granted(&backend, &mine).await;
    let mut wakes = backend.wake(&mine.names).await;
    let released = release(&backend, &mine, Some(token)).await;
    assert_eq!(released, ReleaseReply::Released);
    wakes.next().await;
    assert_eq!(connections(&server, server.address().port()), 0);
    assert!(connections(&server, server.tls_address().port()) >= 2);
}

#[tokio::test]
async fn a_client_shows_its_certificate_and_its_user() {
    let trust = Trust::new();
    let users = "user default off\nuser leases on >right ~* &* +@all\n";
    let options = Redis::options().acl(users);
    let options = options.tls(
        &trust.certified(),
        &trust.authority,
        ClientCertificate::Required,
    );
    let server = options.start().unwrap();
    let by = |authority: &Authority| authority.certify("leases", Validity::Now).unwrap();
    let own = trust.showing(&by(&trust.authority), "client");
    let strange = trust.showing(&by(&Authority::new().unwrap()), "stranger");
    let url = |password: &str, parameters: &str| {
        format!(
            "rediss://leases:{password}@{}?{parameters}",
            server.tls_address()
        )
    };
    let backend = connected(&url("right", &own)).await.unwrap();
    granted(&backend, &ask(one("a"))).await;
    for refused in [url("right", &strange), url("right", &trust.parameters())] {
        assert!(connected(&refused).await.is_err(), "{refused}");
    }
    let error = connected(&url("wrong", &own)).await.err().unwrap();
    assert!(matches!(error, BackendError::Config(_)), "{error:?}");
    assert!(error.to_string().contains("authentication"), "{error}");
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn every_node_of_a_cluster_proves_its_name() {
    let trust = Trust::new();
    let cluster = RedisCluster::start_tls(&trust.certified(), &trust.authority).unwrap();
    let nodes = cluster
        .nodes()
        .iter()
        .map(|node| node.tls_address().to_string());
    let nodes = nodes.collect::<Vec<_>>().join(",");
    let seeds = |parameters: &str| {
        RedisConfig::seeds(&format!("rediss+cluster://{nodes}{parameters}")).unwrap()
    };
    let trusted = seeds(&format!("?{}", trust.parameters()));
    let backend = on_cluster(&trusted, &settings_of_cluster()).await;
    for i in 0..12 {
        let mine = ask(one(&format!("report:{i}")));
        let token = granted(&backend, &mine).await;
        let released = release(&backend, &mine, Some(token)).await;
        assert_eq!(released, ReleaseReply::Released);
    }
    let error = RedisBackend::connect_cluster(&seeds(""), settings_of_cluster()).await;
    let error = error.err().unwrap();
    assert!(error.to_string().contains("certificate"), "{error:?}");
}
