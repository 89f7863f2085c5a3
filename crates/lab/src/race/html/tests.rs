//! The page is well-formed, requests nothing, and has the figures of the report.

use std::collections::BTreeMap;

use super::super::judge::{Judged, Promise};
use super::super::plan::Shape;
use super::super::tally::Figures;
use super::super::textbook::{Guards, Scene};
use super::*;
use crate::kit::Machine;

fn cell(buyers: u32, shape: Shape, double_sales: u64) -> CellReport {
    let seats = match shape {
        Shape::Same => 1,
        Shape::Crossed => 3,
    };
    CellReport {
        seats,
        shape,
        shape_name: format!("{seats} seats <{shape:?}>"),
        buyers,
        rounds: 10,
        figures: Figures {
            requests: u64::from(buyers) * 10,
            winners: 10,
            refused: BTreeMap::from([("unit_unavailable".to_owned(), 40)]),
            errors: BTreeMap::from([("deadlock 40P01".to_owned(), 1_234)]),
            p50_us: 1_200,
            p99_us: 24_000,
            max_us: 25_000,
            answers_per_s: 1_000 * u64::from(buyers),
        },
        judged: Judged {
            double_sales,
            ..Judged::default()
        },
    }
}

fn report() -> RaceReport {
    let strategy = |name, promise, double_sales| StrategyReport {
        name,
        promise,
        mechanism: "A & B.",
        why: "Because 1 < 2.",
        statements: &["BEGIN", "-- lock\nSELECT 1", "-- lock\nSELECT 1", "COMMIT"],
        double_sales: 4 * double_sales,
        cells: [Shape::Same, Shape::Crossed]
            .into_iter()
            .flat_map(|shape| [5, 200].map(|buyers| cell(buyers, shape, double_sales)))
            .collect(),
    };
    RaceReport {
        command: "soldonce lab race --strategies all".to_owned(),
        version: "0.1.0",
        machine: Machine {
            processor: "a \"fast\" one".to_owned(),
            cores: 2,
            system: "Linux".to_owned(),
            load_average: "0.10".to_owned(),
        },
        servers: vec!["PostgreSQL 15".to_owned()],
        strategies: vec![
            strategy("naive", Promise::Broken, 3_000),
            strategy("unsorted", Promise::SoldOnce, 0),
            strategy("pessimistic", Promise::SoldOnce, 0),
            strategy("queue", Promise::SoldOnce, 0),
        ],
        stopped: vec![Scene {
            strategy: "pessimistic",
            guards: Guards::None,
            sold_twice: true,
            refused: None,
        }],
        faults: Vec::new(),
    }
}

/// Finds the first thing that is not well-formed: a tag without its end, a bare `<` or `&`.
fn flaw(page: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>")?;
    while let Some(at) = rest.find(['<', '&']) {
        let tail = &rest[at..];
        if let Some(entity) = tail.strip_prefix('&') {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            if !known.iter().any(|known| entity.starts_with(known)) {
                return Some(tail.chars().take(30).collect());
            }
            rest = entity;
            continue;
        }
        let Some(end) = tail.find('>') else {
            return Some("a tag without end".to_owned());
        };
        let tag = &tail[1..end];
        let name = tag.trim_start_matches('/').split(' ').next()?;
        if name.is_empty() || tag.matches('"').count() % 2 != 0 {
            return Some(tag.to_owned());
        }
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes another"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &tail[end + 1..];
    }
    open.pop().map(|name| format!("<{name}> stays open"))
}

#[test]
fn the_page_is_well_formed_and_requests_nothing() {
    let page = page(&report());
    assert_eq!(flaw(&page), None);
    for word in ["http", "url(", "@import", "<script", "src=", "href="] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn a_page_that_is_not_well_formed_is_caught() {
    let broken = |text: &str| flaw(&format!("<!DOCTYPE html><p>{text}</p>")).is_some();
    assert!(!broken("a &lt; b<br />"));
    for text in ["a < b", "a & b", "<b>a", "a</i>", "<a b=\"c>d</a>"] {
        assert!(broken(text), "{text}");
    }
}

#[test]
fn the_page_has_the_figures_of_the_report() {
    let page = page(&report());
    let texts = [
        "<h1>200 buyers want the same seat</h1>",
        "<strong>12,000</strong><span>double sales by <em>naive</em>, in 4,100 requests</span>",
        "<strong>0</strong><span>double sales by the 3 that should sell once, in 12,300 requests</span>",
        "<strong>4,936</strong><span>deadlocks",
        "<strong>1.0×</strong>",
        "3 seats &lt;Crossed&gt;",
        "2 times, seat by seat",
        "a &quot;fast&quot; one",
        "Because 1 &lt; 2.",
        "queue, 200 buyers: 200,000",
    ];
    for text in texts {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(page.matches("<svg").count(), 1 + 2 * 2);
    let badges = |text: &str| page.matches(text).count();
    assert_eq!(badges("badge good\">sold nothing twice"), 2);
    assert_eq!(
        badges("badge bad\">sold twice once its holder was stopped"),
        1
    );
}

#[test]
fn faults_are_at_the_top() {
    let mut report = report();
    report.faults = vec!["queue, 1 seat: 1 units were sold twice".to_owned()];
    let page = page(&report);
    assert_eq!(flaw(&page), None);
    assert!(page.contains("<li>queue, 1 seat: 1 units were sold twice</li>"));
    assert!(!page.contains("the auditor agrees"));
}

#[test]
fn times_are_written_in_their_units() {
    let times = [100, 1_000, 4_440, 9_960, 24_400, 5_046_000].map(time);
    assert_eq!(times, ["100 µs", "1 ms", "4.4 ms", "10 ms", "24 ms", "5 s"]);
}
