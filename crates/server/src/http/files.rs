//! The files of the seat map page and of the page of the API description, from inside the binary.

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use bytes::Bytes;
use rust_embed::Embed;

use super::bundle::{Plan, bundle};
use super::coding::{Coded, Coding};
use crate::limits::FILE_MAX_AGE_S;
use crate::settings::PageFeed;

#[derive(Embed)]
#[folder = "web/"]
struct Web;

#[derive(Embed)]
#[folder = "web-docs/"]
struct WebDocs;

/// The description of the API, which a test compares with the routes.
const DESCRIPTION: &str = include_str!("../../openapi.json");
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");
/// Modules needed before the first paint, and what they import; every other one is gathered.
const APART: &[&str] = &["theme.js", "dom.js", "storage.js"];
const ALL_MODULES: &str = "js/all.js";
const ALL_SHEETS: &str = "css/all.css";
/// How the first page names a sheet.
const SHEET: &str = "<link rel=\"stylesheet\" href=\"/assets/";
const UNKEPT: HeaderValue = HeaderValue::from_static("no-store");

/// Every file by its path below its folder.
#[derive(Debug)]
pub(super) struct Files {
    map: Folder,
    docs: Folder,
    description: File,
    /// Names the files of this build. Under it a path never changes its bytes, so that a browser asks
    /// for each file once, and modules find each other by relative paths.
    build: String,
    /// `Cache-Control` of the files under the build's name, which never change.
    forever: HeaderValue,
}

type Folder = BTreeMap<String, File>;

#[derive(Debug)]
pub(super) struct File {
    pub(super) coded: Coded,
    pub(super) media: HeaderValue,
    pub(super) etag: HeaderValue,
}

impl Files {
    pub(super) fn load(feed: PageFeed) -> Self {
        let (mut map, files) = folder::<Web>();
        let gathered = gathered(&map);
        let described = build(0, &[("", DESCRIPTION.to_owned())]);
        let build = build(files, &gathered);
        if let Some(index) = map.get_mut("index.html") {
            let text = index.coded.bytes(Coding::Identity);
            let (text, form) = following(&text, feed);
            index.coded = Coded::new(of_build(&text, &build));
            index.etag = etag(&format!("{build}{form}"));
        }
        for (path, text) in gathered {
            if let Some(media) = media_of(path) {
                let (coded, etag) = (Coded::new(text.into()), etag(&build));
                map.insert(path.to_owned(), File { coded, media, etag });
            }
        }
        let forever = format!("public, max-age={FILE_MAX_AGE_S}, immutable");
        Self {
            map,
            docs: folder::<WebDocs>().0,
            description: File {
                coded: Coded::new(DESCRIPTION.into()),
                media: HeaderValue::from_static("application/json"),
                etag: etag(&described),
            },
            build,
            forever: HeaderValue::try_from(forever).unwrap_or(REVALIDATED),
        }
    }

    /// Returns a file of the seat map page, and how long it may be kept.
    pub(super) fn of_map(&self, path: &str) -> (Option<&File>, HeaderValue) {
        if let Some(file) = self.map.get(path) {
            return (Some(file), REVALIDATED);
        }
        match path.split_once('/') {
            Some((build, path)) if build == self.build => {
                (self.map.get(path), self.forever.clone())
            }
            // Of another server's build, while servers are replaced one by one.
            Some((_, path)) => (self.map.get(path), UNKEPT),
            None => (None, UNKEPT),
        }
    }

    /// Returns a file of the page of the API description.
    pub(super) fn of_docs(&self, path: &str) -> (Option<&File>, HeaderValue) {
        (self.docs.get(path), REVALIDATED)
    }

    /// Returns the API description.
    pub(super) fn description(&self) -> (Option<&File>, HeaderValue) {
        (Some(&self.description), REVALIDATED)
    }
}

