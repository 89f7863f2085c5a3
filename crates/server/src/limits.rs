//! Every bound of the server. What has no bound fails under load, and only then.

/// Connections that the kernel keeps until they are accepted; further ones try again after a second. The
/// system may allow fewer (`net.core.somaxconn`).
pub const LISTEN_BACKLOG: u32 = 4_096;
/// Most connections served at once. For a further one the connection that is idle for longest ends;
/// without one, that which withholds the body of its request for longest.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Most connections at once of one address (IPv6: of one /64 network); further ones are closed. The
/// addresses of trusted proxies are not counted.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = CONNECTIONS_MAX / 8;
/// Largest head of a request, in bytes: request line and header fields (HTTP/2: decoded list). On
/// HTTP/1 it is also the size of a connection's read buffer.
pub const HEADER_BYTES_MAX: u16 = 16 * 1_024;
/// Most header fields of one request; one more is 431.
pub const HEADER_FIELDS_MAX: usize = 64;
/// Longest wait for a whole request head once the connection is open or its first byte came.
pub const HEADER_READ_MS_MAX: u64 = 10_000;
/// Longest silence of a kept-alive connection between two requests.
pub const CONNECTION_IDLE_MS_MAX: u64 = 75_000;
/// Longest time a peer may refuse to read while an answer waits for it.
pub const WRITE_STALL_MS_MAX: u64 = 30_000;
/// Longest time that what was sent may be without the peer's acknowledgement.
pub const UNACKNOWLEDGED_MS_MAX: u32 = 30_000;
/// Most bytes of an answer that an HTTP/2 stream takes at once: each such piece is progress.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1_024;
/// Size of the last piece, which is not seen to be taken.
pub const ANSWER_TAIL_BYTES: usize = 1_024;
/// Longest rest of a request's body, in bytes, that is read after an early answer so that the
/// connection is used again.
pub const LEFTOVER_KEPT_BYTES_MAX: u64 = 256 * 1_024;
/// Longest rest that is read at all, so that the client sees its answer before the close.
pub const LEFTOVER_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// Longest time that a rest is waited for.
pub const LEFTOVER_READ_MS_MAX: u64 = 5_000;
/// A request that takes as long is a warning in the log, milliseconds.
pub const SLOW_REQUEST_MS: u64 = 1_000;
/// Longest wait of the [`Client`](crate::Client) for an answer, milliseconds.
pub const CLIENT_WAIT_MS: u64 = 10_000;
/// Largest answer that it reads, bytes.
pub const CLIENT_ANSWER_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Longest wait for requests in flight after shutdown began. The process promises to be gone in ten
/// seconds; the rest is for commands without callers and the ledger.
pub const DRAIN_MS_MAX: u64 = 8_000;

/// Most HTTP/2 requests under way at once. Above this and the next three, a connection has one at a
/// time: further ones are answered 429 without a body, as a closed window holds no head back.
pub const HTTP2_REQUESTS_MAX: u64 = 16_384;
/// Most HTTP/2 requests under way at once of one address that is no trusted proxy.
pub const HTTP2_REQUESTS_PER_ADDRESS_MAX: u64 = 1_024;
/// Most bytes of HTTP/2 answers that wait to be taken.
pub const ANSWER_BYTES_MAX: u64 = 256 * 1_024 * 1_024;
/// Most bytes of HTTP/2 answers that wait to be taken by one address that is no trusted proxy.
pub const ANSWER_BYTES_PER_ADDRESS_MAX: u64 = 32 * 1_024 * 1_024;
/// Most memory that connections take, bytes: 224 KiB for each, 16 KiB for each HTTP/2 request under way,
/// and what waits of answers.
pub const CONNECTIONS_MEMORY_BYTES_MAX: u64 =
    CONNECTIONS_MAX as u64 * 224 * 1_024 + HTTP2_REQUESTS_MAX * 16 * 1_024 + ANSWER_BYTES_MAX;
