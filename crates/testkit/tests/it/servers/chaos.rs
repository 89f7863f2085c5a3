use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};

/// Shorter than any answer that does not come.
const SILENCE: Duration = Duration::from_millis(300);

/// A Redis, a proxy in front of it, and inline commands through the proxy.
struct Rig {
    redis: Redis,
    proxy: FaultProxy,
}

impl Rig {
    fn new() -> Self {
        let redis = Redis::start().unwrap();
        let proxy = FaultProxy::to(redis.address()).unwrap();
        Self { redis, proxy }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.proxy.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn count(&self) -> String {
        self.redis.cli(&["GET", "n"]).unwrap_or_default()
    }
}

/// Counts one up; the number, or how the connection failed.
fn incr(stream: &mut TcpStream) -> Result<String, ErrorKind> {
    stream
        .write_all(b"INCR n\r\n")
        .map_err(|error| error.kind())?;
    read(stream)
}

fn read(stream: &mut TcpStream) -> Result<String, ErrorKind> {
    let mut reply = [0; 64];
    match stream.read(&mut reply) {
        Ok(0) => Err(ErrorKind::UnexpectedEof),
        Ok(length) => Ok(String::from_utf8_lossy(&reply[1..length - 2]).into_owned()),
        Err(error) => Err(error.kind()),
    }
}

#[test]
fn a_dropped_reply_is_that_of_a_request_that_ran() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    assert_eq!(incr(&mut stream).unwrap(), "1");
    rig.proxy.next_with("INCR", Fault::DropReply);
    assert_eq!(incr(&mut stream), Err(ErrorKind::UnexpectedEof));
    assert_eq!((rig.count().as_str(), rig.proxy.to_come()), ("2", 0));
    assert_eq!(rig.proxy.requests(), 2);
    assert_eq!(incr(&mut rig.connect()).unwrap(), "3");
    assert_eq!(rig.proxy.connections(), 2);
}

#[test]
fn a_reset_request_did_not_run() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    rig.proxy.next(Fault::Reset);
    assert_eq!(incr(&mut stream), Err(ErrorKind::ConnectionReset));
    assert_eq!(rig.count(), "");
}

#[test]
fn a_half_open_connection_swallows_for_good() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    assert_eq!(incr(&mut stream).unwrap(), "1");
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    rig.proxy.next(Fault::HalfOpen);
    assert_eq!(incr(&mut stream), Err(ErrorKind::WouldBlock));
    until("it is swallowed", PATIENCE, || rig.proxy.to_come() == 0).unwrap();
    assert_eq!(incr(&mut stream), Err(ErrorKind::WouldBlock));
    assert_eq!(rig.count(), "1");
    assert_eq!(incr(&mut rig.connect()).unwrap(), "2");
}

#[test]
fn a_cut_holds_what_a_heal_lets_pass() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    assert_eq!(incr(&mut stream).unwrap(), "1");
    rig.proxy.set(Fault::Cut);
    let mut late = rig.connect();
    for stream in [&mut stream, &mut late] {
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        assert_eq!(incr(stream), Err(ErrorKind::WouldBlock));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    assert_eq!(rig.count(), "1");
    rig.proxy.heal();
    let mut counts = [read(&mut stream).unwrap(), read(&mut late).unwrap()];
    counts.sort();
    assert_eq!(counts, ["2", "3"]);
}

#[test]
fn a_cut_of_one_request_ends_with_a_heal() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    rig.proxy.next_with("INCR", Fault::Cut);
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(incr(&mut stream), Err(ErrorKind::WouldBlock));
    assert_eq!(rig.count(), "", "it has not run");
    rig.proxy.heal();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(read(&mut stream).unwrap(), "1");
}

#[test]
fn a_delay_holds_replies_of_one_connection_only() {
    let rig = Rig::new();
    let (mut slow, mut quick) = (rig.connect(), rig.connect());
    incr(&mut slow).unwrap();
    incr(&mut quick).unwrap();
    rig.proxy.set_for(1, Fault::Delay(PATIENCE * 60));
    slow.set_read_timeout(Some(SILENCE)).unwrap();
    assert_eq!(incr(&mut slow), Err(ErrorKind::WouldBlock));
    until("it has run", PATIENCE, || rig.count() == "3").unwrap();
    assert_eq!(incr(&mut quick).unwrap(), "4");
}

#[test]
fn a_doubled_request_runs_twice_and_is_answered_once() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    rig.proxy.next_with("INCR", Fault::Twice);
    assert_eq!(incr(&mut stream).unwrap(), "2");
    assert_eq!(incr(&mut stream).unwrap(), "3");
}

#[test]
fn a_proxy_moves_to_another_server() {
    let (rig, other) = (Rig::new(), Redis::start().unwrap());
    let mut stream = rig.connect();
    assert_eq!(incr(&mut stream).unwrap(), "1");
    other.cli(&["SET", "n", "40"]).unwrap();
    rig.proxy.retarget(other.address());
    assert!(incr(&mut stream).is_err(), "the old connection has ended");
    assert_eq!(incr(&mut rig.connect()).unwrap(), "41");
    assert_eq!(rig.count(), "1");
}