/// Builds files for a page that loads fast over a slow network: one module and one sheet, each in
/// place of dozens. A browser opens six connections to a server, and each file costs a round trip.
fn gathered(map: &Folder) -> Vec<(&'static str, String)> {
    let text =
        |page: &File| String::from_utf8_lossy(&page.coded.bytes(Coding::Identity)).into_owned();
    let modules = map
        .iter()
        .filter_map(|(path, page)| Some((path.strip_prefix("js/")?.to_owned(), text(page))));
    let modules = modules.collect();
    let plan = Plan {
        modules: &modules,
        apart: APART,
    };
    let index = map.get("index.html").map(&text).unwrap_or_default();
    let sheets = linked_sheets(&index).filter_map(|path| map.get(path).map(&text));
    let module = bundle(&plan, "main.js").unwrap_or_else(|| "import \"./main.js\";\n".to_owned());
    vec![
        (ALL_MODULES, module),
        (ALL_SHEETS, sheets.collect::<Vec<_>>().concat()),
    ]
}

/// Lists the style sheets of a page, in its order.
fn linked_sheets(index: &str) -> impl Iterator<Item = &str> {
    index
        .lines()
        .filter_map(|line| line.trim().strip_prefix(SHEET)?.strip_suffix("\" />"))
}

/// Returns the first page for this way to follow an event, and the suffix that sets its tag apart.
fn following(index: &[u8], feed: PageFeed) -> (Vec<u8>, &'static str) {
    match feed {
        PageFeed::Stream => (index.to_vec(), ""),
        PageFeed::Poll => {
            let text = String::from_utf8_lossy(index);
            let text = text.replacen("<html ", "<html data-feed=\"poll\" ", 1);
            (text.into(), ".poll")
        }
    }
}

/// Rewrites the first page: its files are those of this build, and the browser fetches the modules
/// that are apart at once in place of finding them one by one.
fn of_build(index: &[u8], build: &str) -> Bytes {
    let text = String::from_utf8_lossy(index);
    let is_sheet = |line: &&str| line.trim().starts_with(SHEET);
    let first = text.lines().find(is_sheet).unwrap_or_default();
    let sheet: &str = &format!("    {SHEET}{ALL_SHEETS}\" />");
    let kept = text
        .lines()
        .filter(|line| *line == first || !is_sheet(line))
        .map(|line| if is_sheet(&line) { sheet } else { line });
    let head = kept.collect::<Vec<_>>().join("\n");
    let text = head.replace("/assets/js/main.js", &format!("/assets/{ALL_MODULES}"));
    let text = text.replace("\"/assets/", &format!("\"/assets/{build}/"));
    let link = |name: &&str| {
        format!("    <link rel=\"modulepreload\" href=\"/assets/{build}/js/{name}\" />\n")
    };
    let links: String = APART.iter().map(link).collect();
    text.replacen("  </head>", &format!("{links}  </head>"), 1)
        .into()
}

/// Computes the name of a build, of its files and of what this program makes of them.
fn build(files: u128, gathered: &[(&str, String)]) -> String {
    let made: String = gathered.iter().map(|(_, text)| text.as_str()).collect();
    let made = soldonce_engine::fingerprint(made.as_bytes());
    soldonce_core::encode_128(files ^ first_half(made))
}

fn first_half(hash: [u8; 32]) -> u128 {
    u128::from_be_bytes(hash.first_chunk().copied().unwrap_or_default())
}

fn etag(build: &str) -> HeaderValue {
    HeaderValue::try_from(format!("W/\"{build}\"")).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// Reads the files of a folder, with a hash of all of them together.
fn folder<E: Embed>() -> (Folder, u128) {
    let mut build = 0_u128;
    let files = E::iter().filter_map(|path| {
        let file = E::get(&path)?;
        let bits = first_half(file.metadata.sha256_hash());
        build = build.rotate_left(5) ^ bits;
        let page = File {
            coded: Coded::new(Bytes::from(file.data.into_owned())),
            media: media_of(&path)?,
            etag: etag(&soldonce_core::encode_128(bits)),
        };
        Some((path.into_owned(), page))
    });
    let files = files.collect();
    (files, build)
}

/// Returns the media type by a path's extension; None for files that are not served.
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
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    };
    Some(HeaderValue::from_static(media))
}
