//! Metrics in the text format of Prometheus 0.0.4, made of the `OpenMetrics` text that the registry
//! writes. The samples are the same; counters are named in full, and comments differ.

use axum::http::{HeaderMap, header};

use super::headers::listed;

/// Tells whether the caller asks for `OpenMetrics`.
pub(super) fn is_open_metrics_asked(headers: &HeaderMap) -> bool {
    listed(headers, header::ACCEPT).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        media.eq_ignore_ascii_case("application/openmetrics-text") && !is_refused
    })
}

/// Writes the same metrics in the classic format.
pub(super) fn of(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            // The name that it needs is known with the type, which follows.
            help = about.split_once(' ').map(|(_, about)| about);
        } else if let Some((name, kind)) = type_of(line) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some(help) = help.take() {
                push(&mut text, &["# HELP ", name, suffix, " ", help]);
            }
            push(&mut text, &["# TYPE ", name, suffix, " ", kind]);
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            push(&mut text, &[line]);
        }
    }
    text
}

fn type_of(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

fn push(text: &mut String, parts: &[&str]) {
    text.extend(parts.iter().copied());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_in_full_and_samples_stay() {
        let open = "# HELP a_b Things.\n# TYPE a_b counter\na_b_total{c=\"d\"} 1\n\
                    # HELP s Time.\n# TYPE s histogram\n# UNIT s seconds\ns_sum 0.5\ns_count 1\n# EOF\n";
        let classic = "# HELP a_b_total Things.\n# TYPE a_b_total counter\na_b_total{c=\"d\"} 1\n\
                       # HELP s Time.\n# TYPE s histogram\ns_sum 0.5\ns_count 1\n";
        assert_eq!(of(open), classic);
    }

    #[test]
    fn open_metrics_comes_when_it_is_asked_for() {
        let cases = [
            ("*/*", false),
            ("text/plain;version=0.0.4", false),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2",
                true,
            ),
            ("application/openmetrics-text;q=0", false),
        ];
        for (accepted, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accepted.parse().unwrap());
            assert_eq!(is_open_metrics_asked(&headers), expected, "{accepted}");
        }
    }
}
