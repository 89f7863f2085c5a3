//! Connections. Every wait has a time-out; a connection that owes an answer is never used again.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use soldonce_clock::{Clock, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::address::{self, Serves};
use super::bind::Value;
use super::connect::Connector;
use super::failure::Failure;
use super::limits::{ANSWER_MS, IDLE_MS, LOCK_MS};
use super::{OpenError, PostgresOptions, Statements};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::{Get, Reader, column};

/// A statement that reads rows, and the table that they are of.
pub(super) type Select = (&'static str, &'static str);

/// The database of a ledger, for all of its tasks.
#[derive(Clone)]
pub(super) struct Database {
    pool: Pool,
    clock: Arc<dyn Clock>,
    is_prepared: bool,
    /// Longest wait for one answer, milliseconds.
    answer_ms: u64,
}

impl Database {
    /// Creates the pool. Opens no connection yet.
    ///
    /// # Errors
    /// `Address` for an illegal address.
    pub(super) fn new(
        options: &PostgresOptions,
        serves: Serves,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let (config, tls) = address::config(options, serves)?;
        let recycling_method = RecyclingMethod::Fast;
        let connector = Connector(tls);
        let manager = Manager::from_connect(config, connector, ManagerConfig { recycling_method });
        let limit = Some(Duration::from_millis(ANSWER_MS));
        let pool = Pool::builder(manager)
            .max_size(options.connections)
            // The one used last: its process has plans and rows at hand.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(limit)
            .create_timeout(limit)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| OpenError::Failed(error.to_string()))?;
        Ok(Self {
            pool,
            clock,
            is_prepared: options.statements == Statements::Prepared,
            answer_ms: ANSWER_MS,
        })
    }

    /// Sets the time-out of an answer, milliseconds: longer for work without a waiting caller.
    pub(super) fn patient(self, answer_ms: u64) -> Self {
        Self { answer_ms, ..self }
    }

    /// Takes a connection from the pool, or opens one.
    pub(super) async fn connection(&self) -> Result<Connection, Failure> {
        let object = self.pool.get().await;
        Ok(Connection {
            object: Some(object.map_err(|error| Failure::of_pool(&error))?),
            database: self.clone(),
            open: false,
        })
    }

    /// Runs one statement on any connection and returns its rows.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Failure> {
        self.connection().await?.rows(sql, values).await
    }

    /// Runs one statement on any connection and converts each of its rows with `read`.
    pub(super) async fn read<T>(
        &self,
        select: Select,
        values: &[Value<'_>],
        read: impl Fn(&mut Reader<'_>) -> Result<T, Damaged>,
    ) -> Result<Vec<T>, Failure> {
        self.connection().await?.read(select, values, read).await
    }

    /// Awaits an answer for at most `answer_ms`; then the future is dropped.
    async fn answer<T>(
        &self,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let until = self.clock.boot().plus_ms(self.answer_ms);
        let answer = timeout_at(&*self.clock, until, asked).await;
        let late = || Failure::Unknown(format!("no answer in {} ms", self.answer_ms));
        let answer = answer.ok_or_else(late)?;
        answer.map_err(|error| Failure::of_statement(&error))
    }
}

/// One connection, given back to the pool when it is dropped. Dropped in the middle of a statement
/// or a transaction, the connection is closed instead.
pub(super) struct Connection {
    object: Option<Object>,
    database: Database,
    /// A statement without answer, or a transaction, is open.
    open: bool,
}

impl Connection {
    /// Runs one statement and returns its rows.
    ///
    /// # Errors
    /// [`Failure`]; after `Away` and `Unknown` the connection is gone.
    ///
    /// # Cancel safety
    /// The statement of a dropped call may have run.
    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let was_open = std::mem::replace(&mut self.open, true);
        let rows = self.ask(sql, values).await;
        if self.is_answered(&rows) {
            self.open = was_open;
        }
        rows
    }

    /// Runs one statement and converts each of its rows with `read`.
    pub(super) async fn read<T>(
        &mut self,
        (sql, table): Select,
        values: &[Value<'_>],
        read: impl Fn(&mut Reader<'_>) -> Result<T, Damaged>,
    ) -> Result<Vec<T>, Failure> {
        let rows = self.rows(sql, values).await?;
        let read = |row| read(&mut Reader::postgres(row, table));
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Runs one statement and converts its first row with `read`. None if it has no row.
    pub(super) async fn first<T>(
        &mut self,
        (sql, table): Select,
        values: &[Value<'_>],
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Damaged>,
    ) -> Result<Option<T>, Failure> {
        let rows = self.rows(sql, values).await?;
        let read = |row| read(&mut Reader::postgres(row, table));
        Ok(rows.first().map(read).transpose()?)
    }

    /// Runs one statement and reads the first column of its first row. None if it has no row.
    pub(super) async fn one<T: for<'a> Get<'a>>(
        &mut self,
        select: Select,
        values: &[Value<'_>],
    ) -> Result<Option<T>, Failure> {
        self.first(select, values, column).await
    }

    async fn ask(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, Failure> {
        let object = self.object.as_ref().ok_or_else(gone)?;
        let asked = async {
            if !self.database.is_prepared {
                return object.query_typed(sql, values).await;
            }
            let types: Vec<Type> = values.iter().map(|(_, kind)| kind.clone()).collect();
            let statement = object.prepare_typed_cached(sql, &types).await?;
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|(value, _)| *value).collect();
            object.query(&statement, &values).await
        };
        self.database.answer(asked).await
    }

    /// Runs statements without parameters.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        let was_open = std::mem::replace(&mut self.open, true);
        let object = self.object.as_ref().ok_or_else(gone)?;
        let ran = self.database.answer(object.batch_execute(sql)).await;
        if self.is_answered(&ran) {
            self.open = was_open;
        }
        ran
    }

    /// Tells whether the server answered a call. If not, closes the connection.
    fn is_answered<T>(&mut self, done: &Result<T, Failure>) -> bool {
        match done {
            Err(Failure::Away(_) | Failure::Standby | Failure::Unknown(_)) => {
                self.give_up();
                false
            }
            Ok(_) | Err(Failure::Full(_) | Failure::Refused { .. } | Failure::Damaged(_)) => true,
        }
    }

    /// Tells whether it may be kept for later: it works, is idle, and no caller waits for one.
    pub(super) fn may_stay(&self) -> bool {
        let object = self.object.as_ref();
        let works = object.is_some_and(|object| !object.is_closed());
        works && !self.open && self.database.pool.status().waiting == 0
    }

    pub(super) fn in_transaction(&self) -> bool {
        self.open
    }

    /// Opens a transaction. Dropped before its end, the connection is closed.
    pub(super) async fn begin(&mut self, sql: &str) -> Result<(), Failure> {
        // Before it is asked for: what is refused in the middle of it may have begun it.
        self.open = true;
        self.run(sql).await
    }

    /// Opens a transaction that has locks between its statements. A server that stops in the middle
    /// of it, or loses its connection without notice, keeps them for no longer than [`IDLE_MS`].
    pub(super) async fn begin_write(&mut self) -> Result<(), Failure> {
        let idle = format!("SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}");
        let lock = format!("SET LOCAL lock_timeout = {LOCK_MS}");
        self.begin(&format!("BEGIN; {idle}; {lock}")).await
    }

    /// Ends a transaction with COMMIT.
    ///
    /// # Errors
    /// `Unknown` when the connection broke: it may be committed.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.run("COMMIT").await?;
        self.open = false;
        Ok(())
    }

    /// Ends a transaction with ROLLBACK. If that fails, closes the connection: that ends it, too.
    pub(super) async fn roll_back(&mut self) {
        if self.run("ROLLBACK").await.is_ok() {
            self.open = false;
        } else {
            self.give_up();
        }
    }

    /// Ends a transaction: with COMMIT if what was done in it succeeded, with ROLLBACK if not.
    ///
    /// # Errors
    /// That of `done`, or of the COMMIT.
    pub(super) async fn finish<T>(&mut self, done: Result<T, Failure>) -> Result<T, Failure> {
        if done.is_ok() {
            self.commit().await?;
        } else {
            self.roll_back().await;
        }
        done
    }

    /// Closes the connection.
    fn give_up(&mut self) {
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }

    /// Returns the driver's client, for the migration. Fails if the connection is closed.
    pub(super) fn driver(&mut self) -> Result<&mut tokio_postgres::Client, Failure> {
        let object = self.object.as_mut();
        object.map(|object| &mut ***object).ok_or_else(gone)
    }
}

fn gone() -> Failure {
    Failure::Away("the connection is closed".to_owned())
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.open {
            self.give_up();
        }
    }
}