/// Most streams of one HTTP/2 connection at once.
pub const HTTP2_STREAMS_MAX: u32 = 128;
/// Most streams reset by the peer before they were accepted (rapid reset); more end the connection.
pub const HTTP2_RESETS_PENDING_MAX: usize = 20;
/// Most streams reset by us because the peer broke the protocol; more end the connection.
pub const HTTP2_RESETS_LOCAL_MAX: usize = 128;
/// Largest send buffer of one HTTP/2 stream, in bytes.
pub const HTTP2_SEND_BUFFER_BYTES_MAX: usize = 64 * 1_024;
/// Period of HTTP/2 pings on a silent connection.
pub const HTTP2_PING_MS: u64 = 20_000;
/// Longest wait for the answer to an HTTP/2 ping.
pub const HTTP2_PING_ANSWER_MS_MAX: u64 = 10_000;

/// Largest body of a request, in bytes (api.md 2).
pub const BODY_BYTES_MAX: usize = 64 * 1_024;
/// Largest body of a command of staff that names units, in bytes (api.md 2): room for as many as such a command
/// may have.
pub const UNITS_BODY_BYTES_MAX: usize = 1_024 * 1_024;
/// Longest wait for commands whose callers hung up, after shutdown began.
pub const COMMANDS_END_MS: u64 = 8_700;
/// Largest body that carries a chart, in bytes (api.md 2).
pub const CHART_BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Longest wait for a request's whole body; a body with a chart may take [`CHART_BODY_READ_MS_MAX`].
pub const BODY_READ_MS_MAX: u64 = 10_000;
/// Longest wait for a whole body that may carry a chart.
pub const CHART_BODY_READ_MS_MAX: u64 = 60_000;
/// Bodies with a chart above this size are parsed away from the threads that serve connections.
pub const INLINE_PARSE_BYTES_MAX: usize = BODY_BYTES_MAX;
/// Longest request id that is taken over from the caller.
pub const REQUEST_ID_BYTES_MAX: usize = 64;
/// Longest idempotency key (api.md 3).
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Most streams at once: feeds, watched leases, gRPC.
pub const STREAMS_MAX: usize = CONNECTIONS_MAX;
/// Most such streams at once of one address.
pub const STREAMS_PER_ADDRESS_MAX: usize = 256;
/// New sessions of one address in a minute: an office behind one address comes in, a script that
/// wants the quotas of many sessions waits.
pub const RATE_SESSIONS_PER_MINUTE: u32 = 300;
/// Commands of one session in a minute: more than a person clicks.
pub const RATE_COMMANDS_PER_MINUTE: u32 = 120;
/// Commands of all sessions at one address in a minute: twenty shoppers who click without a pause.
pub const RATE_ADDRESS_COMMANDS_PER_MINUTE: u32 = 1_200;
/// Holds of one address that may end unpaid by their time in an hour; then new ones wait.
pub const RATE_LAPSES_PER_HOUR: u32 = 60;
/// Units that shoppers at one address may hold at once: ten full budgets of a holder.
pub const HELD_UNITS_PER_ADDRESS_MAX: u32 = 200;
/// Percent of the units of an event that shoppers at one address may hold at once.
pub const HELD_SHARE_PERCENT_MAX: u32 = 10;
/// Payments that shoppers at one address may have under way at once.
pub const CHECKOUTS_PER_ADDRESS_MAX: u32 = 20;
/// Holds that are counted by address at once, in 64 bytes each; further ones are not counted.
pub const HELD_ENTRIES_MAX: usize = 256 * 1_024;
/// Shortest time between two looks at all holds of an address that holds as much as it may.
pub const HELD_LOOK_MS: u64 = 1_000;
/// Reads of one address in a minute: a page takes a few when it opens, so this is an office too.
pub const RATE_READS_PER_MINUTE: u32 = 6_000;
/// Acquires of leases by one API key in a minute: a hundred a second.
pub const RATE_ACQUIRES_PER_MINUTE: u32 = 6_000;
/// Shortest ttl of a lease (api.md 7), milliseconds.
pub const LEASE_TTL_MS_MIN: u64 = 1_000;
/// Longest ttl of a lease (api.md 7), milliseconds.
pub const LEASE_TTL_MS_MAX: u64 = 86_400_000;
/// Longest wait for a lease (api.md 7), milliseconds.
pub const LEASE_WAIT_MS_MAX: u64 = 30_000;
/// The cap of a lease that was asked for without one, milliseconds; a longer ttl is one itself.
pub const LEASE_CAP_MS_DEFAULT: u64 = 900_000;
/// Longest cap of a lease (lease.md 2), milliseconds.
pub const LEASE_CAP_MS_MAX: u64 = 30 * 86_400_000;
/// Most live leases of one API key at one server.
pub const LEASES_PER_KEY_MAX: u32 = 1_000;
/// Period at which a watched lease is looked at, milliseconds.
pub const LEASE_LOOK_MS: u64 = 500;
/// Callers that are counted at once, in 32 bytes each.
pub const RATE_CALLERS_MAX: usize = 128 * 1_024;
/// Callers among whom the one who used least gives way to a new one.
pub const RATE_SET_CALLERS: usize = 8;
/// Parts of the table that can be changed at the same time.
pub const RATE_SHARDS: usize = 64;
/// Period of the comments that keep a quiet feed stream open.
pub const STREAM_KEEP_ALIVE_MS: u64 = 15_000;
/// Least time between two frames of a feed, milliseconds.
pub const FEED_TICK_MS: u64 = 100;
/// Least such time that an operator may set, milliseconds.
pub const FEED_TICK_MS_MIN: u64 = 10;
/// Most time between two frames of a feed, milliseconds: under load, or as an operator sets it.
pub const FEED_TICK_MS_MAX: u64 = 1_000;
/// How many times as long as a frame took to reach its last reader the next one comes after it: two
/// thirds of the time are left to other work.
pub const FEED_REST_FACTOR: u32 = 3;
/// Largest frame, in bytes: what may wait for a reader. In place of a larger one it is asked to take a new
/// snapshot.
pub const FRAME_BYTES_MAX: usize = 256 * 1_024;
/// Most changes of several commits that are merged for one reader that polls; one that lacks more takes a new
/// snapshot.
pub const POLLED_CHANGES_MAX: usize = 4_096;
/// Bytes of frames of one event that are kept until its next tick for readers that were behind.
pub const FRAMES_SHARED_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// Bytes that an entry of these takes besides its text.
pub const FRAMES_SHARED_ENTRY_BYTES: usize = 128;
/// Shortest time after which a browser opens a broken stream again, milliseconds.
pub const STREAM_RETRY_MS_MIN: u64 = 1_000;
/// Spread of these times, milliseconds.
pub const STREAM_RETRY_MS_SPREAD: u64 = 4_000;
/// Period at which a watcher of the health service looks again.
pub const HEALTH_LOOK_MS: u64 = 1_000;
/// Entries in one page of a list.
pub const PAGE_MAX: u64 = 100;
/// Bytes of rendered snapshots and charts that are kept for the next reader, each.
pub const RENDERED_BYTES_MAX: usize = 256 * 1_024 * 1_024;
/// Seats above which a snapshot is rendered away from the threads that serve connections.
pub const INLINE_RENDER_SEATS_MAX: u32 = 10_000;
/// How many times as long as it took to render a snapshot the next one waits, up to
/// [`RENDER_PAUSE_MS_MAX`]: while commits and readers are many, this bounds their share of a core.
pub const RENDER_PAUSE_TIMES: u32 = 7;
/// The longest such wait.
pub const RENDER_PAUSE_MS_MAX: u64 = 100;
/// How long a shared cache may keep seats and frames where reads need no key, seconds.
pub const SEATS_MAX_AGE_S: u64 = 1;
/// How long a browser may keep a chart, seconds. A chart never changes under its event.
pub const CHART_MAX_AGE_S: u64 = 3_600;

