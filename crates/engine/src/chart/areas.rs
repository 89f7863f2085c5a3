//! Areas of general admission, written alike in the formats `seats` and `soldonce`.

use std::borrow::Cow;

use serde::Deserialize;
use soldonce_core::{AreaSpec, ChartBuilder, Frame, Invalid, Position};

use super::place::at;
use super::strict::{Count, Hundredths, Object};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AreaEntry<'a> {
    #[serde(borrow)]
    area: Cow<'a, str>,
    label: Option<String>,
    capacity: Count,
    #[serde(borrow)]
    category: Cow<'a, str>,
    x: Option<Hundredths>,
    y: Option<Hundredths>,
    width: Option<Hundredths>,
    height: Option<Hundredths>,
}

impl AreaEntry<'_> {
    fn frame(&self) -> Result<Option<Frame>, Invalid> {
        let (x, y, width, height) = match (self.x, self.y, self.width, self.height) {
            (Some(x), Some(y), Some(width), Some(height)) => (x.0, y.0, width.0, height.0),
            (None, None, None, None) => return Ok(None),
            _ => {
                let text = "`x`, `y`, `width` and `height` stand together or not at all";
                return Err(Invalid::new("chart.area", text.to_owned()));
            }
        };
        if width <= 0 || height <= 0 {
            let text = "`width` and `height` are more than 0";
            return Err(Invalid::new("chart.area", text.to_owned()));
        }
        Ok(Some(Frame {
            at: Position { x, y },
            width,
            height,
        }))
    }
}

pub(super) fn add(
    builder: &mut ChartBuilder,
    areas: &[Object<AreaEntry<'_>>],
) -> Result<(), Invalid> {
    for (index, Object(entry)) in areas.iter().enumerate() {
        let add = |builder: &mut ChartBuilder| {
            builder.area(&AreaSpec {
                id: &entry.area,
                label: entry.label.as_deref(),
                category: &entry.category,
                capacity: entry.capacity.0,
                frame: entry.frame()?,
            })
        };
        add(builder).map_err(|error| at(format_args!("chart.areas[{index}]"), error))?;
    }
    Ok(())
}
