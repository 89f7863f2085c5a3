//! Renewals and releases: batches of grants, flattened into arrays of names and folded again.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::acquire::token;
use super::listener::Listener;
use super::{Postgres, columns, garbled, micros, span};
use crate::backend::worst::OfName;
use crate::backend::{Names, Release, ReleaseReply, Renew, RenewReply};
use crate::{BackendError, FencingToken, Owner, timing};

const RENEW: &str = "\
-- lease_renew
SELECT out_grant, out_life_us, out_token FROM soldonce_lease_renew($1, $2, $3, $4, $5, $6)";

const RELEASE: &str = "\
-- lease_release
SELECT out_grant, out_outcome, out_token FROM soldonce_lease_release($1, $2, $3, $4, $5, $6)";

// The outcomes of both functions for a name, other than a life or a 1.
const GONE: i64 = 0;
const TAKEN: i64 = -1;

/// Arrays with one element for each name of each grant.
#[derive(Default)]
struct Elements {
    grants: Vec<i32>,
    names: Vec<String>,
    owners: Vec<Vec<u8>>,
    tokens: Vec<Option<i64>>,
    ttls: Vec<i64>,
}

impl Elements {
    fn add(&mut self, names: &Names, owner: Owner, token: Option<FencingToken>) {
        let grant = self.grants.last().map_or(0, |last| last + 1);
        for name in columns(names) {
            self.grants.push(grant);
            self.names.push(name);
            self.owners.push(owner.expose().to_vec());
            self.tokens.push(token.map(FencingToken::sql));
        }
    }
}

/// Folds rows of (grant, outcome, token) into the worst outcome of each of `count` grants.
fn fold(rows: &[Row], count: usize) -> Result<Vec<OfName>, BackendError> {
    let mut grants: Vec<Option<OfName>> = vec![None; count];
    for row in rows {
        let grant: i32 = row.try_get(0).map_err(|_| garbled("grant"))?;
        let outcome: i64 = row.try_get(1).map_err(|_| garbled("outcome"))?;
        let name = match outcome {
            TAKEN => OfName::Taken(token(row.try_get(2).map_err(|_| garbled("token"))?)?),
            GONE => OfName::Gone,
            life_us => OfName::Ours(span(life_us)),
        };
        let at = usize::try_from(grant).ok();
        let slot = at.and_then(|at| grants.get_mut(at));
        let slot = slot.ok_or_else(|| garbled("asked grant"))?;
        *slot = Some(slot.map_or(name, |before| before.or_worse(name)));
    }
    let whole: Option<Vec<OfName>> = grants.into_iter().collect();
    whole.ok_or_else(|| garbled("row for each grant"))
}

pub(super) async fn renew(backend: &Postgres, batch: &[Renew]) -> Vec<RenewReply> {
    let mut all = Elements::default();
    for renew in batch {
        all.add(&renew.names, renew.owner, Some(renew.token));
        all.ttls.resize(all.names.len(), micros(renew.ttl));
    }
    let params = [
        (&backend.namespace.as_str() as _, Type::TEXT),
        (&all.grants as _, Type::INT4_ARRAY),
        (&all.names as _, Type::TEXT_ARRAY),
        (&all.owners as _, Type::BYTEA_ARRAY),
        (&all.tokens as _, Type::INT8_ARRAY),
        (&all.ttls as _, Type::INT8_ARRAY),
    ];
    let limit = timing::renewal_limit(batch.iter().map(|renew| renew.ttl), backend.call_timeout);
    let rows = backend.settling.query_within(limit, RENEW, &params).await;
    match rows.and_then(|rows| fold(&rows, batch.len())) {
        Ok(grants) => grants.into_iter().map(OfName::renewed).collect(),
        Err(error) => vec![RenewReply::Failed(error); batch.len()],
    }
}

pub(super) async fn release(backend: &Postgres, batch: &[Release]) -> Vec<ReleaseReply> {
    let mut all = Elements::default();
    for release in batch {
        all.add(&release.names, release.owner, release.token);
    }
    let channel = backend.listener.as_ref().map(Listener::channel);
    let params = [
        (&backend.namespace.as_str() as _, Type::TEXT),
        (&all.grants as _, Type::INT4_ARRAY),
        (&all.names as _, Type::TEXT_ARRAY),
        (&all.owners as _, Type::BYTEA_ARRAY),
        (&all.tokens as _, Type::INT8_ARRAY),
        (&channel as _, Type::TEXT),
    ];
    let rows = backend.settling.query(RELEASE, &params).await;
    match rows.and_then(|rows| fold(&rows, batch.len())) {
        Ok(grants) => grants.into_iter().map(OfName::released).collect(),
        Err(error) => vec![ReleaseReply::Failed(error); batch.len()],
    }
}
