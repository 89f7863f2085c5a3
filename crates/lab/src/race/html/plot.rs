//! The drawings of the page as SVG: bars, and lines that are named where they end, so that no legend has
//! to be matched.
#![expect(clippy::float_arithmetic, reason = "positions in a drawing")]

use super::{class, escape};

/// Draws a bar for each `(name, value, note)`; 0 is a dot.
pub(super) fn bars(title: &str, rows: &[(&str, u64, String)]) -> String {
    const ROW: f64 = 34.0;
    const LEFT: f64 = 150.0;
    const LONGEST: f64 = 720.0;
    let most = rows.iter().map(|(_, value, _)| *value).max();
    let most = float(most.unwrap_or(1).max(1));
    let mut top = 0.0;
    let row = |(name, value, note): &(&str, u64, String)| {
        let middle = top + ROW / 2.0;
        top += ROW;
        let (class, text) = (class(name), middle + 5.0);
        let width = LONGEST * float(*value) / most;
        let bar = if *value > 0 {
            let y = middle - 10.0;
            format!(
                "<rect class=\"bar {class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
                 height=\"20\" rx=\"3\" />"
            )
        } else {
            let x = LEFT + 4.0;
            format!("<circle class=\"bar {class}\" cx=\"{x}\" cy=\"{middle}\" r=\"4\" />")
        };
        let (name, before, behind) = (escape(name), LEFT - 14.0, LEFT + width.max(8.0) + 12.0);
        format!(
            "<text class=\"name {class}\" x=\"{before}\" y=\"{text}\" text-anchor=\"end\">{name}</text>\n\
             {bar}\n<text x=\"{behind:.1}\" y=\"{text}\">{note}</text>\n"
        )
    };
    let drawing: String = rows.iter().map(row).collect();
    svg(title, (1_120.0, top), &drawing)
}

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 62.0;
/// Where the lines end: behind it is room for their names.
const RIGHT: f64 = 488.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 334.0;
/// Names that end at the same height are moved so far apart.
const NAME_GAP: f64 = 16.0;

/// A plot of lines on a logarithmic scale.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// Numbers of buyers, at equal distances.
    pub(super) buyers: Vec<u32>,
    /// Names, each with a value for each number of buyers.
    pub(super) lines: Vec<(&'a str, Vec<u64>)>,
    /// Writes a value.
    pub(super) shown: fn(u64) -> String,
}

impl Plot<'_> {
    pub(super) fn figure(&self) -> String {
        let scale = Scale::around(self.lines.iter().flat_map(|(_, values)| values).copied());
        let drawing = [
            self.grid(&scale),
            self.axis(),
            self.lines(&scale),
            self.names(&scale),
        ];
        let title = escape(self.title);
        let svg = svg(&title, (WIDTH, HEIGHT), &drawing.concat());
        format!("<figure>\n<figcaption>{title}</figcaption>\n{svg}</figure>\n")
    }

    fn x(&self, at: usize) -> f64 {
        match self.buyers.len() {
            0 | 1 => f64::midpoint(LEFT, RIGHT),
            count => LEFT + (RIGHT - LEFT) * index(at) / index(count - 1),
        }
    }

    fn grid(&self, scale: &Scale) -> String {
        let tick = |value: &u64| {
            let (y, shown) = (scale.y(*value), (self.shown)(*value));
            let (left, text) = (LEFT - 10.0, y + 4.5);
            format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" />\n\
                 <text class=\"tick\" x=\"{left}\" y=\"{text:.1}\" text-anchor=\"end\">{shown}</text>\n"
            )
        };
        scale.powers.iter().map(tick).collect()
    }

    fn axis(&self) -> String {
        let text = |(x, y): (f64, f64), text: &str| {
            format!(
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>\n"
            )
        };
        let places = self.buyers.iter().enumerate();
        let places =
            places.map(|(at, count)| text((self.x(at), BOTTOM + 20.0), &count.to_string()));
        let title = text((f64::midpoint(LEFT, RIGHT), HEIGHT - 6.0), "buyers");
        places.chain([title]).collect()
    }

    fn lines(&self, scale: &Scale) -> String {
        let line = |(name, values): &(&str, Vec<u64>)| {
            let points = values.iter().zip(&self.buyers).enumerate();
            let points = points.map(|(at, (value, buyers))| {
                let (x, y, shown) = (self.x(at), scale.y(*value), (self.shown)(*value));
                let title = format!("{}, {buyers} buyers: {shown}", escape(name));
                let dot = format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{title}</title></circle>\n"
                );
                (format!("{x:.1},{y:.1}"), dot)
            });
            let (path, dots): (Vec<_>, Vec<_>) = points.unzip();
            let (class, path, dots) = (class(name), path.join(" "), dots.concat());
            format!("<g class=\"line {class}\">\n<polyline points=\"{path}\" />\n{dots}</g>\n")
        };
        self.lines.iter().map(line).collect()
    }

    /// Writes the name of each line at its end, none over another.
    fn names(&self, scale: &Scale) -> String {
        let ends = self.lines.iter();
        let ends = ends.filter_map(|(name, values)| Some((*name, scale.y(*values.last()?))));
        let mut ends: Vec<(&str, f64)> = ends.collect();
        ends.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let heights = apart(ends.iter().map(|(_, y)| *y));
        let x = self.x(self.buyers.len().saturating_sub(1)) + 12.0;
        let name = |((name, _), y): (&(&str, f64), f64)| {
            let (class, name, y) = (class(name), escape(name), y + 4.5);
            format!("<text class=\"name {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>\n")
        };
        ends.iter().zip(heights).map(name).collect()
    }
}

