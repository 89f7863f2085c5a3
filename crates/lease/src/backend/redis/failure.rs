//! Classifies errors of the driver: certainly not sent, refused, or perhaps done. In doubt it is
//! `Unknown` (law B7). `lease.md` 6.4.

use std::pin::Pin;
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult};
use soldonce_clock::timeout_at;

use crate::{BackendError, Clock};

/// Error codes with which a server refuses a command before any of it ran. The scripts of this
/// crate check types and read everything before their first write, so `WRONGTYPE` is one of them.
const REFUSED: [&str; 20] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "NOREPLID",
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNKILLABLE",
    "WRONGPASS",
    "WRONGTYPE",
    "NOPROTO",
];

/// Error codes that require another user or password.
const LOGIN: [&str; 3] = ["NOAUTH", "NOPERM", "WRONGPASS"];

/// Classifies an error of a command that was handed to a connection.
pub(super) fn of_command(error: &RedisError) -> BackendError {
    match error.code() {
        Some(code) if REFUSED.contains(&code) => BackendError::Rejected {
            code: code.to_owned(),
            message: error.detail().unwrap_or_default().to_owned(),
        },
        _ if was_not_sent(error) => BackendError::NotSent(words(error)),
        _ => BackendError::Unknown(words(error)),
    }
}

/// Tells whether no connection took the command: none could be made, or the driver knew of none.
fn was_not_sent(error: &RedisError) -> bool {
    error.is_connection_refusal() || error.kind() == ErrorKind::ClusterConnectionNotFound
}

/// Explains the error to people who gave a wrong address.
fn words(error: &RedisError) -> String {
    if error.kind() == ErrorKind::Parse {
        return format!("what answers there is not Redis ({error})");
    }
    if error.is_connection_dropped() {
        return format!("the other end closed the connection ({error})");
    }
    error.to_string()
}

/// Classifies an error of a connect: nothing was sent on the connection.
pub(super) fn of_connect(error: &RedisError) -> BackendError {
    let login = error.code().is_some_and(|code| LOGIN.contains(&code));
    let settings = [
        ErrorKind::AuthenticationFailed,
        ErrorKind::InvalidClientConfig,
        ErrorKind::RESP3NotSupported,
    ];
    if login || settings.contains(&error.kind()) || is_certificate_refusal(error) {
        BackendError::Config(error.to_string())
    } else {
        BackendError::NotSent(words(error))
    }
}

/// Tells whether this end refuses the certificate of the other.
fn is_certificate_refusal(error: &RedisError) -> bool {
    #[cfg(feature = "tls")]
    let is_refusal = soldonce_tls::is_certificate_refusal(error);
    #[cfg(not(feature = "tls"))]
    let is_refusal = error.kind() == ErrorKind::InvalidClientConfig;
    is_refusal
}

/// Classifies an error of the first command, which changes nothing: whether it ran does not matter.
/// A server that requires another login will not change its mind.
pub(super) fn of_first(error: BackendError) -> BackendError {
    match error {
        BackendError::Rejected { code, message } if LOGIN.contains(&code.as_str()) => {
            BackendError::Config(format!("{code} {message}"))
        }
        BackendError::Unknown(why) => BackendError::NotSent(why),
        BackendError::NotSent(_) | BackendError::Rejected { .. } | BackendError::Config(_) => error,
    }
}

pub(super) fn breaks(error: &RedisError) -> bool {
    error.is_unrecoverable_error() || error.kind() == ErrorKind::Io
}

pub(super) fn lacks_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// Tells whether another node of the cluster has the slot.
#[cfg(feature = "cluster")]
pub(super) fn is_elsewhere(error: &RedisError) -> bool {
    ["MOVED", "READONLY"].map(Some).contains(&error.code())
}

/// Tells whether the server became a replica, and may not decide any more.
pub(super) fn is_demoted(error: &RedisError) -> bool {
    error.code() == Some("READONLY")
}

/// Waits at most `limit` for a connection that the driver makes. To connect takes much room, so it is boxed.
pub(super) async fn connected<C>(
    making: Pin<Box<impl Future<Output = RedisResult<C>>>>,
    limit: Duration,
    clock: &dyn Clock,
) -> Result<C, BackendError> {
    let made = timeout_at(clock, clock.boot().plus(limit), making).await;
    let made = made.ok_or_else(|| not_connected(limit))?;
    made.map_err(|error| of_connect(&error))
}

/// Builds the error for a time-out before there was a connection.
pub(super) fn not_connected(within: Duration) -> BackendError {
    BackendError::NotSent(format!("no connection in {} ms", within.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> BackendError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("RESP");
        of_command(&value.extract_error().expect_err("an error reply"))
    }

    #[test]
    fn refusals_before_running_are_rejections() {
        for line in [
            "READONLY You can't write against a read only replica.",
            "MOVED 12182 127.0.0.1:7002",
            "LOADING Redis is loading the dataset in memory",
            "BUSY Redis is busy running a script.",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "MISCONF Redis is configured to save RDB snapshots",
            "NOREPLICAS Not enough good replicas to write.",
            "NOPERM User x has no permissions",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN The cluster is down",
        ] {
            let code = line.split(' ').next().expect("a code").to_owned();
            let BackendError::Rejected { code: got, .. } = answer(line) else {
                panic!("{line} must be a rejection");
            };
            assert_eq!(got, code);
        }
    }

    #[test]
    fn what_may_have_run_is_unknown() {
        let script =
            "ERR user_script:7: attempt to index a nil value script: 1a, on @user_script:7";
        assert!(matches!(answer(script), BackendError::Unknown(_)));
        let reset = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(of_command(&reset), BackendError::Unknown(_)));
        let late = RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        assert!(matches!(of_command(&late), BackendError::Unknown(_)));
    }

    #[test]
    fn nothing_was_sent_on_a_connection_that_was_never_made() {
        let refused = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert!(matches!(of_connect(&refused), BackendError::NotSent(_)));
    }
}
