//! The plan of a race: which buyers want which seats, and when. Knows no database.

use serde::Serialize;

/// What the buyers of one round want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shape {
    /// Every buyer wants the same seats, named from left to right.
    Same,
    /// Each buyer wants other neighbours out of a ring, every second one from right to left. Any two of
    /// them overlap, so that one buyer can win.
    Crossed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cell {
    /// Buyers at the barrier of each round.
    pub(super) buyers: u32,
    pub(super) seats: u32,
    pub(super) shape: Shape,
}

/// The request of one buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Want {
    /// Counted over the whole cell.
    pub(super) buyer: u32,
    /// Seats of the hall, counted from 0, as the request lists them.
    pub(super) seats: Vec<u32>,
}

/// The seats of one cell: a row of its own for each round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hall {
    /// The event's id.
    pub(super) id: String,
    /// Counted over the whole race.
    pub(super) number: i32,
    pub(super) rows: u32,
    pub(super) seats_per_row: u32,
}

impl Hall {
    pub(super) fn seats(&self) -> u32 {
        self.rows * self.seats_per_row
    }

    /// Formats the name of a seat: its row, then its place.
    pub(super) fn seat_name(&self, seat: u32) -> String {
        let (row, place) = (seat / self.seats_per_row, seat % self.seats_per_row);
        format!("{}-{}", row + 1, place + 1)
    }
}

impl Cell {
    /// Lists every cell of these numbers, those of one shape together.
    pub(super) fn all(buyers: &[u32], seats: &[u32]) -> Vec<Self> {
        let mut cells = Vec::new();
        for &seats in seats {
            // One seat cannot be wanted in two directions.
            let shapes = if seats == 1 { 1 } else { 2 };
            for shape in [Shape::Same, Shape::Crossed].into_iter().take(shapes) {
                cells.extend(buyers.iter().map(|&buyers| Self {
                    buyers,
                    seats,
                    shape,
                }));
            }
        }
        cells
    }

    /// Returns the name of the shape in tables and titles.
    pub(super) fn shape_name(self) -> String {
        let seats = match self.seats {
            1 => "1 seat".to_owned(),
            more => format!("{more} seats"),
        };
        match self.shape {
            Shape::Same => seats,
            Shape::Crossed => format!("{seats} crossed"),
        }
    }

    /// Returns the seats of a row: in a ring of this size any two requests overlap.
    pub(super) fn seats_per_row(self) -> u32 {
        match self.shape {
            Shape::Same => self.seats,
            Shape::Crossed => 2 * self.seats - 1,
        }
    }

    pub(super) fn wants(self, round: u32) -> Vec<Want> {
        self.wants_as(round, self.shape)
    }

    /// Builds the requests of a round that only warms up: all in one direction.
    pub(super) fn warm_up(self, round: u32) -> Vec<Want> {
        self.wants_as(round, Shape::Same)
    }

    fn wants_as(self, round: u32, shape: Shape) -> Vec<Want> {
        let ring = self.seats_per_row();
        let row = round * ring;
        let want = |n: u32| {
            let begin = match shape {
                Shape::Same => 0,
                Shape::Crossed => n % ring,
            };
            let places = (0..self.seats).map(|place| row + (begin + place) % ring);
            let mut seats: Vec<u32> = places.collect();
            if shape == Shape::Crossed && n % 2 == 1 {
                seats.reverse();
            }
            let buyer = round * self.buyers + n;
            Want { buyer, seats }
        };
        (0..self.buyers).map(want).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seat_has_one_shape_and_more_have_two() {
        let cells = Cell::all(&[5, 20], &[1, 3]);
        let names: Vec<_> = cells
            .iter()
            .map(|cell| (cell.buyers, cell.shape_name()))
            .collect();
        let of = |buyers, name: &str| (buyers, name.to_owned());
        let expected = [
            of(5, "1 seat"),
            of(20, "1 seat"),
            of(5, "3 seats"),
            of(20, "3 seats"),
            of(5, "3 seats crossed"),
            of(20, "3 seats crossed"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn crossed_wants_overlap_pairwise_and_run_both_ways() {
        let cell = Cell {
            buyers: 11,
            seats: 3,
            shape: Shape::Crossed,
        };
        let wants = cell.wants(2);
        assert_eq!(wants[0].seats, [10, 11, 12]);
        assert_eq!(wants[1].seats, [13, 12, 11]);
        assert_eq!(wants[4].seats, [14, 10, 11]);
        assert_eq!((wants[0].buyer, wants[10].buyer), (22, 32));
        for one in &wants {
            for other in &wants {
                assert!(one.seats.iter().any(|seat| other.seats.contains(seat)));
            }
        }
    }

    #[test]
    fn rounds_want_rows_of_their_own() {
        let cell = Cell {
            buyers: 2,
            seats: 2,
            shape: Shape::Same,
        };
        assert_eq!(cell.wants(0)[1].seats, [0, 1]);
        assert_eq!(cell.wants(1)[0].seats, [2, 3]);
    }
}
