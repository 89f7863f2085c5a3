-- Rows as they travel: a statement gets many of them as one array. One value to unfold, where a list
-- for each column would be a dozen. Servers look these types up when they start.

-- What a decision was made on: a unit; a holder or a booking, by key or id.
CREATE TYPE seen_unit AS (unit_no integer, version bigint);
CREATE TYPE seen_row AS (key bytea, version bigint);

-- What it leaves behind. Columns are those of the tables.
CREATE TYPE unit_row AS (
    unit_no  integer,
    state    smallint,
    owner    bytea,
    until    bigint,
    fence    bigint,
    version  bigint
);

CREATE TYPE hold_row AS (
    id              bytea,
    is_new          boolean,
    caller          bytea,
    holder          text,
    state           smallint,
    booking         bytea,
    reason          text,
    fence           bigint,
    units           bytea,
    created_at      bigint,
    expires_at      bigint,
    max_expires_at  bigint,
    together        boolean
);

CREATE TYPE audit_row AS (
    unit_no     integer,
    version     bigint,
    command     integer,
    n           integer,
    from_state  smallint,
    from_owner  bytea,
    from_until  bigint,
    to_state    smallint,
    to_owner    bytea,
    to_until    bigint,
    fence       bigint,
    cause       smallint,
    hold        bytea,
    actor       bytea,
    request     text,
    reason      text
);

CREATE TYPE holder_row AS (
    key      bytea,
    caller   bytea,
    holder   text,
    bought   integer,
    version  bigint                     -- before; 0 for one who has no row
);

CREATE TYPE booking_row AS (
    id              bytea,
    caller          bytea,
    holder          text,
    holder_key      bytea,
    hold            bytea,
    state           smallint,
    fence           bigint,
    reference       text,
    payment         smallint,
    created_at      bigint,
    confirmed_at    bigint,
    payment_detail  text
);

CREATE TYPE line_row AS (
    booking  bytea,
    n        integer,
    unit_no  integer,
    price    bigint,
    version  bigint,
    state    smallint
);

CREATE TYPE idempotency_row AS (
    key          bytea,
    fingerprint  bytea,
    kind         smallint,
    subject      bytea,
    body         bytea
);

CREATE TYPE effect_row AS (kind smallint, booking bytea, amount bigint, total bigint);

CREATE TYPE message_row AS (message bytea, kind smallint, subject bytea, body text);

-- As it was, in a language that plans it once for each connection, not once for each row.
CREATE OR REPLACE FUNCTION shifted_xid() RETURNS xid8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (pg_current_xact_id()::text::bigint + (SELECT shift FROM sequencer WHERE one = 1))::text::xid8;
END $$;
