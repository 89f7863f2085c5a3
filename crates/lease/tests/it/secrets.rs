//! Secrets show themselves nowhere: owners and passwords of every backend are looked for in the logs
//! of all levels, in all that can be printed, in errors, notices and numbers. `lease.md` 11.16.

use std::fmt::Debug;
use std::time::Duration;

use soldonce_lease::backend::{Backend, Holder};
use soldonce_lease::{Builder, Clock, Doctor, Leases, Name, Owner, SystemClock};
use soldonce_testkit::{PATIENCE, log};

/// Stands in every url.
const PASSWORD: &str = "canary-sings-low";

/// Everything that was said, and what must not be in it.
struct Canary {
    said: String,
    secrets: Vec<String>,
}

impl Canary {
    fn new() -> Self {
        log::capture();
        Self {
            said: String::new(),
            secrets: vec![PASSWORD.to_owned()],
        }
    }

    fn hears(&mut self, what: &dyn Debug) {
        self.said
            .extend([format!("{what:?}\n"), format!("{what:#?}\n")]);
    }

    fn hears_error<T: Debug>(&mut self, outcome: Result<T, impl Debug + ToString>) {
        let error = outcome.expect_err("it was broken");
        self.hears(&error);
        self.said.push_str(&error.to_string());
    }

    /// An owner in the forms in which it may slip out.
    fn knows(&mut self, owner: Owner) {
        let bits = owner.expose();
        let number = u128::from_be_bytes(bits);
        let list = format!("{bits:?}");
        let bare = list.trim_matches(['[', ']']).to_owned();
        self.secrets
            .extend([format!("{number:032x}"), number.to_string(), bare]);
    }

    fn leaks(&self) -> Vec<&String> {
        let log = log::lines().join("\n");
        let found = |secret: &&String| {
            let upper = secret.to_uppercase();
            let is_in = |text: &str| text.contains(secret.as_str()) || text.contains(&upper);
            is_in(&self.said) || is_in(&log)
        };
        self.secrets.iter().filter(found).collect()
    }
}

/// The life of two leases on a backend that breaks in the end. `witness` sees it another way.
async fn sings(builder: Builder, witness: &dyn Backend, breaks: impl FnOnce()) {
    let mut canary = Canary::new();
    canary.hears(&builder);
    let locks = builder.doctor(Doctor::Warn).connect().await.unwrap();
    let mut notices = locks.notices();
    let (name, second) = (Name::new("report").unwrap(), locks.lease("second"));
    let ask = locks
        .lease("report")
        .ttl(Duration::from_secs(20))
        .meta("who", "me");
    canary.hears(&(&ask, &second));
    let lease = ask.try_acquire().await.unwrap().unwrap();
    canary.knows(seen(witness, &name).await.owner);
    canary.hears(&(
        &lease,
        lease.handle(),
        lease.token_for_logs(),
        lease.state(),
    ));
    canary.hears(&locks.lease("report").try_acquire().await);
    let short = Duration::from_millis(300);
    canary.hears(&locks.lease("report").acquire_or_refusal(short).await);
    let ticket = lease.detach();
    canary.hears(&ticket);
    let lease = locks.resume(ticket).await.unwrap().unwrap();
    canary.hears(&locks.lease(name.clone()).inspect().await.unwrap());
    let other = second.try_acquire().await.unwrap().unwrap();
    breaks();
    canary.hears_error(other.release().await);
    canary.hears(&lease.renew().await);
    canary.hears_error(locks.lease("third").try_acquire().await);
    canary.hears(&(&locks, locks.facts(), locks.stats(), locks.doctor().await));
    canary.hears(&locks.clone().shutdown(Duration::from_millis(100)).await);
    canary.hears(&lease);
    std::iter::from_fn(|| notices.try_next()).for_each(|notice| canary.hears(&notice));
    assert!(canary.said.contains("report"), "nothing was said");
    assert!(!log::lines().is_empty(), "nothing was logged");
    assert_eq!(canary.leaks(), Vec::<&String>::new());
}

/// Waits until the witness sees the holder: it may look at the one node of a majority that hears of a grant last.
async fn seen(witness: &dyn Backend, name: &Name) -> Holder {
    let end = SystemClock.boot().plus(PATIENCE);
    loop {
        if let Some(holder) = witness.inspect(None, name).await.unwrap() {
            return holder;
        }
        assert!(SystemClock.boot() < end, "the witness sees no holder");
    }
}

#[cfg(feature = "redis")]
mod on_redis {
    use soldonce_lease::Namespace;
    use soldonce_lease::backend::BackendContext;
    use soldonce_lease::backend::redis::RedisBackend;
    #[cfg(any(feature = "cluster", all(feature = "redlock", feature = "test-kit")))]
    use soldonce_lease::backend::redis::RedisConfig;
    use soldonce_testkit::redis::Redis;

    use super::{Canary, Doctor, Leases, PASSWORD, sings};

    /// Lets the canary in; the tests' own connections need no login.
    fn with_login(redis: &Redis) -> String {
        let user = [
            "ACL",
            "SETUSER",
            "canary",
            "on",
            &format!(">{PASSWORD}"),
            "~*",
            "&*",
            "+@all",
        ];
        redis.cli(&user).unwrap();
        redis
            .url()
            .replace("redis://", &format!("redis://canary:{PASSWORD}@"))
    }

