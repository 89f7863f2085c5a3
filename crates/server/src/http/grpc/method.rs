//! A method: the operation of the same name, asked by a call.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::Full;
use prost_reflect::MethodDescriptor;
use tonic::Status;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::metadata::MetadataMap;
use tonic::server::Grpc;
use tower::service_fn;

use super::codec::{self, Raw};
use super::shape::Shape;
use super::{feed, message, pool, refused, status};
use crate::http::api_request::read_body;
use crate::http::app::App;
use crate::http::endpoint::Endpoint;
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::http::response::JSON;
use crate::http::route::{BodySize, Route, Verb};
use crate::limits::CODED_BYTES_MIN;

const PACKAGE: &str = "soldonce.v1";

pub(in crate::http) struct Method {
    route: Route,
    /// Whether the operation takes a body.
    takes_body: bool,
    input: Shape,
    output: Arc<Shape>,
    descriptor: MethodDescriptor,
    pub(super) endpoint: Endpoint,
}

impl Method {
    /// Returns the method of an operation, if `proto/` has one.
    pub(in crate::http) fn of(operation: &Operation, endpoint: Endpoint) -> Option<Self> {
        let (service, id) = match operation.id.strip_suffix("_lease") {
            Some(id) => ("Leases", id),
            None => ("Sales", operation.id),
        };
        let service = pool().get_service_by_name(&format!("{PACKAGE}.{service}"))?;
        let name = name_of(id);
        let descriptor = service.methods().find(|method| method.name() == name)?;
        Some(Self {
            route: operation.route,
            takes_body: operation.body.is_some(),
            input: Shape::of(&descriptor.input())?,
            output: Arc::new(Shape::of(&descriptor.output())?),
            descriptor,
            endpoint,
        })
    }

    /// Returns the path at which it is called.
    pub(in crate::http) fn path(&self) -> String {
        let service = self.descriptor.parent_service();
        format!("/{}/{}", service.full_name(), self.descriptor.name())
    }

    pub(super) async fn answer(self: Arc<Self>, app: Arc<App>, request: Request) -> Response {
        let (parts, mut body) = request.into_parts();
        let mut size = self.route.body;
        // A caller that will be refused need not send more.
        if size != BodySize::Usual && app.admit(self.route, &parts).is_err() {
            size = BodySize::Usual;
        }
        let framed = match read_body(&app, &mut body, size).await {
            Ok(framed) => framed,
            Err(problem) => {
                let request = Request::from_parts(parts, Body::empty());
                let answer = self
                    .endpoint
                    .serve(app, request, Some(problem), status::refused);
                return refused(answer.await);
            }
        };
        if self.is_command()
            && let Some(message) = codec::plain_message(&parts.headers, &framed)
        {
            let metadata = MetadataMap::from_headers(parts.headers);
            let call = tonic::Request::from_parts(metadata, parts.extensions, message);
            let answer = self.call(app, call).await;
            return answer.map_or_else(codec::refusal, codec::answer);
        }
        let request = Request::from_parts(parts, Full::new(framed));
        let mut grpc = Grpc::new(Raw)
            .accept_compressed(Gzip)
            .max_decoding_message_size(size.bytes_max());
        if !self.is_command() {
            grpc = grpc.send_compressed(Gzip);
        }
        let response = if self.descriptor.is_server_streaming() {
            let call = move |call| Arc::clone(&self).stream(Arc::clone(&app), call);
            grpc.server_streaming(service_fn(call), request).await
        } else {
            let call = move |call| Arc::clone(&self).call(Arc::clone(&app), call);
            grpc.unary(service_fn(call), request).await
        };
        response.into_response()
    }

    /// Tells whether its answers may carry secrets: coded, their length would tell of them.
    fn is_command(&self) -> bool {
        self.route.verb != Verb::Get
    }

    async fn call(
        self: Arc<Self>,
        app: Arc<App>,
        call: tonic::Request<Bytes>,
    ) -> Result<tonic::Response<Bytes>, Status> {
        let (parts, body) = self.ask(app, call).await?.into_parts();
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| Status::internal(error.to_string()))?;
        let written = message::written(&self.output, &body)?;
        let is_small = u64::try_from(written.len()).is_ok_and(|bytes| bytes < CODED_BYTES_MIN);
        let mut answer = tonic::Response::new(written);
        *answer.metadata_mut() = status::metadata(&parts.headers);
        if is_small && !self.is_command() {
            answer.disable_compression();
        }
        Ok(answer)
    }

    async fn stream(
        self: Arc<Self>,
        app: Arc<App>,
        call: tonic::Request<Bytes>,
    ) -> Result<tonic::Response<BoxStream<'static, Result<Bytes, Status>>>, Status> {
        let shutdown = app.shutdown.clone();
        let (parts, body) = self.ask(app, call).await?.into_parts();
        let messages = feed::messages(Arc::clone(&self.output), body, shutdown);
        let mut answer = tonic::Response::new(messages);
        *answer.metadata_mut() = status::metadata(&parts.headers);
        Ok(answer)
    }

    /// Returns the address and the body of the request that a call stands for.
    fn read(&self, sent: &[u8]) -> Result<(Uri, Bytes), Problem> {
        let (address, fields) = message::request(self.route, &self.input, sent)?;
        if self.takes_body {
            return Ok((address, message::body(&self.input, fields)?));
        }
        Ok((address, Bytes::new()))
    }

    /// Returns what the operation answers, if it is no refusal.
    async fn ask(&self, app: Arc<App>, call: tonic::Request<Bytes>) -> Result<Response, Status> {
        let (metadata, extensions, sent) = call.into_parts();
        let (uri, body, refusal) = match self.read(&sent) {
            Ok((uri, body)) => (uri, body, None),
            Err(problem) => (Uri::default(), Bytes::new(), Some(problem)),
        };
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = self.route.verb.method();
        *request.uri_mut() = uri;
        *request.extensions_mut() = extensions;
        let mut headers = metadata.into_headers();
        // What would have the operation answer in another form, or are of the call alone.
        for name in [
            header::ACCEPT_ENCODING,
            header::CONTENT_LENGTH,
            header::CONTENT_ENCODING,
            header::IF_NONE_MATCH,
        ] {
            headers.remove(name);
        }
        headers.insert(header::CONTENT_TYPE, JSON);
        *request.headers_mut() = headers;
        let serving = self.endpoint.serve(app, request, refusal, status::refused);
        let response = serving.await;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(status::of(response))
        }
    }
}

/// Returns a method's name: the operation's, as gRPC writes names. What reads is `Get`, a feed is watched.
fn name_of(id: &str) -> String {
    if id == "read_feed" {
        return "WatchFeed".to_owned();
    }
    let (verb, rest) = match id.strip_prefix("read_") {
        Some(rest) => ("Get", rest),
        None => ("", id),
    };
    let words = rest.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_ascii_uppercase() + rest
    });
    words.fold(verb.to_owned(), |name, word| name + &word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_as_operations_are() {
        for (id, name) in [
            ("hold", "Hold"),
            ("read_hold", "GetHold"),
            ("read_feed", "WatchFeed"),
            ("list_holds_of_event", "ListHoldsOfEvent"),
        ] {
            assert_eq!(name_of(id), name);
        }
    }
}
