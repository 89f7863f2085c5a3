//! The backend on a cluster whose primaries are killed, stopped and relieved of their slots.

mod loss;
mod moved;
mod unknown;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{
    AcquireReply, Backend, BackendContext, Fencing, ReleaseReply, RenewReply,
};
use soldonce_lease::{FencingToken, NoticeKind, NoticeStream};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::{FullCoverage, RedisCluster};

use super::site::{
    Numbers, TTL, ask, granted, group, name, on_cluster, one, refused, release, renew, seeds,
    settings_of_cluster,
};

/// A name is granted again within this time after its primary was lost, or its slot moved
/// (lease.md 11).
const BACK_WITHIN: Duration = Duration::from_secs(8);

struct Site {
    cluster: RedisCluster,
    backend: Arc<RedisBackend>,
    notices: NoticeStream,
}

impl Site {
    async fn start(coverage: FullCoverage) -> Self {
        Self::with(coverage, settings_of_cluster()).await
    }

    async fn with(coverage: FullCoverage, mut settings: BackendContext) -> Self {
        let cluster = RedisCluster::start(coverage).unwrap();
        settings.fencing = Fencing::Source(Numbers::from(1));
        let notices = settings.notices.listen();
        let backend = Arc::new(on_cluster(&seeds(&cluster), &settings).await);
        Self {
            cluster,
            backend,
            notices,
        }
    }

    /// Another backend on the cluster, with epochs above all others'.
    async fn connect(&self) -> RedisBackend {
        let mut settings = settings_of_cluster();
        settings.fencing = Fencing::Source(Numbers::from(1_000));
        on_cluster(&seeds(&self.cluster), &settings).await
    }

    /// One that only looks.
    async fn witness(&self) -> RedisBackend {
        on_cluster(&seeds(&self.cluster), &settings_of_cluster()).await
    }

    /// What was told of replaced connections since the last look.
    fn rebuilt(&mut self) -> Vec<String> {
        let told = std::iter::from_fn(|| self.notices.try_next());
        let rebuilt = told.filter(|notice| notice.what == NoticeKind::LinkRebuilt);
        rebuilt.map(|notice| notice.reason.clone()).collect()
    }

    /// How many connections listen for releases of `text` at the node of this place.
    fn listeners(&self, place: usize, text: &str) -> u32 {
        let channel = key_of(text).replace(&format!(":l:{text}"), ":w");
        let node = &self.cluster.nodes()[place];
        let told = node.cli(&["PUBSUB", "SHARDNUMSUB", &channel]).unwrap();
        told.lines().nth(1).unwrap().parse().unwrap()
    }

    /// A name whose primary was made the node at `place`.
    fn name_on(&self, place: usize) -> String {
        let mut names = (0..).map(|i| format!("n:{i}"));
        let lives = |text: &String| self.cluster.node_of(&key_of(text)).unwrap() == place;
        names.find(lives).unwrap()
    }
}

/// The lease key of a name outside groups, as lease.md 6.1 has it.
fn key_of(text: &str) -> String {
    let crc = text.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    format!("sl:{{app.{:02x}}}:l:{text}", crc % 64)
}

#[tokio::test]
async fn names_of_all_slots_are_granted_renewed_and_released() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let mut homes = BTreeSet::new();
    for i in 0..40 {
        let text = format!("report:{i}");
        homes.insert(site.cluster.node_of(&key_of(&text)).unwrap());
        let mine = ask(one(&text));
        let token = granted(&site.backend, &mine).await;
        let held = refused(&site.backend, &ask(one(&text))).await;
        assert_eq!(held, [text.as_str()]);
        let whole = RenewReply::Renewed { granted: TTL };
        assert_eq!(renew(&site.backend, &mine, token, TTL).await, whole);
        assert!(
            site.backend
                .inspect(None, &name(&text))
                .await
                .unwrap()
                .is_some()
        );
        let outcome = release(&site.backend, &mine, Some(token)).await;
        assert_eq!(outcome, ReleaseReply::Released);
    }
    assert_eq!(homes.len(), 3, "all three primaries took part");
}

#[tokio::test]
async fn group_is_one_slot_by_construction() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let names: Vec<String> = (0..64).map(|i| format!("A-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let whole = ask(group(&names));
    let token = granted(&site.backend, &whole).await;
    assert_eq!(refused(&site.backend, &ask(group(&["A-7"]))).await, ["A-7"]);
    assert_eq!(
        release(&site.backend, &whole, Some(token)).await,
        ReleaseReply::Released
    );
}

#[tokio::test]
async fn a_release_wakes_waiters_on_every_primary() {
    let site = Site::start(FullCoverage::NotRequired).await;
    for place in 0..3 {
        let mine = ask(one(&site.name_on(place)));
        granted(&site.backend, &mine).await;
        let mut wakes = site.backend.wake(&mine.names).await;
        release(&site.backend, &mine, None).await;
        let woken = tokio::time::timeout(PATIENCE, wakes.next()).await;
        assert!(woken.is_ok(), "no word from primary {place}");
    }
}

/// A grant, given back; nothing when it was not granted. One whose release is lost ends soon.
async fn take_turn(backend: &RedisBackend, text: &str) -> Option<FencingToken> {
    let mut mine = ask(one(text));
    mine.ttl = Duration::from_secs(10);
    let reply = backend.acquire(&mine).await;
    release(backend, &mine, None).await;
    match reply {
        AcquireReply::Granted { token, .. } => Some(token),
        _ => None,
    }
}
