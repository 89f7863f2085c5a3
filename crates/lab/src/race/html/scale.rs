//! Where a value lies on an axis, and which values are marked there.
#![expect(clippy::float_arithmetic, reason = "places in a drawing")]

/// A vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From nothing to a round value.
    Linear { most: f64 },
    /// From one power of ten to another.
    Log { least: i32, most: i32 },
}

impl Scale {
    /// From nothing to a round value that none of these is above.
    pub(super) fn linear(values: &[f64]) -> Self {
        let most = values.iter().copied().fold(1.0, f64::max);
        let step = step(most);
        let most = (most / step).ceil() * step;
        Self::Linear { most }
    }

    /// Powers of ten around all of these, which are above nothing.
    pub(super) fn log(values: &[f64]) -> Self {
        let exponents = values.iter().map(|value| value.max(1e-3).log10());
        let (least, most) = exponents.fold((f64::MAX, f64::MIN), |(least, most), at| {
            (least.min(at), most.max(at))
        });
        let least = whole(least.floor());
        let most = whole(most.ceil()).max(least + 1);
        Self::Log { least, most }
    }

    /// How far up the axis a value lies: 0 the bottom, 1 the top.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear { most } => value / most,
            Self::Log { least, most } => {
                let (least, most) = (f64::from(least), f64::from(most));
                (value.max(1e-3).log10() - least) / (most - least)
            }
        }
    }

    /// The values that are marked, from the bottom.
    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { most } => {
                let step = step(most);
                let count = u8::try_from(whole((most / step).round())).unwrap_or(u8::MAX);
                (0..=count).map(|at| f64::from(at) * step).collect()
            }
            Self::Log { least, most } => (least..=most).map(|at| 10_f64.powi(at)).collect(),
        }
    }
}

/// A round step of which between three and seven lead to `most`.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    let lead = most / power;
    let step = if lead <= 1.5 {
        0.25
    } else if lead <= 3.0 {
        0.5
    } else if lead <= 6.0 {
        1.0
    } else {
        2.0
    };
    step * power
}

/// A small whole number.
fn whole(value: f64) -> i32 {
    let near = (-400..=400).find(|at| f64::from(*at) >= value);
    near.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_ends_at_a_round_value() {
        let scale = Scale::linear(&[3.0, 16_600.0]);
        let shown: Vec<_> = scale.ticks().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["0", "5000", "10000", "15000", "20000"]);
        assert!((scale.place(5_000.0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_logarithmic_axis_ends_at_powers_of_ten() {
        let scale = Scale::log(&[4.4, 5_046.0]);
        assert_eq!(scale, Scale::Log { least: 0, most: 4 });
        assert_eq!(scale.ticks().len(), 5);
        assert!((scale.place(100.0) - 0.5).abs() < 1e-9);
        let one = Scale::log(&[10.0]);
        assert_eq!(one, Scale::Log { least: 1, most: 2 });
    }
}
