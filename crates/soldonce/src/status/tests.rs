use serde_json::json;

use super::*;

/// Makes up a look at a server that has sold so much by now, or that is silent.
fn seen(server: &str, sold: Option<u32>) -> Look {
    let scrape = sold.map(|sold| {
        Scrape::read(&format!(
            "soldonce_units_sold_total {sold}\nsoldonce_connections 3\n"
        ))
    });
    let silent = || State::Unreachable("no answer".to_owned());
    Look {
        server: server.to_owned(),
        state: sold.map_or_else(silent, |_| State::Ready),
        scrape,
    }
}

/// Gives the cells of one column, from top to bottom; an empty one where a row has none.
fn column(at: usize, reports: &[Report]) -> Vec<String> {
    let cell = |report: &Report| {
        report
            .figures
            .as_ref()
            .map(|figures| cells(figures)[at].clone())
    };
    reports
        .iter()
        .map(|report| cell(report).unwrap_or_default())
        .collect()
}

#[test]
fn a_server_that_was_silent_in_a_look_has_no_rates_and_none_in_the_sum() {
    let both = [seen("a", Some(100)), seen("b", Some(1_000))];
    let one = [seen("a", Some(120)), seen("b", None)];
    let again = [seen("a", Some(140)), seen("b", Some(1_030))];
    let anew = [seen("a", Some(8)), seen("b", Some(1_050))];
    let none = [seen("a", None), seen("b", None)];
    for (before, after, sold, connections) in [
        (&both[..], &again, ["20", "15", "35"], ["3", "3", "6"]),
        (&both, &one, ["10", "", "10"], ["3", "", "3"]),
        (&one, &again, ["10", "", "10"], ["3", "3", "6"]),
        (&none, &again, ["", "", ""], ["3", "3", "6"]),
        (&again, &none, ["", "", ""], ["", "", ""]),
        // One that began anew is counted from its start, in the sum too.
        (&again, &anew, ["4", "10", "14"], ["3", "3", "6"]),
        // Without looks before it is all they did, divided by two.
        (&[], &again, ["70", "515", "585"], ["3", "3", "6"]),
    ] {
        let reports = reports(before, after, 2.0);
        assert_eq!(column(0, &reports), sold, "{reports:?}");
        assert_eq!(column(8, &reports), connections, "{reports:?}");
    }
}

#[test]
fn all_are_in_the_worst_state_of_one() {
    let refusing = Look {
        state: State::Refusing("read_only".to_owned()),
        ..seen("a", Some(1))
    };
    let looks = [seen("b", Some(1)), refusing, seen("c", None)];
    assert_eq!(worst(&looks), looks[2].state);
    assert_eq!(worst(&looks[..2]), looks[1].state);
    assert_eq!(worst(&looks[..1]), State::Ready);
}

#[test]
fn counts_are_whole_numbers_and_times_have_three_digits() {
    let mut told = json!([{"sold": 100.0, "hold_ms": {"p50": 0.0, "p99": 1.989_96}}]);
    round(&mut told);
    let expected = json!([{"sold": 100, "hold_ms": {"p50": 0, "p99": 1.99}}]);
    assert_eq!(told.to_string(), expected.to_string());
}

#[test]
fn why_a_server_is_not_reached_stands_below_the_table() {
    let shown = table(&reports(&[], &[seen("a", Some(1)), seen("b", None)], 1.0));
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines[2].ends_with("unreachable"), "{shown}");
    assert!(lines[3].starts_with("all"), "{shown}");
    assert_eq!(lines[4..], ["b: no answer"], "{shown}");
}
