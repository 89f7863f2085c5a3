//! Epochs and tokens from rows of PostgreSQL.

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::{EPOCH_MAX, EpochError, EpochSource, PgEpochs, PgTokens, TokenSource};
use tokio::task::JoinSet;

use super::{config, server};

#[tokio::test]
async fn epochs_rise_over_clients_and_restarts_and_respect_above() {
    let mut server = server().await;
    let epochs = PgEpochs::new(config(&server));
    assert_eq!(epochs.next("app", 0).await, Ok(1));
    assert_eq!(epochs.next("app", 40).await, Ok(41));
    assert_eq!(epochs.next("app", 7).await, Ok(42));
    assert_eq!(epochs.next("other", 3).await, Ok(4));
    server.stop_immediately().unwrap();
    server.restart().unwrap();
    // The first call may meet the connection that the server ended.
    let after = match epochs.next("app", 0).await {
        Err(EpochError::Unavailable(_)) => epochs.next("app", 0).await,
        answered => answered,
    };
    assert!(matches!(after, Ok(43..)), "{after:?}");
    assert_eq!(epochs.next("app", EPOCH_MAX - 1).await, Ok(EPOCH_MAX));
    let none = epochs.next("app", 0).await;
    assert!(
        matches!(none, Err(EpochError::Exhausted { .. })),
        "{none:?}"
    );
    let none = epochs.next("other", EPOCH_MAX).await;
    assert!(
        matches!(none, Err(EpochError::Exhausted { .. })),
        "{none:?}"
    );
}

#[tokio::test]
async fn ten_clients_race_for_epochs_and_for_tokens() {
    let server = server().await;
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(take_twenty_of_both(config(&server)));
    }
    let (mut epochs, mut tokens) = (Vec::new(), Vec::new());
    for (some_epochs, some_tokens) in clients.join_all().await {
        assert!(some_epochs.is_sorted() && some_tokens.is_sorted());
        epochs.extend(some_epochs);
        tokens.extend(some_tokens);
    }
    epochs.sort_unstable();
    tokens.sort_unstable();
    assert_eq!(epochs, (1..=200).collect::<Vec<u64>>());
    let first = 1 << 32;
    assert_eq!(tokens, (first + 1..=first + 200).collect::<Vec<u64>>());
}

async fn take_twenty_of_both(config: PgConfig) -> (Vec<u64>, Vec<u64>) {
    let (epochs, tokens) = (PgEpochs::new(config.clone()), PgTokens::new(config));
    let mut given = (Vec::new(), Vec::new());
    for _ in 0..20 {
        given
            .0
            .push(u64::from(epochs.next("app", 0).await.unwrap()));
        given.1.push(tokens.next("app", 0).await.unwrap());
    }
    given
}

#[tokio::test]
async fn tokens_end_below_two_to_the_53() {
    let server = server().await;
    let tokens = PgTokens::new(config(&server));
    let last = (1 << 53) - 1;
    assert_eq!(tokens.next("app", last - 1).await, Ok(last));
    for above in [0, last, u64::MAX] {
        let none = tokens.next("app", above).await;
        assert!(
            matches!(none, Err(EpochError::Exhausted { .. })),
            "{none:?}"
        );
    }
}