    fn settings() -> BackendContext {
        let mut settings = BackendContext::new(Namespace::new("app").unwrap());
        settings.call_timeout = soldonce_testkit::PATIENCE;
        settings
    }

    #[cfg(all(feature = "redlock", feature = "test-kit"))]
    fn kill_all<'a>(servers: impl Iterator<Item = &'a mut Redis>) {
        for server in servers {
            server.kill().unwrap();
        }
    }

    #[cfg(feature = "cluster")]
    fn kill_nodes(cluster: &mut soldonce_testkit::redis::RedisCluster) {
        for place in 0..cluster.nodes().len() {
            cluster.node(place).unwrap().kill().unwrap();
        }
    }

    #[tokio::test]
    async fn redis_tells_no_secret() {
        let mut redis = Redis::start().unwrap();
        let builder = Leases::redis(with_login(&redis))
            .namespace("app")
            .call_timeout(soldonce_testkit::PATIENCE);
        let witness = RedisBackend::connect(&redis.url().into(), settings())
            .await
            .unwrap();
        sings(builder, &witness, || redis.kill().unwrap()).await;
    }

    #[tokio::test]
    async fn a_refused_password_is_not_told() {
        let redis = Redis::start().unwrap();
        let mut canary = Canary::new();
        let wrong = with_login(&redis).replace("canary:", "nobody:");
        let builder = Leases::redis(wrong).namespace("app").doctor(Doctor::Off);
        canary.hears_error(builder.connect().await);
        assert!(canary.leaks().is_empty(), "{:?}", canary.leaks());
    }

    #[cfg(all(feature = "redlock", feature = "test-kit"))]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redlock_tells_no_secret() {
        let mut servers = Redis::independent(3).unwrap();
        let nodes: Vec<RedisConfig> = servers.iter().map(|one| with_login(one).into()).collect();
        let config = soldonce_lease::backend::redis::RedlockConfig::new(nodes);
        let config = config.sit_out(std::time::Duration::ZERO);
        let witness = RedisBackend::connect(&servers[0].url().into(), settings())
            .await
            .unwrap();
        // A vote has 200 ms: a machine that stands still must not look like a node that does not answer.
        let awake = crate::awake::Awake::start();
        let builder = Leases::redlock(config)
            .namespace("app")
            .clock(std::sync::Arc::new(awake.clock()))
            .call_timeout(soldonce_testkit::PATIENCE);
        sings(builder, &witness, || kill_all(servers.iter_mut())).await;
    }

    #[cfg(feature = "cluster")]
    #[tokio::test]
    async fn a_cluster_tells_no_secret() {
        use soldonce_testkit::redis::{FullCoverage, RedisCluster};

        let mut cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
        let seeds: Vec<RedisConfig> = cluster.urls().into_iter().map(RedisConfig::from).collect();
        let witness = RedisBackend::connect_cluster(&seeds, settings())
            .await
            .unwrap();
        let seeds = cluster.nodes().iter().map(with_login);
        let builder = Leases::cluster(seeds)
            .namespace("app")
            .call_timeout(soldonce_testkit::PATIENCE);
        sings(builder, &witness, || kill_nodes(&mut cluster)).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_tells_no_secret() {
    use soldonce_lease::backend::postgres::PgConfig;

    let mut server = crate::postgres::server().await;
    let witness = crate::postgres::backend(crate::postgres::config(&server));
    let url = server.url();
    let (user, rest) = url
        .strip_prefix("postgres://")
        .unwrap()
        .split_once('@')
        .unwrap();
    let url = format!("postgres://{user}:{PASSWORD}@{rest}");
    let builder = Leases::postgres(PgConfig::url(&url).unwrap())
        .namespace("app")
        .call_timeout(soldonce_testkit::PATIENCE);
    sings(builder, &witness, || server.kill().unwrap()).await;
}

#[cfg(feature = "test-kit")]
#[tokio::test]
async fn memory_tells_no_secret() {
    use soldonce_lease::backend::Memory;
    use soldonce_lease::test_kit::FaultyBackend;
    use std::sync::Arc;

    let clock = Arc::new(soldonce_lease::SystemClock);
    let memory = Memory::new(clock.clone());
    let faulty = FaultyBackend::around(Arc::new(memory.clone()), clock);
    let builder = Leases::backend(faulty.clone());
    sings(builder, &memory, || faulty.pause()).await;
}

#[test]
fn a_secret_that_slips_out_is_found() {
    let mut canary = Canary::new();
    let owner = Owner::from_bits(*b"\x01owner-of-test\xfe\xff");
    canary.knows(owner);
    assert!(canary.leaks().is_empty());
    tracing::trace!(bits = ?owner.expose(), "logged");
    assert_eq!(canary.leaks().len(), 1);
    let hex = format!("{:X}", u128::from_be_bytes(owner.expose()));
    canary.hears(&format!("0{hex} {PASSWORD}"));
    assert_eq!(canary.leaks().len(), 3);
}