/// Smallest answer, in bytes, that is worth a coding.
pub const CODED_BYTES_MIN: u64 = 1_024;
/// Largest answer of one caller, in bytes, that is coded for it alone.
pub const CODED_ANSWER_BYTES_MAX: u64 = 1_024 * 1_024;
/// Window of brotli, as a power of two: what every browser takes.
pub const BROTLI_WINDOW_BITS: u32 = 22;
/// Size of the buffer between an answer and its coding, in bytes.
pub const CODING_BUFFER_BYTES: usize = 64 * 1_024;
/// How long a file of the page may be kept whose path names its build, seconds.
pub const FILE_MAX_AGE_S: u64 = 31_536_000;
/// Largest body of a payment provider's notice, in bytes.
pub const NOTICE_BYTES_MAX: usize = soldonce_engine::payment::limits::STRIPE_NOTICE_BYTES_MAX;
/// Shortest time between two log lines of a kind that strangers can cause.
pub const LOG_PERIOD_MS: u64 = 60_000;
/// First pause after `accept` failed (out of file descriptors, mostly); doubled at each failure.
pub const ACCEPT_BACKOFF_MS_MIN: u64 = 10;
/// Longest pause after `accept` failed.
pub const ACCEPT_BACKOFF_MS_MAX: u64 = 1_000;
/// Longest period at which connections are looked at for the waits above.
pub const WATCH_MS_MAX: u64 = 500;
/// Shortest such period.
pub const WATCH_MS_MIN: u64 = 5;
/// Looks at a connection within the shortest wait: a wait ends at most two periods late.
pub const WATCHES_PER_WAIT: u64 = 4;

