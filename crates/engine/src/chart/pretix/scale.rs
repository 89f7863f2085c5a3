//! Converts the pixels of a pretix plan to chart units, so that neighbouring seats are about one
//! unit apart. Whole hundredths throughout.

use soldonce_core::{Invalid, Position};

use super::{Object, Offset, Plan, Spot};

/// Where no two seats are neighbours, a seat counts as this wide: 25 pixels.
const DEFAULT_PITCH: i64 = 2_500;

/// The distance between neighbours in the plan, in hundredths of a pixel; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    pitch: i64,
}

impl Scale {
    /// Measures the median distance between neighbours, which a few aisles and gaps do not change.
    pub(super) fn of(plan: &Plan) -> Self {
        let rows = plan.zones.iter().flat_map(|zone| &zone.0.rows);
        let mut distances: Vec<i64> = rows
            .flat_map(|row| row.0.seats.iter().zip(row.0.seats.iter().skip(1)))
            .map(|(one, other)| distance(one.0.position.0, other.0.position.0))
            .filter(|distance| *distance > 0)
            .collect();
        let middle = distances.len() / 2;
        if distances.is_empty() {
            return Self {
                pitch: DEFAULT_PITCH,
            };
        }
        let (_, pitch, _) = distances.select_nth_unstable(middle);
        Self { pitch: *pitch }
    }

    /// Computes where the seat is in the chart.
    pub(super) fn position(self, spot: &Spot<'_>) -> Result<Position, Invalid> {
        let offset = |of: &Option<Object<Offset>>| of.as_ref().map(|offset| offset.0);
        let zone = offset(&spot.zone.1.position).unwrap_or_default();
        let row = offset(&spot.row.1.position).unwrap_or_default();
        let seat = spot.seat.1.position.0;
        let x = self.scaled([zone.x.0, row.x.0, seat.x.0])?;
        let y = self.scaled([zone.y.0, row.y.0, seat.y.0])?;
        Ok(Position { x, y })
    }

    /// Converts the sum of `pixels` to hundredths of a chart unit, rounded.
    fn scaled(self, pixels: [i32; 3]) -> Result<i32, Invalid> {
        let sum: i64 = pixels.into_iter().map(i64::from).sum();
        let doubled = sum.saturating_mul(200).saturating_add(self.pitch);
        let scaled = doubled.div_euclid(self.pitch.saturating_mul(2));
        i32::try_from(scaled).map_err(|_| {
            let text = "it stands too far from the others: the plan is too large for its seats";
            Invalid::new("chart.seat", text.to_owned())
        })
    }
}

fn distance(one: Offset, other: Offset) -> i64 {
    let square = |a: i32, b: i32| u128::from(a.abs_diff(b)).pow(2);
    let squares = square(one.x.0, other.x.0) + square(one.y.0, other.y.0);
    i64::try_from(squares.isqrt()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_the_nearest_hundredth() {
        let scale = Scale { pitch: 3_000 };
        let scaled = |pixels| scale.scaled(pixels).ok();
        assert_eq!(scaled([3_000, 0, 0]), Some(100));
        assert_eq!(scaled([1_000, 0, 0]), Some(33));
        assert_eq!(scaled([1_000, 500, 500]), Some(67));
        assert_eq!(scaled([-1_000, 0, 0]), Some(-33));
        assert_eq!(
            Scale { pitch: 1 }.scaled([i32::MAX; 3]),
            Err(Invalid::new(
                "chart.seat",
                "it stands too far from the others: the plan is too large for its seats".to_owned(),
            ))
        );
    }
}
