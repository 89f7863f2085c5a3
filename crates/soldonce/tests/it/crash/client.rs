//! A small blocking HTTP/1.1 client that remembers what became of each request. A request without
//! an answer is neither done nor refused: its outcome is unknown.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A safety net: no request takes so long unless the server hangs.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// What became of a request that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acknowledged, and units must have changed in its name.
    Moved,
    /// Acknowledged, without a change of units or with one made before.
    Done,
    /// Refused: nothing may have changed in its name.
    Refused,
    /// No answer, or one that says that the outcome is unknown.
    Unknown,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    /// Its Idempotency-Key.
    pub(crate) key: Option<String>,
    /// Whether a success that is no replay changes units.
    pub(crate) moves_units: bool,
}

impl Ask {
    pub(crate) fn get(path: String) -> Self {
        Self::new("GET", path, None)
    }

    pub(crate) fn post(path: &str, body: Value) -> Self {
        Self::new("POST", path.to_owned(), Some(body))
    }

    pub(crate) fn new(method: &'static str, path: String, body: Option<Value>) -> Self {
        Self {
            method,
            path,
            body,
            key: None,
            moves_units: false,
        }
    }

    pub(crate) fn moving(self) -> Self {
        Self {
            moves_units: true,
            ..self
        }
    }

    pub(crate) fn keyed(self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and body, but for the server's time, which stands last: what a replay must repeat.
    pub(crate) fn fixed(&self) -> (u16, Vec<u8>) {
        let mark = b",\"server_time\":\"";
        let at = self
            .body
            .windows(mark.len())
            .rposition(|window| window == mark);
        let end = at.unwrap_or(self.body.len());
        (self.status, self.body.iter().copied().take(end).collect())
    }

    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

/// One client on one connection.
pub(crate) struct Client {
    address: SocketAddr,
    admin_key: &'static str,
    name: String,
    asked: usize,
    stream: Option<BufReader<TcpStream>>,
    /// What became of every request that may change something, by its id.
    pub(crate) outcomes: Vec<(String, Outcome)>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, admin_key: &'static str, name: &str) -> Self {
        Self {
            address,
            admin_key,
            name: name.to_owned(),
            asked: 0,
            stream: None,
            outcomes: Vec::new(),
        }
    }

    /// Asks once; nothing is ever sent again by itself.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Option<HttpAnswer> {
        self.asked += 1;
        let id = format!("{}-{}", self.name, self.asked);
        let heard = self.exchange(ask, &id);
        if heard.is_err() {
            self.stream = None;
        }
        let heard = heard.ok();
        if ask.method != "GET" {
            self.outcomes.push((id, outcome(ask, heard.as_ref())));
        }
        heard
    }

    fn exchange(&mut self, ask: &Ask, id: &str) -> Result<HttpAnswer> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect_timeout(&self.address, ANSWER_WAIT)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_WAIT))?;
                none.insert(BufReader::new(stream))
            }
        };
        let body = ask.body.as_ref().map(Value::to_string).unwrap_or_default();
        let key = ask
            .key
            .as_ref()
            .map(|key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nRequest-Id: {id}\r\n{}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            ask.method,
            ask.path,
            self.address,
            self.admin_key,
            key.unwrap_or_default(),
            body.len(),
        );
        stream.get_mut().write_all(request.as_bytes())?;
        read_answer(stream)
    }
}

fn outcome(ask: &Ask, heard: Option<&HttpAnswer>) -> Outcome {
    match heard {
        Some(heard) if heard.is_success() && ask.moves_units && !heard.replayed => Outcome::Moved,
        Some(heard) if heard.is_success() => Outcome::Done,
        Some(heard) if heard.status < 500 => Outcome::Refused,
        Some(_) | None => Outcome::Unknown,
    }
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> Result<HttpAnswer> {
    let broken = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut heard = HttpAnswer {
        status: status.ok_or_else(|| broken("no status"))?,
        replayed: false,
        retry_after: None,
        body: Vec::new(),
    };
    let mut length = None;
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(broken("the head broke off"));
        }
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok(),
            "idempotency-replayed" => heard.replayed = value.trim() == "true",
            "retry-after" => heard.retry_after = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    heard.body = vec![0; length.ok_or_else(|| broken("no length"))?];
    stream.read_exact(&mut heard.body)?;
    Ok(heard)
}