/// Header fields that hyper parses on its stack; a higher bound would cost two allocations per
/// request.
const HYPER_HEADER_FIELDS_MAX: usize = 100;
/// Smallest HTTP/1 buffer that hyper accepts, in bytes.
const HYPER_BUFFER_BYTES_MIN: usize = 8_192;
/// Longest pause that a buyer is told to make because the payment provider asks for it, milliseconds.
pub const PROVIDER_PAUSE_MS_MAX: u64 = 60_000;

const _: () = assert!(BODY_BYTES_MAX <= UNITS_BODY_BYTES_MAX);
const _: () = assert!(UNITS_BODY_BYTES_MAX <= CHART_BODY_BYTES_MAX);
const _: () = assert!(CODED_BYTES_MIN < CODED_ANSWER_BYTES_MAX);
const _: () = assert!(NOTICE_BYTES_MAX <= CHART_BODY_BYTES_MAX);
const _: () = assert!(BODY_BYTES_MAX as u64 <= LEFTOVER_KEPT_BYTES_MAX);
const _: () = assert!(LEFTOVER_KEPT_BYTES_MAX <= LEFTOVER_BYTES_MAX);
const _: () = assert!(LEFTOVER_READ_MS_MAX < DRAIN_MS_MAX && DRAIN_MS_MAX < COMMANDS_END_MS);
const _: () = assert!(ANSWER_TAIL_BYTES < ANSWER_PIECE_BYTES);
const _: () = assert!(CONNECTIONS_PER_ADDRESS_MAX <= CONNECTIONS_MAX);
const _: () = assert!(HTTP2_REQUESTS_PER_ADDRESS_MAX <= HTTP2_REQUESTS_MAX);
const _: () = assert!(ANSWER_BYTES_PER_ADDRESS_MAX <= ANSWER_BYTES_MAX);
const _: () = assert!(BODY_READ_MS_MAX <= CHART_BODY_READ_MS_MAX);
const _: () = assert!(STREAMS_PER_ADDRESS_MAX <= STREAMS_MAX);
const _: () = assert!(RATE_CALLERS_MAX.is_multiple_of(RATE_SHARDS * RATE_SET_CALLERS));
const _: () = assert!(STREAM_KEEP_ALIVE_MS < CONNECTION_IDLE_MS_MAX);
const _: () = assert!(FEED_TICK_MS_MIN <= FEED_TICK_MS && FEED_TICK_MS <= FEED_TICK_MS_MAX);
const _: () = assert!(FRAME_BYTES_MAX < FRAMES_SHARED_BYTES_MAX);
const _: () = assert!(HEADER_FIELDS_MAX <= HYPER_HEADER_FIELDS_MAX);
const _: () = assert!(HEADER_BYTES_MAX as usize >= HYPER_BUFFER_BYTES_MIN);
const _: () = assert!(HEADER_READ_MS_MAX < CONNECTION_IDLE_MS_MAX);
const _: () = assert!(WATCH_MS_MIN < WATCH_MS_MAX && WATCH_MS_MAX < HEADER_READ_MS_MAX);
const _: () = assert!(ACCEPT_BACKOFF_MS_MIN < ACCEPT_BACKOFF_MS_MAX);
