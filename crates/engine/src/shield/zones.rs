//! The zone of a unit: seats are in the zone of their row, areas in a zone of their own after all
//! others. In a Redis Cluster a zone is in one slot.

use soldonce_core::{AreaNo, Chart, EventNo, Selection, UnitNo};

use super::{Thing, Zone};

/// The wanted units of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub zone: Zone,
    pub contents: Contents,
}

/// Seats or areas by their numbers, sorted and distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Seats, which are claimed.
    Seats(Vec<UnitNo>),
    /// Areas, which are only looked at: their places are interchangeable, so no holder has one of
    /// them before the ledger grants it.
    Areas(Vec<AreaNo>),
}

impl Part {
    /// Lists the numbers of the wanted seats or areas.
    pub(super) fn numbers(&self) -> Vec<u64> {
        match &self.contents {
            Contents::Seats(seats) => seats.iter().map(|seat| u64::from(seat.0)).collect(),
            Contents::Areas(areas) => areas.iter().map(|area| u64::from(area.0)).collect(),
        }
    }

    /// Returns the seat or area at this index of the contents.
    pub(super) fn thing(&self, at: usize) -> Option<Thing> {
        match &self.contents {
            Contents::Seats(seats) => seats.get(at).copied().map(Thing::Seat),
            Contents::Areas(areas) => areas.get(at).copied().map(Thing::Area),
        }
    }

    /// Tells whether [`Shield::try_units`](super::Shield::try_units) claims it.
    pub(super) fn is_claimed(&self) -> bool {
        matches!(self.contents, Contents::Seats(_))
    }
}

/// Splits the wanted units of an event of a ledger by zone, in zone order.
pub(crate) fn parts(
    (ledger, event): (u64, EventNo),
    chart: &Chart,
    wanted: &Selection,
) -> Vec<Part> {
    let zone = |no| Zone { ledger, event, no };
    let mut parts: Vec<Part> = Vec::new();
    for seat in wanted.seats() {
        let of_seat = zone(zone_of_seat(chart, *seat));
        match parts.last_mut() {
            Some(Part {
                zone,
                contents: Contents::Seats(seats),
            }) if *zone == of_seat => seats.push(*seat),
            _ => parts.push(Part {
                zone: of_seat,
                contents: Contents::Seats(vec![*seat]),
            }),
        }
    }
    if !wanted.areas().is_empty() {
        parts.push(Part {
            zone: zone(zone_of_areas(chart)),
            contents: Contents::Areas(wanted.areas().keys().copied().collect()),
        });
    }
    parts
}

/// Returns the number of the zone of a seat.
pub(super) fn zone_of_seat(chart: &Chart, seat: UnitNo) -> u32 {
    let row = chart.row_of(seat).map(|(row, _)| row);
    let after = row.map_or(0, |row| {
        chart.zones().partition_point(|zone| zone.first_row <= row)
    });
    number(after.saturating_sub(1))
}

/// Returns the number of the zone of all areas.
pub(super) fn zone_of_areas(chart: &Chart) -> u32 {
    number(chart.zones().len())
}

fn number(zone: usize) -> u32 {
    u32::try_from(zone).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;

    /// Two zones of two rows, and two areas.
    const HALL: &str = r#"{"format":"soldonce","zones":[
        {"zone":"stalls","rows":[
          {"row":"A","seats":[{"seat":"A-1","category":"S"},{"seat":"A-2","category":"S"}]},
          {"row":"B","seats":[{"seat":"B-1","category":"S"}]}]},
        {"zone":"circle","rows":[
          {"row":"C","seats":[{"seat":"C-1","category":"S"}]},
          {"row":"D","seats":[{"seat":"D-1","category":"S"}]}]}],
        "areas":[{"area":"floor","capacity":4,"category":"S"},
                 {"area":"bar","capacity":2,"category":"S"}]}"#;

    #[test]
    fn what_is_wanted_is_cut_by_zone_in_zone_order() {
        let chart = chart::read(HALL.as_bytes()).unwrap().chart;
        let cut = |seats: &[&str], areas: &[&str]| {
            let areas = areas.iter().map(|area| (*area, 2));
            let wanted = chart.select(seats.iter().copied(), areas).unwrap();
            let parts = parts((7, EventNo(3)), &chart, &wanted);
            let shown = parts.iter().map(|part| {
                assert_eq!((part.zone.ledger, part.zone.event), (7, EventNo(3)));
                (part.zone.no, part.is_claimed(), part.numbers())
            });
            shown.collect::<Vec<_>>()
        };
        assert_eq!(cut(&["B-1", "A-1"], &[]), [(0, true, vec![0, 2])]);
        assert_eq!(
            cut(&["D-1", "A-2", "C-1"], &["bar", "floor"]),
            [
                (0, true, vec![1]),
                (1, true, vec![3, 4]),
                (2, false, vec![0, 1])
            ]
        );
        assert_eq!(cut(&[], &["bar"]), [(2, false, vec![1])]);
        assert_eq!(zone_of_areas(&chart), 2);
    }

    #[test]
    fn a_chart_without_seats_has_the_zone_of_its_areas() {
        let only = r#"{"format":"seats","areas":[{"area":"floor","capacity":4,"category":"S"}]}"#;
        let chart = chart::read(only.as_bytes()).unwrap().chart;
        let wanted = chart.select([], [("floor", 1)]).unwrap();
        assert_eq!(parts((7, EventNo(3)), &chart, &wanted).len(), 1);
    }
}
