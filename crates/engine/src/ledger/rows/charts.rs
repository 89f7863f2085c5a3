//! Charts as they are stored: the document as sent, and a digest that proves it is read as before.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use soldonce_core::{Chart, UnitNo};

use super::Damaged;

const TABLE: &str = "charts";

/// Returns the document to store for a chart: `given`, or else one written from `chart`.
pub(crate) fn document<'a>(
    given: Option<&'a [u8]>,
    chart: &Chart,
) -> Result<Cow<'a, [u8]>, Damaged> {
    if let Some(given) = given {
        return Ok(given.into());
    }
    let written = serde_json::to_vec(&crate::chart::write(chart));
    let written = written.map_err(|error| Damaged::new(TABLE, error.to_string()))?;
    Ok(written.into())
}

pub(crate) fn sha256(document: &[u8]) -> [u8; 32] {
    Sha256::digest(document).into()
}

/// Computes the SHA-256 of all that gives units numbers and prices: names and categories, in order.
pub(crate) fn digest(chart: &Chart) -> [u8; 32] {
    let mut sha = Sha256::new();
    let mut bytes = Vec::with_capacity(1 << 16);
    let put = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    for category in chart.categories() {
        put(&mut bytes, category);
    }
    for seat in (0..chart.seats()).map(UnitNo) {
        match chart.unit_name(seat) {
            soldonce_core::UnitName::Seat(id) => put(&mut bytes, id),
            soldonce_core::UnitName::Place { .. } => put(&mut bytes, ""),
        }
        bytes.extend(chart.category_of(seat).0.to_be_bytes());
        if bytes.len() >= 1 << 15 {
            sha.update(&bytes);
            bytes.clear();
        }
    }
    for area in chart.areas() {
        put(&mut bytes, area.id.as_str());
        bytes.extend(area.category.0.to_be_bytes());
        bytes.extend(area.first.0.to_be_bytes());
        bytes.extend(area.capacity.to_be_bytes());
    }
    sha.update(&bytes);
    sha.finalize().into()
}

/// Parses a stored document; fails unless `units` and the digest `known` are as when it was stored.
pub(crate) fn read_again(
    chart_no: i64,
    document: &[u8],
    units: u32,
    known: [u8; 32],
) -> Result<Chart, Damaged> {
    let chart = crate::chart::read(document)
        .map_err(|error| Damaged::new(TABLE, format!("chart {chart_no} is unreadable: {error}")))?
        .chart;
    if chart.units() == units && digest(&chart) == known {
        return Ok(chart);
    }
    let what = format!(
        "chart {chart_no} is numbered in another way by this version of soldonce: start the \
         version that wrote it"
    );
    Err(Damaged::new(TABLE, what))
}
