//! One HTTP/2 connection with one call in flight. Takes no dynamic table of header fields, so that the status of an
//! answer is found without one; echo and product are both asked this way.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::calls::{
    DATA, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, HEADERS, push_frame, status_of,
};
use super::connect;
use crate::kit::LoadError;
use crate::limits::{ANSWER_BUFFER_BYTES, CALL_FRAME_BYTES_MAX, CALL_WINDOW_BYTES};

const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;

/// A connection to the server under load.
#[derive(Debug)]
pub(super) struct Calling {
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// The number of the next call.
    next: u32,
    /// Bytes that were read and belong to no frame taken yet.
    buffer: Vec<u8>,
    /// Bytes of messages since the server was last told that they were read.
    unconfirmed: u32,
}

impl Calling {
    pub(super) async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let mut calling = Self {
            address,
            stream: None,
            next: 1,
            buffer: Vec::with_capacity(ANSWER_BUFFER_BYTES),
            unconfirmed: 0,
        };
        calling.stream = Some(calling.greet().await?);
        Ok(calling)
    }

    async fn greet(&mut self) -> std::io::Result<TcpStream> {
        let mut stream = connect(self.address).await?;
        (self.next, self.unconfirmed) = (1, 0);
        self.buffer.clear();
        let mut greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // No dynamic table.
        push_frame(&mut greeting, (SETTINGS, 0), &[0, 1, 0, 0, 0, 0]);
        stream.write_all(&greeting).await?;
        Ok(stream)
    }

    /// Sends a call and reads its whole answer; returns its `grpc-status`. A connection that was closed is opened
    /// anew first.
    ///
    /// # Cancel safety
    /// None: a dropped exchange leaves half an answer behind. Drop the connection with it.
    pub(super) async fn exchange(&mut self, call: &mut [u8]) -> Result<u16, LoadError> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.greet().await.map_err(|_| LoadError::Connect)?,
        };
        let id = self.next;
        self.next += 2;
        number(call, id);
        let written = stream.write_all(call).await;
        written.map_err(|_| LoadError::Closed)?;
        let status = self.read_answer(&mut stream, id).await?;
        self.stream = Some(stream);
        Ok(status)
    }

    async fn read_answer(&mut self, stream: &mut TcpStream, id: u32) -> Result<u16, LoadError> {
        let mut answer = Partial::default();
        loop {
            let mut replies = Vec::new();
            let mut taken = 0;
            while let Some(frame) = Frame::first(self.buffer.get(taken..).unwrap_or_default())? {
                taken += FRAME_HEAD_BYTES + frame.payload.len();
                answer.take(&frame, id, &mut replies)?;
            }
            self.buffer.drain(..taken);
            self.unconfirmed += std::mem::take(&mut answer.message_bytes);
            if self.unconfirmed >= CALL_WINDOW_BYTES {
                let read = std::mem::take(&mut self.unconfirmed).to_be_bytes();
                push_frame(&mut replies, (WINDOW_UPDATE, 0), &read);
            }
            let written = stream.write_all(&replies).await;
            written.map_err(|_| LoadError::Closed)?;
            if answer.is_ended {
                return answer.status.ok_or(LoadError::NotHttp);
            }
            let read = stream.read_buf(&mut self.buffer).await;
            if read.map_err(|_| LoadError::Closed)? == 0 {
                return Err(LoadError::Closed);
            }
        }
    }
}

/// The part of an answer that was read so far.
#[derive(Default)]
struct Partial {
    status: Option<u16>,
    message_bytes: u32,
    is_ended: bool,
}

impl Partial {
    /// Takes a frame into the answer of call `id`, or writes the reply to it.
    fn take(&mut self, frame: &Frame<'_>, id: u32, replies: &mut Vec<u8>) -> Result<(), LoadError> {
        match frame.kind {
            SETTINGS if !frame.has(ACK) => push_frame(replies, (SETTINGS, ACK), &[]),
            PING if !frame.has(ACK) => push_frame(replies, (PING, ACK), frame.payload),
            DATA => self.message_bytes += u32::try_from(frame.payload.len()).unwrap_or(u32::MAX),
            HEADERS if !frame.has(END_HEADERS) => return Err(LoadError::TooLarge),
            HEADERS => self.status = status_of(frame.payload)?.or(self.status),
            RST_STREAM | GOAWAY => return Err(LoadError::Closed),
            _ => {}
        }
        let can_end = [DATA, HEADERS].contains(&frame.kind);
        self.is_ended |= can_end && frame.stream == id && frame.has(END_STREAM);
        Ok(())
    }
}

/// Writes the number of a call into its frames.
fn number(call: &mut [u8], id: u32) {
    let mut rest = call;
    while let Some((head, after)) = rest.split_first_chunk_mut::<FRAME_HEAD_BYTES>() {
        let [a, b, c, _, _, stream @ ..] = head;
        stream.copy_from_slice(&id.to_be_bytes());
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        rest = after.get_mut(length..).unwrap_or_default();
    }
}

struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the frame at the start of what was read, once it is complete.
    fn first(bytes: &'a [u8]) -> Result<Option<Self>, LoadError> {
        let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if length > CALL_FRAME_BYTES_MAX {
            return Err(LoadError::NotHttp);
        }
        Ok(rest.get(..length).map(|payload| Self {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        }))
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
