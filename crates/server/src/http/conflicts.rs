//! Why units cannot be had, and what could be had instead, as JSON. Written byte by byte: on a hot
//! seat this is most of the work of an answer. Ids have nothing that JSON escapes.

use soldonce_core::{Alternative, Chart, Conflict, Unavailable, UnitName, UnitNo};

/// Writes the members that a `unit_unavailable` adds to its problem, each after a comma.
pub(super) fn write(to: &mut Vec<u8>, chart: &Chart, refusal: &Unavailable) {
    push(to, ",\"conflicts\":[");
    separated(to, &refusal.conflicts, |to, conflict| {
        write_conflict(to, chart, conflict);
    });
    push(to, "],\"alternatives\":[");
    separated(to, &refusal.alternatives, |to, choice| {
        write_alternative(to, chart, choice);
    });
    push(to, "],\"seq\":");
    push_number(to, refusal.seq.0);
}

/// Writes a list of units by their public names.
pub(super) fn write_units(to: &mut Vec<u8>, chart: &Chart, units: &[UnitNo]) {
    push(to, "[");
    separated(to, units, |to, unit| {
        push(to, "{");
        push_name(to, chart, *unit);
        push(to, "}");
    });
    push(to, "]");
}

fn write_conflict(to: &mut Vec<u8>, chart: &Chart, conflict: &Conflict) {
    push(to, "{");
    match conflict {
        Conflict::Seat {
            unit,
            state,
            retry_after,
        } => {
            push_name(to, chart, *unit);
            push(to, ",\"state\":\"");
            push(to, state.as_str());
            push(to, "\"");
            if let Some(span) = retry_after {
                push(to, ",\"retry_after_ms\":");
                push_number(to, span.ms());
            }
        }
        Conflict::Area { area, free } => {
            push(to, "\"area\":\"");
            push(to, chart.area(*area).map_or("", |area| area.id.as_str()));
            push(to, "\",\"state\":\"full\",\"free\":");
            push_number(to, u64::from(*free));
        }
    }
    push(to, "}");
}

fn write_alternative(to: &mut Vec<u8>, chart: &Chart, choice: &Alternative) {
    push(to, "{\"units\":");
    write_units(to, chart, &choice.units);
    push(to, ",\"together\":");
    push(to, if choice.together { "true}" } else { "false}" });
}

/// Writes `"seat":"A-1"`, or `"area":"floor","place":"floor.17"`.
fn push_name(to: &mut Vec<u8>, chart: &Chart, unit: UnitNo) {
    match chart.unit_name(unit) {
        UnitName::Seat(seat) => {
            push(to, "\"seat\":\"");
            push(to, seat);
        }
        UnitName::Place { area, number } => {
            push(to, "\"area\":\"");
            push(to, area.id.as_str());
            push(to, "\",\"place\":\"");
            push(to, area.id.as_str());
            push(to, ".");
            push_number(to, u64::from(number));
        }
    }
    push(to, "\"");
}

fn separated<T>(to: &mut Vec<u8>, values: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            push(to, ",");
        }
        write(to, value);
    }
}

fn push(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
}

fn push_number(to: &mut Vec<u8>, number: u64) {
    push(to, itoa::Buffer::new().format(number));
}