/// Powers of ten around all values.
struct Scale {
    powers: Vec<u64>,
}

impl Scale {
    fn around(values: impl Iterator<Item = u64> + Clone) -> Self {
        let least = values.clone().min().unwrap_or(1).max(1);
        let most = values.max().unwrap_or(1).max(least + 1);
        let all = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
        let above = all.clone().find(|power| *power >= most).unwrap_or(u64::MAX);
        let all = all.filter(|power| power.saturating_mul(10) > least);
        Self {
            powers: all.take_while(|power| *power <= above).collect(),
        }
    }

    fn y(&self, value: u64) -> f64 {
        let [least, most] = [self.powers.first(), self.powers.last()]
            .map(|power| float(*power.unwrap_or(&1)).log10());
        let part = (float(value.max(1)).log10() - least) / (most - least).max(1.0);
        BOTTOM - (BOTTOM - TOP) * part
    }
}

/// Moves these ascending heights as little as keeps them apart and within the plot.
fn apart(wanted: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut next = TOP;
    let mut heights: Vec<f64> = Vec::new();
    for y in wanted {
        let y = y.max(next);
        heights.push(y);
        next = y + NAME_GAP;
    }
    let mut most = BOTTOM;
    for y in heights.iter_mut().rev() {
        *y = y.min(most);
        most = *y - NAME_GAP;
    }
    heights
}

fn svg(title: &str, (width, height): (f64, f64), drawing: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n{drawing}</svg>\n"
    )
}

/// Converts a count to draw with; none here is beyond four thousand millions.
fn float(value: u64) -> f64 {
    f64::from(u32::try_from(value).unwrap_or(u32::MAX))
}

fn index(at: usize) -> f64 {
    f64::from(u32::try_from(at).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_lies_between_powers_of_ten() {
        let scale = Scale::around([4, 5_046].into_iter());
        assert_eq!(scale.powers, [1, 10, 100, 1_000, 10_000]);
        assert!((scale.y(100) - f64::midpoint(TOP, BOTTOM)).abs() < 1e-9);
        assert_eq!(Scale::around([10].into_iter()).powers, [10, 100]);
        assert_eq!(Scale::around([0].into_iter()).powers, [1, 10]);
    }

    #[test]
    fn names_keep_their_distance_and_stay_within() {
        let heights = apart([20.0, 21.0, 310.0, 329.0, 400.0].into_iter());
        let gaps = heights.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap >= NAME_GAP), "{heights:?}");
        assert!(heights[0] >= TOP && heights[4] <= BOTTOM, "{heights:?}");
    }
}
