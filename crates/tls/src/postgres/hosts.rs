//! Which server of an address with several is connected to: the first that answers as the address asks.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Connection, Error, Socket};

use super::connector::{PgStream, PgTls};

/// How long the others are waited for once a server has refused: a standby does, and may be promoted meanwhile.
const SILENCE: Duration = Duration::from_secs(2);

/// A client, and the connection that its owner drives.
pub type Connected = (Client, Connection<Socket, PgStream<Socket>>);

/// Connects to the first server that takes the connection; all are asked at once. The driver asks one after the
/// other, and waits at a machine without power or a process that is stopped for longer than a caller does.
///
/// # Errors
/// That of the server which refused last, when none takes it.
///
/// # Cancel safety
/// A dropped call leaves no connection.
pub async fn connect(config: &Config, tls: &PgTls) -> Result<Connected, Error> {
    let each = each(config).into_iter().map(|config| {
        let tls = tls.clone();
        async move { config.connect(tls).await }
    });
    let mut each: FuturesUnordered<_> = each.collect();
    let mut refused = None;
    loop {
        let answer = match &refused {
            None => each.next().await,
            Some(_) => timeout(SILENCE, each.next()).await.ok().flatten(),
        };
        match (answer, refused) {
            (Some(Ok(connected)), _) => return Ok(connected),
            (Some(Err(error)), _) => refused = Some(error),
            (None, Some(error)) => return Err(error),
            // An address without a server, which the driver refuses.
            (None, None) => return config.connect(tls.clone()).await,
        }
    }
}

/// Expands an address with several servers to one config for each.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let (ports, count) = (config.get_ports(), hosts.len().max(addresses.len()));
    let pairs = |length| length == count || length == 0;
    if count < 2
        || !pairs(hosts.len())
        || !pairs(addresses.len())
        || !pairs(ports.len()) && ports.len() > 1
    {
        // Nothing to choose, or lists that the driver refuses.
        return vec![config.clone()];
    }
    let one = |place| {
        let mut one = without_hosts(config);
        match hosts.get(place) {
            Some(Host::Tcp(name)) => one.host(name),
            Some(Host::Unix(folder)) => one.host_path(folder),
            None => &mut one,
        };
        if let Some(address) = addresses.get(place) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(place).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(one).collect()
}

/// Copies an address without its servers: the driver lets them be added, not removed.
fn without_hosts(config: &Config) -> Config {
    let mut rest = Config::new();
    set(config.get_user(), |user| rest.user(user));
    set(config.get_password(), |password| rest.password(password));
    set(config.get_dbname(), |name| rest.dbname(name));
    set(config.get_options(), |options| rest.options(options));
    set(config.get_application_name(), |name| {
        rest.application_name(name)
    });
    set(config.get_connect_timeout(), |time| {
        rest.connect_timeout(*time)
    });
    set(config.get_tcp_user_timeout(), |time| {
        rest.tcp_user_timeout(*time)
    });
    set(config.get_keepalives_interval(), |time| {
        rest.keepalives_interval(time)
    });
    set(config.get_keepalives_retries(), |count| {
        rest.keepalives_retries(count)
    });
    rest.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    rest
}

fn set<'a, T>(value: Option<T>, put: impl FnOnce(T) -> &'a mut Config) {
    if let Some(value) = value {
        put(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every parameter that the driver knows, none as it is by itself.
    const REST: &str = "user=app password=word dbname=main options='-c jit=off' application_name=till \
                        sslmode=require sslnegotiation=direct connect_timeout=3 tcp_user_timeout=4 keepalives=0 \
                        keepalives_idle=5 keepalives_interval=6 keepalives_retries=7 \
                        target_session_attrs=read-write channel_binding=require load_balance_hosts=random";

    fn config(hosts: &str) -> Config {
        format!("{hosts} {REST}").parse().unwrap()
    }

    #[test]
    fn each_server_of_an_address_has_all_of_it() {
        for (all, parted) in [
            ("host=a,b port=1,2", vec!["host=a port=1", "host=b port=2"]),
            (
                "host=a,/run port=1",
                vec!["host=a port=1", "host=/run port=1"],
            ),
            (
                "host=a,b hostaddr=::1,::2",
                vec!["host=a hostaddr=::1", "host=b hostaddr=::2"],
            ),
            ("hostaddr=::1,::2", vec!["hostaddr=::1", "hostaddr=::2"]),
            ("host=a", vec!["host=a"]),
            ("host=a,b port=1,2,3", vec!["host=a,b port=1,2,3"]),
            ("host=a,b hostaddr=::1", vec!["host=a,b hostaddr=::1"]),
        ] {
            let parted: Vec<Config> = parted.into_iter().map(config).collect();
            assert_eq!(each(&config(all)), parted, "{all}");
        }
    }
}
