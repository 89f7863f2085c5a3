//! Counts of a chart, for people who check a plan before they use it.

use serde::Serialize;
use soldonce_core::{CategoryNo, Chart, UnitNo};

use super::ReadChart;

/// The output of `soldonce chart check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartSummary {
    pub name: String,
    pub zones: usize,
    pub rows: usize,
    pub seats: u32,
    /// How many units: seats and places of areas.
    pub units: u32,
    pub positions: bool,
    pub areas: Vec<AreaSummary>,
    pub categories: Vec<CategorySummary>,
    /// What the reader changed or left out.
    pub notes: Vec<String>,
}

/// One area of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AreaSummary {
    pub area: String,
    pub capacity: u32,
    pub category: String,
}

/// One price class of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategorySummary {
    pub category: String,
    /// How many seats are of it.
    pub seats: u32,
    /// How many places of areas are of it.
    pub places: u32,
}

/// Counts what a chart holds.
pub fn summary(read: &ReadChart) -> ChartSummary {
    let chart = &read.chart;
    ChartSummary {
        name: chart.name().to_owned(),
        zones: chart.zones().len(),
        rows: chart.rows().len(),
        seats: chart.seats(),
        units: chart.units(),
        positions: chart.position(UnitNo(0)).is_some(),
        areas: areas(chart),
        categories: categories(chart),
        notes: read.notes.clone(),
    }
}

fn areas(chart: &Chart) -> Vec<AreaSummary> {
    let name = |category: CategoryNo| chart.categories().get(category.index()).cloned();
    let areas = chart.areas().iter().map(|area| AreaSummary {
        area: area.id.to_string(),
        capacity: area.capacity,
        category: name(area.category).unwrap_or_default(),
    });
    areas.collect()
}

fn categories(chart: &Chart) -> Vec<CategorySummary> {
    let mut categories: Vec<CategorySummary> = chart
        .categories()
        .iter()
        .map(|name| CategorySummary {
            category: name.clone(),
            seats: 0,
            places: 0,
        })
        .collect();
    for unit in (0..chart.seats()).map(UnitNo) {
        if let Some(category) = categories.get_mut(chart.category_of(unit).index()) {
            category.seats = category.seats.saturating_add(1);
        }
    }
    for area in chart.areas() {
        if let Some(category) = categories.get_mut(area.category.index()) {
            category.places = category.places.saturating_add(area.capacity);
        }
    }
    categories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_seats_and_places() {
        let json = br#"{"format":"seats",
            "seats":[{"seat":"A-1","category":"Gold"},{"seat":"A-2","category":"Blue"},
                     {"seat":"B-1","category":"Blue"}],
            "areas":[{"area":"floor","capacity":40,"category":"Blue"}]}"#;
        let summary = summary(&super::super::read(json).unwrap());
        let json = serde_json::to_value(&summary).unwrap();
        let expected = serde_json::json!({
            "name": "", "zones": 1, "rows": 2, "seats": 3, "units": 43, "positions": false,
            "areas": [{"area": "floor", "capacity": 40, "category": "Blue"}],
            "categories": [{"category": "Gold", "seats": 1, "places": 0},
                           {"category": "Blue", "seats": 2, "places": 40}],
            "notes": [],
        });
        assert_eq!(json, expected);
    }
}
