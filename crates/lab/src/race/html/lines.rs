//! A plot of lines: one for each strategy, named where it ends, so that no legend has to be matched.
#![expect(clippy::float_arithmetic, reason = "places in a drawing")]

use super::escape;
use super::scale::Scale;

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 62.0;
/// Room for the names of the lines.
const RIGHT: f64 = 104.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// Names that end at the same place are moved so far apart.
const NAME_GAP: f64 = 16.0;

/// One line.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// A value for each place on the horizontal axis.
    pub(super) values: Vec<f64>,
}

/// A plot.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// What stands below the horizontal axis.
    pub(super) along: &'a str,
    /// The places on it.
    pub(super) places: Vec<String>,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) scale: Scale,
    /// A value in words.
    pub(super) shown: fn(f64) -> String,
}

impl Plot<'_> {
    /// The drawing with its title.
    pub(super) fn figure(&self) -> String {
        let title = escape(self.title);
        let drawing = [self.grid(), self.places(), self.lines(), self.names()].concat();
        format!(
            "<figure>\n<figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\" aria-label=\"{title}\">\n{drawing}</svg>\n</figure>\n"
        )
    }

    fn x(&self, at: usize) -> f64 {
        let (at, last) = (as_f64(at), as_f64(self.places.len().saturating_sub(1)));
        let width = WIDTH - LEFT - RIGHT;
        if last < 1.0 {
            LEFT + width / 2.0
        } else {
            LEFT + width * at / last
        }
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        TOP + height * (1.0 - self.scale.place(value))
    }

    fn grid(&self) -> String {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let tick = |value: f64| {
            let (y, shown) = (self.y(value), (self.shown)(value));
            format!(
                "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" />\n\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>\n",
                left - 10.0,
                y + 4.5
            )
        };
        self.scale.ticks().into_iter().map(tick).collect()
    }

    fn places(&self) -> String {
        let y = HEIGHT - BOTTOM + 20.0;
        let place = |(at, name): (usize, &String)| {
            let x = self.x(at);
            format!(
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>\n"
            )
        };
        let places: String = self.places.iter().enumerate().map(place).collect();
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        let (along, below) = (self.along, HEIGHT - 6.0);
        format!(
            "{places}<text class=\"along\" x=\"{middle:.1}\" y=\"{below}\" \
             text-anchor=\"middle\">{along}</text>\n"
        )
    }

    fn lines(&self) -> String {
        let line = |line: &Line<'_>| {
            let name = escape(line.name);
            let points = line.values.iter().enumerate();
            let points: Vec<(f64, f64, f64)> = points
                .map(|(at, value)| (self.x(at), self.y(*value), *value))
                .collect();
            let path: Vec<_> = points
                .iter()
                .map(|(x, y, _)| format!("{x:.1},{y:.1}"))
                .collect();
            let dots = points.iter().zip(&self.places).map(|((x, y, value), place)| {
                let (along, value) = (self.along, (self.shown)(*value));
                format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{name}, {place} {along}: \
                     {value}</title></circle>\n"
                )
            });
            format!(
                "<g class=\"line {name}\">\n<polyline points=\"{}\" />\n{}</g>\n",
                path.join(" "),
                dots.collect::<String>()
            )
        };
        self.lines.iter().map(line).collect()
    }

    /// The name of each line at its end, none over another.
    fn names(&self) -> String {
        let last = self.places.len().saturating_sub(1);
        let x = self.x(last) + 12.0;
        let mut ends: Vec<(&str, f64)> = self
            .lines
            .iter()
            .filter_map(|line| Some((line.name, self.y(*line.values.last()?))))
            .collect();
        ends.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let wanted: Vec<f64> = ends.iter().map(|(_, y)| *y).collect();
        let places = apart(&wanted, (TOP, HEIGHT - BOTTOM));
        let name = |((name, _), y): (&(&str, f64), f64)| {
            format!(
                "<text class=\"name {0}\" x=\"{x:.1}\" y=\"{1:.1}\">{0}</text>\n",
                escape(name),
                y + 4.5
            )
        };
        ends.iter().zip(places).map(name).collect()
    }
}

/// These places, which rise, moved as little as keeps them apart and within bounds.
fn apart(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut next = top;
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        let y = y.max(next);
        places.push(y);
        next = y + NAME_GAP;
    }
    let mut most = bottom;
    for y in places.iter_mut().rev() {
        *y = y.min(most);
        most = *y - NAME_GAP;
    }
    places
}

/// A small count as a number to draw with.
fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_stay_within() {
        let places = apart(&[10.0, 11.0, 90.0, 99.0, 100.0], (0.0, 100.0));
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap >= NAME_GAP), "{places:?}");
        assert!(places[0] >= 0.0 && places[4] <= 100.0, "{places:?}");
    }
}
