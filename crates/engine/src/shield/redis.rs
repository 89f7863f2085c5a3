//! The shield on Redis or Redis Cluster: one script call for each zone of a request, by Redis'
//! clock. A request without an answer in time passes.

use std::sync::LazyLock;

use soldonce_core::Span;
use soldonce_lease::backend::Fut;
use soldonce_lease::backend::redis::{KeyTag, RedisScript};

use super::{Belief, Kind, Note, Part, Shield, Tried, Who, Zone};
use crate::limits::{SHIELD_BELIEF_MS, SHIELD_CLAIM_MS, SHIELD_UNITS_MAX};
use crate::redis::{AskError, OptionalRedis, Words};

static TRY: LazyLock<RedisScript> =
    LazyLock::new(|| RedisScript::new(include_str!("scripts/shield_try.lua")));
static NOTE: LazyLock<RedisScript> =
    LazyLock::new(|| RedisScript::new(include_str!("scripts/shield_note.lua")));
static DROP: LazyLock<RedisScript> =
    LazyLock::new(|| RedisScript::new(include_str!("scripts/shield_drop.lua")));

/// The shield of all servers on one Redis, or one Redis Cluster.
#[derive(Debug)]
pub struct RedisShield(OptionalRedis);

/// What a call on a zone is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// To claim units that are free.
    Claim,
    /// To list units that are not free.
    Look,
}

/// The answer of one zone.
#[derive(Debug, PartialEq, Eq)]
enum ZoneAnswer {
    /// No conflict, and the units are claimed.
    Claimed,
    /// No conflict; nothing is claimed.
    Nothing,
    /// A wanted unit is in a hold of the same holder.
    Own,
    /// Every conflict.
    Conflicts(Vec<Belief>),
}

impl RedisShield {
    /// Creates the shield on this Redis.
    pub fn new(redis: OptionalRedis) -> Self {
        Self(redis.named(Words {
            away: "the shield is in process only: more requests reach the ledger until Redis answers",
            back: "the shield is between servers again: Redis answers",
        }))
    }

    /// Returns the Redis that the shield is on.
    pub fn redis(&self) -> &OptionalRedis {
        &self.0
    }

    /// Builds the key of a zone, and the hash tag that gives its slot in a cluster.
    fn key(&self, zone: Zone) -> (KeyTag, [String; 1]) {
        let Zone { ledger, event, no } = zone;
        let subject = format!("{ledger:016x}:{}:{no}", event.0);
        let tag = self.0.tag(subject.as_bytes());
        let key = format!("sd:{}:{subject}", tag.as_str());
        (tag, [key])
    }

    async fn ask_zone(&self, who: Who, part: &Part, aim: Aim) -> Result<ZoneAnswer, AskError> {
        let (tag, keys) = self.key(part.zone);
        let claims = u64::from(part.is_claimed() && aim == Aim::Claim);
        let mut args = vec![who.0, SHIELD_CLAIM_MS, SHIELD_BELIEF_MS, claims];
        args.extend(part.numbers());
        let read = |answer: &[i64]| read(part, answer);
        self.0.ask(&TRY, (&tag, &keys), &args, read).await
    }

    /// Calls the script for each zone, in zone order. After a conflict it only looks at the others,
    /// so that every conflict is named and no more is claimed.
    async fn try_zones(&self, who: Who, parts: &[Part]) -> Tried {
        let (mut claimed, mut conflicts) = (Vec::new(), Vec::new());
        for part in parts {
            let aim = if conflicts.is_empty() {
                Aim::Claim
            } else {
                Aim::Look
            };
            match self.ask_zone(who, part, aim).await {
                Ok(ZoneAnswer::Claimed) => claimed.push(part),
                Ok(ZoneAnswer::Nothing) => {}
                Ok(ZoneAnswer::Conflicts(more)) => conflicts.extend(more),
                // A conflict with the holder's own hold is for the ledger to name, and so are all
                // others.
                Ok(ZoneAnswer::Own) => return Tried::Passed,
                Err(_) => return Tried::Missed,
            }
        }
        if conflicts.is_empty() {
            return Tried::Passed;
        }
        for part in claimed {
            self.give_up(who, part).await;
        }
        Tried::Refused(conflicts)
    }

    async fn give_up(&self, who: Who, part: &Part) -> bool {
        let (tag, keys) = self.key(part.zone);
        let mut args = vec![who.0];
        args.extend(part.numbers());
        let heard = self.0.ask(&DROP, (&tag, &keys), &args, |_| Some(()));
        heard.await.is_ok()
    }

    async fn tell(&self, zone: Zone, notes: &[Note]) -> bool {
        let (tag, keys) = self.key(zone);
        let mut heard = true;
        for notes in notes.chunks(SHIELD_UNITS_MAX) {
            let mut args = vec![SHIELD_BELIEF_MS];
            for note in notes {
                let (kind, unit) = (u64::from(note.kind.letter()), u64::from(note.number));
                args.extend([kind, unit, note.version, note.left.ms(), note.who.0]);
            }
            let told = self.0.ask(&NOTE, (&tag, &keys), &args, |_| Some(()));
            heard &= told.await.is_ok();
        }
        heard
    }
}

impl Shield for RedisShield {
    fn try_units<'a>(&'a self, who: Who, parts: &'a [Part]) -> Fut<'a, Tried> {
        Box::pin(self.try_zones(who, parts))
    }

