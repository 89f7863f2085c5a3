//! Legal ids for the free texts that pretix calls seats and zones by. The same plan always gives the
//! same ids.

use std::borrow::Cow;
use std::collections::BTreeSet;

use soldonce_core::limits::ID_BYTES_MAX;
use soldonce_core::{Id, Text};

use super::{Spot, Zone, quoted};

pub(super) struct SeatId<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) label: &'a str,
    /// Whether the id is not the `seat_guid` itself.
    pub(super) changed: bool,
}

impl<'a> SeatId<'a> {
    pub(super) fn of(spot: &Spot<'a>) -> Self {
        let seat = spot.seat.1;
        let (guid, number) = (seat.guid.as_str(), seat.number.as_str());
        if Id::parse(guid).is_ok() {
            return Self {
                id: Cow::Borrowed(guid),
                label: number,
                changed: false,
            };
        }
        let id = legal(guid).unwrap_or_else(|| fallback(spot));
        let is_label = !guid.trim().is_empty() && Text::parse(guid).is_ok();
        Self {
            id: Cow::Owned(id),
            label: if is_label { guid } else { number },
            changed: true,
        }
    }
}

/// Writes a seat's place, with its `seat_guid` where that tells more than the id.
pub(super) fn named(spot: &Spot<'_>) -> String {
    let guid = &spot.seat.1.guid;
    if Id::parse(guid).is_ok() {
        return format!("{spot}.seat_guid");
    }
    format!("{spot}.seat_guid (\"{}\")", quoted(guid))
}

/// Replaces each run of illegal characters by one `-`, trims `-`, cuts to 64; `None` if empty.
fn legal(text: &str) -> Option<String> {
    let mut id = String::new();
    let mut in_run = false;
    for character in text.chars() {
        let is_legal = character.is_ascii_alphanumeric() || ".-_".contains(character);
        if is_legal {
            id.push(character);
        } else if !in_run {
            id.push('-');
        }
        in_run = !is_legal;
    }
    let mut id = id.trim_matches('-').to_owned();
    id.truncate(ID_BYTES_MAX);
    (!id.is_empty()).then_some(id)
}

/// Builds an id for a `seat_guid` without a legal character: the seat's zone, row and number, and
/// where these have none either, their places in the plan, from 1.
fn fallback(spot: &Spot<'_>) -> String {
    let zone = zone_text(spot.zone.1).and_then(legal);
    let row = legal(&spot.row.1.number);
    let seat = legal(&spot.seat.1.number);
    let part = |text: Option<String>, index: usize| {
        let mut text = text.unwrap_or_else(|| format!("{}", index.saturating_add(1)));
        // Three parts and two hyphens fit into an id.
        text.truncate((ID_BYTES_MAX - 2) / 3);
        text
    };
    let (zone, row) = (part(zone, spot.zone.0), part(row, spot.row.0));
    format!("{zone}-{row}-{}", part(seat, spot.seat.0))
}

fn zone_text(zone: &Zone) -> Option<&str> {
    zone.id.as_deref().or(zone.name.as_deref())
}

/// Chooses the id of a zone, unlike those of `taken`: zones may share a name in pretix.
pub(super) fn zone_id(
    zone: &Zone,
    index: usize,
    taken: &mut BTreeSet<String>,
    notes: &mut Vec<String>,
) -> String {
    let text = zone_text(zone).unwrap_or_default();
    let base = legal(text).unwrap_or_else(|| format!("zone-{}", index.saturating_add(1)));
    let mut id = base.clone();
    let mut number = 1_u32;
    while taken.contains(&id) {
        number = number.saturating_add(1);
        let suffix = format!("-{number}");
        id.clone_from(&base);
        id.truncate(ID_BYTES_MAX.saturating_sub(suffix.len()));
        id.push_str(&suffix);
    }
    if id != text {
        notes.push(format!("zone `{}` became `{id}`", quoted(text)));
    }
    taken.insert(id.clone());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn illegal_characters_become_hyphens() {
        let cases = [
            ("a b", Some("a-b")),
            ("  Row A / 12 ", Some("Row-A-12")),
            ("é1ü", Some("1")),
            ("a--b  c", Some("a--b-c")),
            ("A_1.2-3", Some("A_1.2-3")),
            ("座席", None),
            ("", None),
            (" - ", None),
        ];
        for (text, id) in cases {
            assert_eq!(legal(text).as_deref(), id, "{text:?}");
        }
        assert_eq!(legal(&"x".repeat(70)), Some("x".repeat(64)));
    }
}
