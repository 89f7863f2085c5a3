//! One connection through a proxy: the client's stream, the server's, and a thread per direction.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::net::sockopt::set_socket_linger;

use super::Fault;
use super::control::Control;
use crate::server::PATIENCE;

const CHUNK: usize = 16 * 1024;

pub(super) struct Link {
    control: Arc<Control>,
    number: usize,
    client: Arc<TcpStream>,
    server: Arc<TcpStream>,
    target: SocketAddr,
    /// The fault of the next reply, taken with its request.
    reply: Mutex<Option<Fault>>,
    resetting: AtomicBool,
}

/// What is done with the bytes of one read.
enum Fate {
    Passes,
    Swallowed,
    Closes,
}

impl Link {
    /// Connects to the server, once the connection is not cut. Fails if the proxy ended.
    pub(super) fn open(
        control: &Arc<Control>,
        number: usize,
        client: TcpStream,
        target: SocketAddr,
    ) -> Result<Self> {
        let client = Arc::new(client);
        ensure!(control.keep(&client), "the proxy ended");
        ensure!(control.await_heal(number), "the proxy ended");
        let server = Arc::new(TcpStream::connect(target)?);
        ensure!(control.keep(&server), "the proxy ended");
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Self {
            control: Arc::clone(control),
            number,
            client,
            server,
            target,
            reply: Mutex::new(None),
            resetting: AtomicBool::new(false),
        })
    }

    /// Passes traffic both ways until one side closes.
    pub(super) fn run(&self) {
        if self.control.lasting(self.number) == Fault::Reset {
            self.reset();
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| self.pump(&self.client, &self.server, |bytes| self.request(bytes)));
            self.pump(&self.server, &self.client, |_| self.answer());
        });
    }

    /// Passes traffic one way. A side that closes closes the other, unless traffic was discarded.
    fn pump(&self, mut from: &TcpStream, mut to: &TcpStream, fate: impl Fn(&[u8]) -> Fate) {
        let mut chunk = vec![0; CHUNK];
        let mut swallowed = false;
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            let bytes = chunk.get(..length).unwrap_or_default();
            match fate(bytes) {
                Fate::Passes if to.write_all(bytes).is_ok() => {}
                Fate::Swallowed => swallowed = true,
                Fate::Passes | Fate::Closes => break,
            }
        }
        if !swallowed && self.control.lasting(self.number) != Fault::HalfOpen {
            self.close();
        }
    }

    fn request(&self, bytes: &[u8]) -> Fate {
        let fate = self.fate_of_request(bytes);
        if matches!(fate, Fate::Passes) {
            self.control.state().requests += 1;
        }
        fate
    }

    fn fate_of_request(&self, bytes: &[u8]) -> Fate {
        let once = self.control.take(self.number, bytes);
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = once;
        match once.unwrap_or_else(|| self.control.lasting(self.number)) {
            Fault::None | Fault::Delay(_) | Fault::DropReply => Fate::Passes,
            Fault::Twice => {
                // That the copy cannot be sent is not an error.
                self.send_copy(bytes).ok();
                Fate::Passes
            }
            Fault::Reset => {
                self.reset();
                Fate::Closes
            }
            Fault::HalfOpen => {
                self.control.set_for(self.number, Fault::HalfOpen);
                Fate::Swallowed
            }
            Fault::Cut => self.after_cut(),
        }
    }

    fn answer(&self) -> Fate {
        let once = self
            .reply
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match once.unwrap_or_else(|| self.control.lasting(self.number)) {
            Fault::None | Fault::Twice => Fate::Passes,
            Fault::Delay(span) => {
                self.control.pause(span);
                Fate::Passes
            }
            Fault::DropReply => Fate::Closes,
            Fault::Reset => {
                self.reset();
                Fate::Closes
            }
            Fault::HalfOpen => Fate::Swallowed,
            Fault::Cut => self.after_cut(),
        }
    }

    fn after_cut(&self) -> Fate {
        if self.control.await_heal(self.number) {
            Fate::Passes
        } else {
            Fate::Closes
        }
    }

    /// Sends the request on a connection of its own and waits for its reply, up to [`PATIENCE`]: it
    /// runs before the request itself, also on a server that stands still for a while.
    fn send_copy(&self, bytes: &[u8]) -> Result<()> {
        let mut copy = TcpStream::connect(self.target)?;
        copy.set_read_timeout(Some(PATIENCE))?;
        copy.write_all(bytes)?;
        let mut reply = vec![0; CHUNK];
        ensure!(copy.read(&mut reply)? > 0, "no reply to the copy");
        Ok(())
    }

    /// Closes with RST instead of FIN. The RST is sent when the client's stream is dropped; to shut
    /// down its sending side would send a FIN before that.
    fn reset(&self) {
        set_socket_linger(&*self.client, Some(Duration::ZERO)).ok();
        self.resetting.store(true, Ordering::Relaxed);
        self.close();
    }

    /// Shuts both streams down, so that both pumps end. Errors of closed streams are ignored.
    fn close(&self) {
        let ways = if self.resetting.load(Ordering::Relaxed) {
            Shutdown::Read
        } else {
            Shutdown::Both
        };
        self.client.shutdown(ways).ok();
        self.server.shutdown(Shutdown::Both).ok();
    }
}