    fn note<'a>(&'a self, zone: Zone, notes: &'a [Note]) -> Fut<'a, bool> {
        Box::pin(self.tell(zone, notes))
    }

    fn drop_claims<'a>(&'a self, who: Who, part: &'a Part) -> Fut<'a, bool> {
        Box::pin(self.give_up(who, part))
    }
}

/// Parses an answer of the script about a part; none if the script does not answer so.
fn read(part: &Part, answer: &[i64]) -> Option<ZoneAnswer> {
    match answer {
        [1, 0] => Some(ZoneAnswer::Nothing),
        [2] => Some(ZoneAnswer::Own),
        [1, claim_ms] if u64::try_from(*claim_ms) == Ok(SHIELD_CLAIM_MS) => {
            Some(ZoneAnswer::Claimed)
        }
        [0, conflicts @ ..] if !conflicts.is_empty() => {
            let (quads, rest) = conflicts.as_chunks();
            let beliefs: Option<Vec<Belief>> = quads.iter().map(|it| belief(part, *it)).collect();
            beliefs
                .filter(|_| rest.is_empty())
                .map(ZoneAnswer::Conflicts)
        }
        _ => None,
    }
}

fn belief(part: &Part, [index, kind, left_ms, version]: [i64; 4]) -> Option<Belief> {
    let at = usize::try_from(index).ok()?.checked_sub(1)?;
    Some(Belief {
        thing: part.thing(at)?,
        kind: Kind::of_letter(kind)?,
        left: Span::from_ms(u64::try_from(left_ms).ok()?),
        version: u64::try_from(version).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use soldonce_core::{AreaNo, EventNo, UnitNo};
    use soldonce_lease::Namespace;

    use super::super::{Contents, Thing};
    use super::*;

    fn part(contents: Contents) -> Part {
        let (ledger, event, no) = (7, EventNo(1), 2);
        Part {
            zone: Zone { ledger, event, no },
            contents,
        }
    }

    #[test]
    fn only_answers_of_the_script_are_read() {
        let seats = part(Contents::Seats(vec![UnitNo(4), UnitNo(9)]));
        assert_eq!(read(&seats, &[1, 2_000]), Some(ZoneAnswer::Claimed));
        assert_eq!(read(&seats, &[1, 0]), Some(ZoneAnswer::Nothing));
        assert_eq!(read(&seats, &[2]), Some(ZoneAnswer::Own));
        let belief = |thing, kind, left_ms, version| Belief {
            thing,
            kind,
            left: Span::from_ms(left_ms),
            version,
        };
        let both = ZoneAnswer::Conflicts(vec![
            belief(Thing::Seat(UnitNo(4)), Kind::Claimed, 5, 0),
            belief(Thing::Seat(UnitNo(9)), Kind::Held, 70, 3),
        ]);
        assert_eq!(read(&seats, &[0, 1, 99, 5, 0, 2, 104, 70, 3]), Some(both));
        let areas = part(Contents::Areas(vec![AreaNo(4)]));
        let full = ZoneAnswer::Conflicts(vec![belief(Thing::Area(AreaNo(4)), Kind::Sold, 5, 0)]);
        assert_eq!(read(&areas, &[0, 1, 115, 5, 0]), Some(full));
        for odd in [
            &[][..],
            &[0],
            &[1],
            &[1, 1],
            &[3, 0],
            &[0, 1, 99, 5],
            &[0, 0, 99, 5, 0],
            &[0, 3, 99, 5, 0],
            &[0, 1, 98, 5, 0],
            &[0, 1, 99, -5, 0],
            &[0, 1, 99, 5, 0, 1],
        ] {
            assert_eq!(read(&seats, odd), None, "{odd:?}");
        }
    }

    #[test]
    fn a_zone_has_one_key_and_other_ledgers_and_events_have_others() {
        let clock = Arc::new(soldonce_clock::SystemClock);
        let namespace = Namespace::new("test").unwrap();
        let shield = RedisShield::new(OptionalRedis::at("redis://h", &namespace, clock).unwrap());
        let zone = part(Contents::Areas(Vec::new())).zone;
        let key = |zone| shield.key(zone).1[0].clone();
        let tag = shield.key(zone).0;
        assert_eq!(
            key(zone),
            format!("sd:{}:0000000000000007:1:2", tag.as_str())
        );
        for other in [
            Zone { ledger: 8, ..zone },
            Zone {
                event: EventNo(2),
                ..zone
            },
            Zone { no: 1, ..zone },
        ] {
            assert_ne!(key(other), key(zone));
        }
    }

    /// Asserts the rules of lease.md 6.2 that a reader would otherwise have to trust.
    #[test]
    fn the_scripts_keep_the_rules() {
        let scripts = [
            include_str!("scripts/shield_try.lua"),
            include_str!("scripts/shield_note.lua"),
            include_str!("scripts/shield_drop.lua"),
        ];
        for text in scripts {
            assert!(text.starts_with("#!lua"), "or it may touch other slots");
            assert!(text.matches("redis.call('TIME')").count() <= 1);
            assert!(!text.contains("tostring("), "it loses digits");
            assert!(text.contains(" KEYS: ") && text.contains(" Answers: "));
            assert!(text.contains(&format!("1 to {SHIELD_UNITS_MAX} ")));
        }
        let may_at_maxmemory = scripts.map(|text| text.starts_with("#!lua flags=allow-oom\n"));
        assert_eq!(
            may_at_maxmemory,
            [false, false, true],
            "claims can always end"
        );
    }
}
