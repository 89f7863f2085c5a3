//! `/problems/<code-with-dashes>`: what a problem means, for people.

use axum::body::Body;

use super::api_request::ApiRequest;
use super::kinds::{self, Kind};
use super::operation::{Tag, get};
use super::problem::{Handled, Problem};
use super::response;
use super::route::Admission::Anyone;
use super::table::Table;

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::System);
    table.add(
        get("/problems/{code}", Anyone)
            .id("problem")
            .summary("What a problem means")
            .sends("text/html", "The page"),
        page,
    );
}

async fn page(req: ApiRequest) -> Handled {
    let kind = kinds::by_page(&req.segment(1)).ok_or_else(|| Problem::new(&kinds::NOT_FOUND))?;
    Ok(response::html(Body::from(write(kind))))
}

fn write(kind: &Kind) -> String {
    let Kind {
        code,
        status,
        title,
        happened,
        fix,
        ..
    } = kind;
    let (happened, fix) = (marked_up(happened), marked_up(fix));
    format!(
        r#"<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{title} - Soldonce</title>
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/assets/css/theme.css">
    <link rel="stylesheet" href="/assets/css/base.css">
    <link rel="stylesheet" href="/assets/css/pages.css">
  </head>
  <body>
    <header class="top"><a class="brand" href="/"><span class="mark" aria-hidden="true"></span><span>Soldonce</span></a></header>
    <main class="failure">
      <h1>{title}</h1>
      <p><code>{code}</code>, status {status}</p>
      <h2>What happened</h2>
      <p>{happened}</p>
      <h2>What to do</h2>
      <p>{fix}</p>
      <p><a href="/docs">All routes and problems</a></p>
    </main>
  </body>
</html>
"#,
        status = status.as_u16(),
    )
}

/// Writes the table's `code` marks as elements. The table is ours, so nothing in it needs escaping
/// but what is between angle brackets.
fn marked_up(text: &str) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let marked = |(at, part): (usize, &str)| match at % 2 {
        0 => part.to_owned(),
        _ => format!("<code>{part}</code>"),
    };
    escaped.split('`').enumerate().map(marked).collect()
}
