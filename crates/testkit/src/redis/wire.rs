//! The Redis protocol (RESP2), as far as tests need it: one command, one reply.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// How long a test waits for one reply: longer than a server stands still by itself.
const REPLY_WITHIN: Duration = Duration::from_secs(20);

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: a missing key.
    Nil,
    /// A number.
    Int(i64),
    /// Text or bytes, read as UTF-8.
    Text(String),
    /// Several replies.
    Array(Vec<Reply>),
    /// An error reply, which begins with its code, such as `NOAUTH`.
    Error(String),
}

impl Reply {
    /// Returns the reply as text: a number in digits, nil as the empty text, the parts of an array
    /// in lines. Fails with an error reply.
    pub fn text(self) -> Result<String> {
        Ok(match self {
            Self::Nil => String::new(),
            Self::Int(number) => number.to_string(),
            Self::Text(text) => text,
            Self::Array(parts) => {
                let parts: Result<Vec<_>> = parts.into_iter().map(Self::text).collect();
                parts?.join("\n")
            }
            Self::Error(message) => bail!("Redis refused: {message}"),
        })
    }
}

/// A connection for one command after another.
#[derive(Debug)]
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, REPLY_WITHIN)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_WITHIN))?;
        stream.set_write_timeout(Some(REPLY_WITHIN))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends one command and reads its reply.
    pub(super) fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        let mut command = format!("*{}\r\n", words.len());
        command.extend(
            words
                .iter()
                .map(|word| format!("${}\r\n{word}\r\n", word.len())),
        );
        self.stream.get_mut().write_all(command.as_bytes())?;
        read(&mut self.stream)
    }
}

fn read(from: &mut impl BufRead) -> Result<Reply> {
    let mut line = String::new();
    ensure!(
        from.read_line(&mut line)? > 0,
        "the server closed the connection"
    );
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).context("an empty reply")?;
    let length = || rest.parse::<i64>().context("a reply's length is a number");
    Ok(match kind {
        "+" => Reply::Text(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Int(length()?),
        "$" => match usize::try_from(length()?) {
            Ok(length) => Reply::Text(read_text(from, length)?),
            Err(_) => Reply::Nil,
        },
        "*" => match usize::try_from(length()?) {
            Ok(length) => Reply::Array((0..length).map(|_| read(from)).collect::<Result<_>>()?),
            Err(_) => Reply::Nil,
        },
        other => bail!("not a reply of Redis: {other}"),
    })
}

fn read_text(from: &mut impl BufRead, length: usize) -> Result<String> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_is_read() {
        let read = |text: &str| read(&mut text.as_bytes()).unwrap();
        assert_eq!(read("+OK\r\n"), Reply::Text("OK".to_owned()));
        assert_eq!(read(":-7\r\n").text().unwrap(), "-7");
        assert_eq!(read("$-1\r\n"), Reply::Nil);
        assert_eq!(
            read("*2\r\n$1\r\na\r\n*1\r\n:2\r\n").text().unwrap(),
            "a\n2"
        );
        let refused = read("-NOAUTH who are you\r\n").text().unwrap_err();
        assert!(refused.to_string().contains("NOAUTH"), "{refused}");
        assert!(super::read(&mut "$5\r\nab".as_bytes()).is_err());
    }
}
