//! A client that speaks HTTP/2 in raw frames (RFC 9113), so that it can do what no library does.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const ACK: u8 = 0x01;
pub(crate) const END_STREAM: u8 = 0x01;
pub(crate) const END_HEADERS: u8 = 0x04;
pub(crate) const END_STREAM_AND_HEADERS: u8 = END_STREAM | END_HEADERS;
/// `GET http /` from HPACK's static table, then `:authority: here`.
pub(crate) const GET_ROOT: &[u8] = b"\x82\x86\x84\x41\x04here";
/// `SETTINGS_INITIAL_WINDOW_SIZE` 0: no stream may send a byte of a body.
pub(crate) const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];
/// `:status: 200` from HPACK's static table.
pub(crate) const STATUS_200: u8 = 0x88;

pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// What the whole connection may still send.
    window: usize,
}

impl Client {
    /// Agrees on HTTP/2 with these settings.
    pub(crate) async fn connect(address: SocketAddr, settings: &[u8]) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self::over(stream, settings).await
    }

    /// As [`Client::connect`], on a connection that is open.
    pub(crate) async fn over(stream: TcpStream, settings: &[u8]) -> Self {
        let mut client = Self {
            stream,
            window: 65_535,
        };
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        client.stream.write_all(preface).await.unwrap();
        client.send(SETTINGS, 0, 0, settings).await;
        let theirs = client.next_of(SETTINGS).await.unwrap();
        assert_eq!((theirs.kind, theirs.stream), (SETTINGS, 0));
        client
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let frame = frame(kind, flags, stream, payload);
        self.stream.write_all(&frame).await.unwrap();
    }

    /// Sends a whole body, within the window of the connection.
    pub(crate) async fn send_body(&mut self, stream: u32, body: &[u8]) {
        for piece in body.chunks(16_384) {
            while self.window < piece.len() {
                self.next().await.unwrap();
            }
            self.window -= piece.len();
            self.send(DATA, 0, stream, piece).await;
        }
        self.send(DATA, END_STREAM, stream, b"").await;
    }

    /// Grants the peer so many bytes more.
    pub(crate) async fn grant(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
            .await;
    }

    /// The next frame; None when the server closed first. Answers pings: the server ends a drained
    /// connection after a last round trip.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        if kind == PING && flags & ACK == 0 {
            self.send(PING, ACK, 0, &payload).await;
        }
        if kind == WINDOW_UPDATE && stream == 0 {
            let more = u32::from_be_bytes(payload[..4].try_into().unwrap());
            self.window += usize::try_from(more).unwrap();
        }
        Some(Frame {
            kind,
            flags,
            stream,
            payload,
        })
    }

    /// The next frame of that kind.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// The rest of a stream's body.
    pub(crate) async fn body_of(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = self.next().await.unwrap();
            assert!(frame.kind != GOAWAY, "the connection ends");
            if frame.stream == stream && frame.kind == DATA {
                body.extend(&frame.payload);
            }
            if frame.stream == stream && frame.flags & END_STREAM != 0 {
                return body;
            }
        }
    }
}

/// A frame in bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A request's head in HPACK, without Huffman and without the dynamic table.
pub(crate) fn head(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let mut head = [
        b"\x02",
        &text(method)[..],
        b"\x86\x04",
        &text(path),
        b"\x01\x04here",
    ]
    .concat();
    for (name, value) in fields {
        head.push(0);
        head.extend(text(name));
        head.extend(text(value));
    }
    head
}
