//! The seat map page and the page of the API description.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;

use super::api_request::ApiRequest;
use super::coding::Coding;
use super::conditional::is_known;
use super::files::File;
use super::kinds;
use super::operation::{Tag, get};
use super::problem::{Handled, Problem};
use super::response::html;
use super::route::Admission::Anyone;
use super::table::Table;

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::System);
    table.add(
        get("/", Anyone)
            .id("page")
            .summary("The live seat map")
            .sends("text/html", "The page")
            .or_unchanged(),
        |req| async move { serve(&req, req.app.files.of_map("index.html")) },
    );
    table.add(
        get("/assets/{*path}", Anyone)
            .id("page_part")
            .summary("Parts of the seat map page")
            .sends_file(),
        asset,
    );
    table.add(
        get("/docs", Anyone)
            .id("docs")
            .summary("This description, for people")
            .sends("text/html", "The page")
            .or_unchanged(),
        |req| async move { serve(&req, req.app.files.of_docs("docs.html")) },
    );
    table.add(
        get("/docs/", Anyone)
            .id("docs_with_slash")
            .summary("The same")
            .sends("text/html", "The page")
            .or_unchanged(),
        |req| async move { serve(&req, req.app.files.of_docs("docs.html")) },
    );
    table.add(
        get("/docs/{*path}", Anyone)
            .id("docs_part")
            .summary("Parts of that page")
            .sends_file(),
        docs_part,
    );
    table.add(
        get("/llms.txt", Anyone)
            .id("llms_txt")
            .summary("How to write a client, for programs that do")
            .sends("text/plain", "Markdown")
            .or_unchanged(),
        |req| async move { serve(&req, req.app.files.of_docs("llms.txt")) },
    );
}

async fn asset(req: ApiRequest) -> Handled {
    let path = req.parts.uri.path().strip_prefix("/assets/");
    serve(&req, req.app.files.of_map(path.unwrap_or_default()))
}

async fn docs_part(req: ApiRequest) -> Handled {
    let path = req.parts.uri.path().strip_prefix("/docs/");
    serve(&req, req.app.files.of_docs(path.unwrap_or_default()))
}

/// Sends a file in the coding that the client takes, or tells that it has it.
pub(super) fn serve(req: &ApiRequest, (file, cache): (Option<&File>, HeaderValue)) -> Handled {
    let file = file.ok_or_else(|| Problem::new(&kinds::NOT_FOUND))?;
    let (status, coding, body) = if is_known(&req.parts.headers, &file.etag) {
        (StatusCode::NOT_MODIFIED, Coding::Identity, Bytes::new())
    } else {
        let coding = Coding::accepted(&req.parts.headers);
        (StatusCode::OK, coding, file.coded.bytes(coding))
    };
    let mut response = html(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    coding.tell(headers);
    headers.insert(header::CONTENT_TYPE, file.media.clone());
    headers.insert(header::ETAG, file.etag.clone());
    headers.insert(header::CACHE_CONTROL, cache);
    Ok(response)
}
