//! One keep-alive connection: sends a request, reads the whole answer into a buffer that it keeps.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{Head, read_head};
use super::calling::Calling;
use super::connect;
use super::request::Answer;
use super::transport::Transport;
use crate::kit::LoadError;
use crate::limits::ANSWER_BUFFER_BYTES;

/// A connection to the server under load.
#[derive(Debug)]
pub(crate) enum Connection {
    Http(Plain),
    Grpc(Calling),
}

impl Connection {
    pub(crate) async fn open(transport: Transport, address: SocketAddr) -> std::io::Result<Self> {
        match transport {
            Transport::Http => Plain::open(address).await.map(Self::Http),
            Transport::Grpc => Calling::open(address).await.map(Self::Grpc),
        }
    }

    /// Returns the last answer, until the next exchange; None over gRPC.
    pub(crate) fn last(&self) -> Option<Answer<'_>> {
        match self {
            Self::Http(plain) => plain.last(),
            Self::Grpc(_) => None,
        }
    }

    /// Sends `request` and reads its whole answer; returns its status. A connection that was closed is opened
    /// anew first.
    ///
    /// # Cancel safety
    /// None: a dropped exchange leaves half an answer behind. Drop the connection with it.
    pub(crate) async fn exchange(&mut self, request: &mut [u8]) -> Result<u16, LoadError> {
        match self {
            Self::Http(plain) => plain.exchange(request).await,
            Self::Grpc(calling) => calling.exchange(request).await,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Plain {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    last: Option<Head>,
}

impl Plain {
    async fn open(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self {
            address,
            stream: Some(connect(address).await?),
            buffer: vec![0; ANSWER_BUFFER_BYTES],
            last: None,
        })
    }

    fn last(&self) -> Option<Answer<'_>> {
        let head = self.last?;
        let body = head.length..head.length + head.body_length;
        Some(Answer {
            status: head.status,
            body: self.buffer.get(body)?,
        })
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<u16, LoadError> {
        self.last = None;
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address)
                .await
                .map_err(|_| LoadError::Connect)?,
        };
        let written = stream.write_all(request).await;
        written.map_err(|_| LoadError::Closed)?;
        let head = read_answer(&mut stream, &mut self.buffer).await?;
        self.last = Some(head);
        if !head.closes {
            self.stream = Some(stream);
        }
        Ok(head.status)
    }
}

async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Head, LoadError> {
    let mut filled = 0;
    let mut head = None;
    loop {
        let room = buffer.get_mut(filled..).unwrap_or_default();
        let read = stream.read(room).await.map_err(|_| LoadError::Closed)?;
        if read == 0 {
            return Err(LoadError::Closed);
        }
        filled += read;
        if head.is_none() {
            head = read_head(buffer.get(..filled).unwrap_or_default())?;
        }
        let Some(head) = head else { continue };
        let whole = head.length + head.body_length;
        match filled.cmp(&whole) {
            std::cmp::Ordering::Less if whole > buffer.len() => buffer.resize(whole, 0),
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => return Ok(head),
            // More than one answer to one request.
            std::cmp::Ordering::Greater => return Err(LoadError::NotHttp),
        }
    }
}
