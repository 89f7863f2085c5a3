//! The seat map page and the page of the API description, from inside the binary.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use rust_embed::Embed;

use super::asked::Asked;
use super::kinds;
use super::problem::{Handled, Problem};

#[derive(Embed)]
#[folder = "web/"]
struct Web;

#[derive(Embed)]
#[folder = "web-docs/"]
struct WebDocs;

/// The page may run and show what this server sends, and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

/// Every file by its path below its folder.
#[derive(Debug)]
pub(super) struct Pages {
    map: Folder,
    docs: Folder,
}

type Folder = BTreeMap<String, Page>;

#[derive(Debug)]
struct Page {
    bytes: Bytes,
    media: HeaderValue,
    etag: HeaderValue,
}

impl Pages {
    pub(super) fn load() -> Self {
        Self {
            map: folder::<Web>(),
            docs: folder::<WebDocs>(),
        }
    }
}

fn folder<E: Embed>() -> Folder {
    let files = E::iter().filter_map(|path| {
        let file = E::get(&path)?;
        let hash = file.metadata.sha256_hash();
        let half = hash.iter().take(16);
        let bits = half.fold(0, |bits, byte| (bits << 8) | u128::from(*byte));
        let etag = format!("\"{}\"", soldonce_core::encode_128(bits));
        let page = Page {
            bytes: Bytes::from(file.data.into_owned()),
            media: media_of(&path)?,
            etag: HeaderValue::try_from(etag).ok()?,
        };
        Some((path.into_owned(), page))
    });
    files.collect()
}

/// The media types of files that are served; others are not.
fn media_of(path: &str) -> Option<HeaderValue> {
    let (_, extension) = path.rsplit_once('.')?;
    let media = match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "json" => "application/json",
        _ => return None,
    };
    Some(HeaderValue::from_static(media))
}

/// `GET /`
pub(super) async fn index(asked: Asked) -> Handled {
    serve(&asked, asked.app.pages.map.get("index.html"))
}

/// `GET /assets/{*path}`
pub(super) async fn asset(asked: Asked) -> Handled {
    let path = asked.parts.uri.path().strip_prefix("/assets/");
    serve(&asked, asked.app.pages.map.get(path.unwrap_or_default()))
}

/// `GET /docs`
pub(super) async fn docs(asked: Asked) -> Handled {
    serve(&asked, asked.app.pages.docs.get("docs.html"))
}

/// `GET /docs/{*path}`
pub(super) async fn docs_part(asked: Asked) -> Handled {
    let path = asked.parts.uri.path().strip_prefix("/docs/");
    serve(&asked, asked.app.pages.docs.get(path.unwrap_or_default()))
}

fn serve(asked: &Asked, page: Option<&Page>) -> Handled {
    let page = page.ok_or_else(|| Problem::new(&kinds::NOT_FOUND))?;
    let known = asked.parts.headers.get(header::IF_NONE_MATCH);
    let unchanged = known == Some(&page.etag);
    let body = if unchanged {
        Bytes::new()
    } else {
        page.bytes.clone()
    };
    let mut response = html(Body::from(body));
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, page.media.clone());
    headers.insert(header::ETAG, page.etag.clone());
    headers.insert(header::CACHE_CONTROL, REVALIDATED);
    Ok(response)
}

/// A page for people, with the headers that keep everything else out of it.
pub(super) fn html(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let media = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, media);
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, NO_REFERRER);
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    response
}
