-- A database as the build of commit f21acfa left it: `pg_dump --inserts --no-owner --no-privileges`, without comments.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE TYPE public.audit_row AS (
	unit_no integer,
	version bigint,
	command integer,
	n integer,
	from_state smallint,
	from_owner bytea,
	from_until bigint,
	to_state smallint,
	to_owner bytea,
	to_until bigint,
	fence bigint,
	cause smallint,
	hold bytea,
	actor bytea,
	request text,
	reason text
);
CREATE TYPE public.booking_row AS (
	id bytea,
	caller bytea,
	holder text,
	holder_key bytea,
	hold bytea,
	state smallint,
	fence bigint,
	reference text,
	payment smallint,
	created_at bigint,
	confirmed_at bigint,
	payment_detail text
);
CREATE TYPE public.effect_row AS (
	kind smallint,
	booking bytea,
	amount bigint,
	total bigint
);
CREATE TYPE public.hold_row AS (
	id bytea,
	is_new boolean,
	caller bytea,
	holder text,
	state smallint,
	booking bytea,
	reason text,
	fence bigint,
	units bytea,
	created_at bigint,
	expires_at bigint,
	max_expires_at bigint,
	together boolean
);
CREATE TYPE public.holder_row AS (
	key bytea,
	caller bytea,
	holder text,
	bought integer,
	version bigint
);
CREATE TYPE public.idempotency_row AS (
	key bytea,
	fingerprint bytea,
	kind smallint,
	subject bytea,
	body bytea
);
CREATE TYPE public.line_row AS (
	booking bytea,
	n integer,
	unit_no integer,
	price bigint,
	version bigint,
	state smallint
);
CREATE TYPE public.message_row AS (
	message bytea,
	kind smallint,
	subject bytea,
	body text
);
CREATE TYPE public.seen_row AS (
	key bytea,
	version bigint
);
CREATE TYPE public.seen_unit AS (
	unit_no integer,
	version bigint
);
CREATE TYPE public.touched_unit AS (
	unit_no integer,
	seen bigint,
	state smallint,
	owner bytea,
	until bigint,
	fence bigint,
	version bigint
);
CREATE TYPE public.unit_row AS (
	unit_no integer,
	state smallint,
	owner bytea,
	until bigint,
	fence bigint,
	version bigint
);
CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_only_grows';
END $$;
CREATE FUNCTION public.refuse_step_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'unit % of event % would go back: fence % to %, version % to %, token % to %',
        OLD.unit_no, OLD.event_no, OLD.fence, NEW.fence, OLD.version, NEW.version, OLD.token, NEW.token
        USING ERRCODE = 'check_violation', CONSTRAINT = 'units_only_rise';
END $$;
CREATE FUNCTION public.require_rows(what text, written bigint, meant bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF written <> meant THEN
        RAISE EXCEPTION '% of % rows of % were written', written, meant, what
            USING ERRCODE = 'check_violation', CONSTRAINT = 'rows_as_meant';
    END IF;
    RETURN true;
END $$;
CREATE FUNCTION public.shifted_xid() RETURNS xid8
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN (pg_current_xact_id()::text::bigint + (SELECT shift FROM sequencer WHERE one = 1))::text::xid8;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_keys (
    id bytea NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    sha256 bytea NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
);
CREATE TABLE public.audit (
    event_no integer NOT NULL,
    unit_no integer NOT NULL,
    version bigint NOT NULL,
    batch bytea NOT NULL,
    command integer NOT NULL,
    n integer NOT NULL,
    at bigint NOT NULL,
    from_state smallint NOT NULL,
    from_owner bytea,
    from_until bigint,
    to_state smallint NOT NULL,
    to_owner bytea,
    to_until bigint,
    fence bigint NOT NULL,
    cause smallint NOT NULL,
    hold bytea,
    actor bytea,
    request text NOT NULL,
    reason text
);
CREATE TABLE public.events (
    event_no integer NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    starts_at bigint,
    currency text NOT NULL,
    chart_no bigint NOT NULL,
    prices text NOT NULL,
    policy text NOT NULL,
    cancelled text,
    created_at bigint NOT NULL,
    fingerprint bytea NOT NULL,
    version bigint NOT NULL
);
CREATE VIEW public.audit_in_words AS
 SELECT events.id AS event,
    audit.unit_no,
    audit.version,
    to_timestamp((((audit.at)::numeric / 1000.0))::double precision) AS at,
    (ARRAY['held'::text, 'extended'::text, 'changed'::text, 'pinned'::text, 'unpinned'::text, 'released'::text, 'expired'::text, 'revoked'::text, 'confirmed'::text, 'sold_directly'::text, 'cancelled'::text, 'exchanged'::text, 'blocked'::text, 'unblocked'::text])[(audit.cause + 1)] AS cause,
    encode(audit.hold, 'hex'::text) AS hold,
    encode(audit.to_owner, 'hex'::text) AS owner,
    audit.fence,
    encode(audit.actor, 'hex'::text) AS actor,
    audit.request,
    audit.reason
   FROM (public.audit
     JOIN public.events USING (event_no));
CREATE TABLE public.batches (
    id bytea NOT NULL,
    event_no integer NOT NULL,
    server bytea NOT NULL,
    xid xid8 DEFAULT public.shifted_xid() NOT NULL,
    place bigint NOT NULL,
    at bigint NOT NULL,
    commands integer NOT NULL,
    renews boolean NOT NULL,
    units integer[] NOT NULL,
    versions bigint[] NOT NULL,
    holds bytea[] NOT NULL,
    bookings bytea[] NOT NULL,
    holders bytea[] NOT NULL
)
WITH (toast_tuple_target='8160');
CREATE TABLE public.bookings (
    id bytea NOT NULL,
    event_no integer NOT NULL,
    caller bytea NOT NULL,
    holder text NOT NULL,
    holder_key bytea NOT NULL,
    hold bytea,
    state smallint NOT NULL,
    fence bigint NOT NULL,
    reference text,
    payment smallint,
    created_at bigint NOT NULL,
    confirmed_at bigint,
    version bigint NOT NULL,
    payment_detail text,
    CONSTRAINT bookings_state_check CHECK (((state >= 0) AND (state <= 7)))
)
WITH (fillfactor='80');
CREATE TABLE public.charts (
    chart_no bigint NOT NULL,
    document bytea NOT NULL,
    sha256 bytea NOT NULL,
    units integer NOT NULL,
    digest bytea NOT NULL
);
CREATE TABLE public.clock (
    one integer NOT NULL,
    at bigint NOT NULL,
    ahead bigint DEFAULT 0 NOT NULL,
    CONSTRAINT clock_one_check CHECK ((one = 1))
)
WITH (fillfactor='10');
CREATE TABLE public.deliveries (
    n bigint NOT NULL,
    endpoint bytea NOT NULL,
    message bytea NOT NULL,
    kind smallint NOT NULL,
    subject bytea NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    status integer,
    problem text,
    tried_at bigint,
    next_at bigint,
    taken_by bytea,
    taken_until bigint DEFAULT 0 NOT NULL,
    CONSTRAINT deliveries_state_check CHECK (((state >= 0) AND (state <= 2)))
);
ALTER TABLE public.deliveries ALTER COLUMN n ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.deliveries_n_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.feed (
    n bigint NOT NULL,
    event_no integer NOT NULL,
    first_seq bigint NOT NULL,
    commands integer NOT NULL,
    batch bytea NOT NULL,
    hash bytea NOT NULL
);
CREATE TABLE public.feed_heads (
    event_no integer NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.holders (
    event_no integer NOT NULL,
    key bytea NOT NULL,
    caller bytea NOT NULL,
    holder text NOT NULL,
    bought integer NOT NULL,
    version bigint NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE public.holds (
    id bytea NOT NULL,
    event_no integer NOT NULL,
    caller bytea NOT NULL,
    holder text NOT NULL,
    state smallint NOT NULL,
    booking bytea,
    reason text,
    fence bigint NOT NULL,
    units bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    max_expires_at bigint NOT NULL,
    together boolean,
    CONSTRAINT holds_state_check CHECK (((state >= 0) AND (state <= 5)))
)
WITH (fillfactor='80');
CREATE TABLE public.idempotency (
    key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    at bigint NOT NULL,
    kind smallint NOT NULL,
    subject bytea NOT NULL,
    body bytea NOT NULL
);
CREATE TABLE public.lines (
    booking bytea NOT NULL,
    n integer NOT NULL,
    event_no integer NOT NULL,
    unit_no integer NOT NULL,
    price bigint NOT NULL,
    version bigint NOT NULL,
    state smallint NOT NULL,
    CONSTRAINT lines_state_check CHECK (((state >= 0) AND (state <= 2)))
);
CREATE TABLE public.master_keys (
    version integer NOT NULL,
    secret bytea NOT NULL
);
CREATE TABLE public.outbox (
    n bigint NOT NULL,
    at bigint NOT NULL,
    kind smallint NOT NULL,
    booking bytea NOT NULL,
    amount bigint,
    done_at bigint,
    total bigint,
    taken_by bytea,
    taken_until bigint DEFAULT 0 NOT NULL
);
ALTER TABLE public.outbox ALTER COLUMN n ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_n_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE public.places
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.sequencer (
    one integer NOT NULL,
    xid bigint NOT NULL,
    n bigint NOT NULL,
    shift bigint DEFAULT 0 NOT NULL,
    CONSTRAINT sequencer_one_check CHECK ((one = 1))
)
WITH (fillfactor='10');
CREATE TABLE public.soldonce_migrations (
    version integer NOT NULL,
    name character varying(255),
    applied_on character varying(255),
    checksum character varying(255)
);
CREATE TABLE public.units (
    event_no integer NOT NULL,
    unit_no integer NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    owner bytea,
    until bigint,
    fence bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    CONSTRAINT units_check CHECK ((((owner IS NOT NULL) = (state = ANY (ARRAY[1, 2]))) AND ((until IS NOT NULL) = (state = 1)))),
    CONSTRAINT units_state_check CHECK (((state >= 0) AND (state <= 3)))
)
WITH (autovacuum_vacuum_scale_factor='0.05', fillfactor='42');
CREATE VIEW public.units_in_words AS
 SELECT events.id AS event,
    units.unit_no,
    (ARRAY['free'::text, 'held'::text, 'sold'::text, 'blocked'::text])[(units.state + 1)] AS state,
    encode(units.owner, 'hex'::text) AS owner,
    to_timestamp((((units.until)::numeric / 1000.0))::double precision) AS until,
    units.fence,
    units.version
   FROM (public.units
     JOIN public.events USING (event_no));
CREATE TABLE public.webhook_endpoints (
    id bytea NOT NULL,
    url text NOT NULL,
    kinds integer NOT NULL,
    rotation integer NOT NULL,
    rotated_at bigint,
    created_at bigint NOT NULL,
    disabled_at bigint,
    quiet_until bigint
);
INSERT INTO public.api_keys VALUES ('\x01a20ef118854d00a4952b88d7727f5c', 'admin', 'admin', '\xd5684b232f7cd5e39146bf0240fb50b2f3b01b0cdc674faa3377680fad40b275', 1795547011204, NULL);
INSERT INTO public.api_keys VALUES ('\x01a20ef118aef46de8261815485085e0', 'door', 'sell', '\x311184ec0f8f19c14f1a052755fe4a3da6430f891566955301d76e3a99d217af', 1795547011246, NULL);
INSERT INTO public.audit VALUES (0, 0, 1, '\x01a20ef119d6000000000293d36b7ba2', 0, 0, 1795547011602, 0, NULL, NULL, 1, '\x01a20ef119d3aa349f7a7364671d9ab6', 1795547611533, 1, 0, '\x01a20ef119d3aa349f7a7364671d9ab6', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-7', NULL);
INSERT INTO public.audit VALUES (0, 1, 1, '\x01a20ef119d6000000000293d36b7ba2', 0, 1, 1795547011602, 0, NULL, NULL, 1, '\x01a20ef119d3aa349f7a7364671d9ab6', 1795547611533, 1, 0, '\x01a20ef119d3aa349f7a7364671d9ab6', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-7', NULL);
INSERT INTO public.audit VALUES (0, 2, 1, '\x01a20ef11a46000000000393d36b7ba2', 0, 0, 1795547011661, 0, NULL, NULL, 1, '\x01a20ef11a3e4275aa393c317ef4ad9e', 1795547611652, 1, 0, '\x01a20ef11a3e4275aa393c317ef4ad9e', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-8', NULL);
INSERT INTO public.audit VALUES (0, 3, 1, '\x01a20ef11a66000000000493d36b7ba2', 0, 0, 1795547011700, 0, NULL, NULL, 1, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547611677, 1, 0, '\x01a20ef11a5f5aacb428a89f2fe91e1c', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-9', NULL);
INSERT INTO public.audit VALUES (0, 4, 1, '\x01a20ef11a66000000000493d36b7ba2', 0, 1, 1795547011700, 0, NULL, NULL, 1, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547611677, 1, 0, '\x01a20ef11a5f5aacb428a89f2fe91e1c', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-9', NULL);
INSERT INTO public.audit VALUES (0, 5, 1, '\x01a20ef11a86000000000593d36b7ba2', 0, 0, 1795547011722, 0, NULL, NULL, 1, '\x01a20ef11a83effa869f6b8760077dc8', 1795547611708, 1, 0, '\x01a20ef11a83effa869f6b8760077dc8', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-a', NULL);
INSERT INTO public.audit VALUES (0, 6, 1, '\x01a20ef11a9f000000000693d36b7ba2', 0, 0, 1795547011746, 0, NULL, NULL, 1, '\x01a20ef11a9fc6b84824338b5740413f', 1795547611731, 1, 0, '\x01a20ef11a9fc6b84824338b5740413f', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-b', NULL);
INSERT INTO public.audit VALUES (0, 7, 1, '\x01a20ef11a9f000000000693d36b7ba2', 0, 1, 1795547011746, 0, NULL, NULL, 1, '\x01a20ef11a9fc6b84824338b5740413f', 1795547611731, 1, 0, '\x01a20ef11a9fc6b84824338b5740413f', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-b', NULL);
INSERT INTO public.audit VALUES (0, 0, 2, '\x01a20ef11aab000000000793d36b7ba2', 0, 0, 1795547011762, 1, '\x01a20ef119d3aa349f7a7364671d9ab6', 1795547611533, 2, '\x01a20ef11aaac0ae3bfcc753c8084285', NULL, 1, 8, '\x01a20ef119d3aa349f7a7364671d9ab6', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-c', NULL);
INSERT INTO public.audit VALUES (0, 1, 2, '\x01a20ef11aab000000000793d36b7ba2', 0, 1, 1795547011762, 1, '\x01a20ef119d3aa349f7a7364671d9ab6', 1795547611533, 2, '\x01a20ef11aaac0ae3bfcc753c8084285', NULL, 1, 8, '\x01a20ef119d3aa349f7a7364671d9ab6', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-c', NULL);
INSERT INTO public.audit VALUES (0, 3, 2, '\x01a20ef11ac0000000000893d36b7ba2', 0, 0, 1795547011777, 1, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547611677, 2, '\x01a20ef11abff5b64310f5087d9289cf', NULL, 1, 8, '\x01a20ef11a5f5aacb428a89f2fe91e1c', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-d', NULL);
INSERT INTO public.audit VALUES (0, 4, 2, '\x01a20ef11ac0000000000893d36b7ba2', 0, 1, 1795547011777, 1, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547611677, 2, '\x01a20ef11abff5b64310f5087d9289cf', NULL, 1, 8, '\x01a20ef11a5f5aacb428a89f2fe91e1c', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-d', NULL);
INSERT INTO public.audit VALUES (0, 3, 3, '\x01a20ef11adf000000000993d36b7ba2', 0, 0, 1795547011809, 2, '\x01a20ef11abff5b64310f5087d9289cf', NULL, 0, NULL, NULL, 2, 10, NULL, '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-e', NULL);
INSERT INTO public.audit VALUES (0, 2, 2, '\x01a20ef11aff000000000a93d36b7ba2', 0, 0, 1795547011840, 1, '\x01a20ef11a3e4275aa393c317ef4ad9e', 1795547611652, 0, NULL, NULL, 1, 5, '\x01a20ef11a3e4275aa393c317ef4ad9e', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-f', NULL);
INSERT INTO public.audit VALUES (0, 5, 2, '\x01a20ef11b0b000000000b93d36b7ba2', 0, 0, 1795547011858, 1, '\x01a20ef11a83effa869f6b8760077dc8', 1795547611708, 0, NULL, NULL, 1, 7, '\x01a20ef11a83effa869f6b8760077dc8', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-10', 'a bot');
INSERT INTO public.audit VALUES (0, 10, 1, '\x01a20ef11b20000000000c93d36b7ba2', 0, 0, 1795547011878, 0, NULL, NULL, 3, NULL, NULL, 0, 12, NULL, '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-11', 'camera');
INSERT INTO public.audit VALUES (0, 20, 1, '\x01a20ef11b2f000000000d93d36b7ba2', 0, 0, 1795547011888, 0, NULL, NULL, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611887, 1, 0, '\x01a20ef11b2f7a7c332186f3457af6fe', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-12', NULL);
INSERT INTO public.audit VALUES (0, 21, 1, '\x01a20ef11b2f000000000d93d36b7ba2', 0, 1, 1795547011888, 0, NULL, NULL, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611887, 1, 0, '\x01a20ef11b2f7a7c332186f3457af6fe', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-12', NULL);
INSERT INTO public.audit VALUES (0, 20, 2, '\x01a20ef11b42000000000e93d36b7ba2', 0, 0, 1795547011910, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611887, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611892, 1, 3, '\x01a20ef11b2f7a7c332186f3457af6fe', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-13', NULL);
INSERT INTO public.audit VALUES (0, 21, 2, '\x01a20ef11b42000000000e93d36b7ba2', 0, 1, 1795547011910, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611887, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611892, 1, 3, '\x01a20ef11b2f7a7c332186f3457af6fe', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-13', NULL);
INSERT INTO public.audit VALUES (0, 22, 1, '\x01a20ef11e63000000000f93d36b7ba2', 0, 0, 1795547012708, 0, NULL, NULL, 1, '\x01a20ef11e62e4486b23209846c39221', 1795547612707, 1, 0, '\x01a20ef11e62e4486b23209846c39221', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-14', NULL);
INSERT INTO public.audit VALUES (0, 22, 2, '\x01a20ef11e67000000001093d36b7ba2', 0, 0, 1795547012720, 1, '\x01a20ef11e62e4486b23209846c39221', 1795547612707, 1, '\x01a20ef11e62e4486b23209846c39221', 1795547612710, 1, 3, '\x01a20ef11e62e4486b23209846c39221', '\x01a20ef118854d00a4952b88d7727f5c', 'req_rmc1kfkxec2x-15', NULL);
INSERT INTO public.batches VALUES ('\x01a20ef1191a000000000093d36b7ba2', 1, '\xae1846874e02d82870a3a193d36b7ba2', '746', 1, 1795547011419, 0, true, '{}', '{}', '{}', '{}', '{}');
INSERT INTO public.batches VALUES ('\x01a20ef11968000000000193d36b7ba2', 1, '\xae1846874e02d82870a3a193d36b7ba2', '749', 2, 1795547011524, 0, true, '{}', '{}', '{}', '{}', '{}');
INSERT INTO public.batches VALUES ('\x01a20ef119d6000000000293d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '753', 3, 1795547011602, 1, false, '{0,1}', '{1,1}', '{"\\x01a20ef119d3aa349f7a7364671d9ab6"}', '{}', '{"\\x0674a1533b40d74738c6d5f2fce0f374"}');
INSERT INTO public.batches VALUES ('\x01a20ef11a46000000000393d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '755', 4, 1795547011661, 1, false, '{2}', '{1}', '{"\\x01a20ef11a3e4275aa393c317ef4ad9e"}', '{}', '{"\\x52d328e9d8b4143f326e90e962ba9127"}');
INSERT INTO public.batches VALUES ('\x01a20ef11a66000000000493d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '757', 5, 1795547011700, 1, false, '{3,4}', '{1,1}', '{"\\x01a20ef11a5f5aacb428a89f2fe91e1c"}', '{}', '{"\\xa894eb5aa18c32f1680593fad974abbc"}');
INSERT INTO public.batches VALUES ('\x01a20ef11a86000000000593d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '759', 6, 1795547011722, 1, false, '{5}', '{1}', '{"\\x01a20ef11a83effa869f6b8760077dc8"}', '{}', '{"\\xa73a63dc3b6e468f479cf9bec4ffab8f"}');
INSERT INTO public.batches VALUES ('\x01a20ef11a9f000000000693d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '760', 7, 1795547011746, 1, false, '{6,7}', '{1,1}', '{"\\x01a20ef11a9fc6b84824338b5740413f"}', '{}', '{"\\x1cfa51b884922d7783718c2d7503ffb9"}');
INSERT INTO public.batches VALUES ('\x01a20ef11aab000000000793d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '761', 8, 1795547011762, 1, false, '{0,1}', '{2,2}', '{"\\x01a20ef119d3aa349f7a7364671d9ab6"}', '{"\\x01a20ef11aaac0ae3bfcc753c8084285"}', '{"\\x0674a1533b40d74738c6d5f2fce0f374"}');
INSERT INTO public.batches VALUES ('\x01a20ef11ac0000000000893d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '762', 9, 1795547011777, 1, false, '{3,4}', '{2,2}', '{"\\x01a20ef11a5f5aacb428a89f2fe91e1c"}', '{"\\x01a20ef11abff5b64310f5087d9289cf"}', '{"\\xa894eb5aa18c32f1680593fad974abbc"}');
INSERT INTO public.batches VALUES ('\x01a20ef11adf000000000993d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '765', 10, 1795547011809, 1, false, '{3}', '{3}', '{}', '{"\\x01a20ef11abff5b64310f5087d9289cf"}', '{"\\xa894eb5aa18c32f1680593fad974abbc"}');
INSERT INTO public.batches VALUES ('\x01a20ef11aff000000000a93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '767', 11, 1795547011840, 1, false, '{2}', '{2}', '{"\\x01a20ef11a3e4275aa393c317ef4ad9e"}', '{}', '{}');
INSERT INTO public.batches VALUES ('\x01a20ef11b0b000000000b93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '769', 12, 1795547011858, 1, false, '{5}', '{2}', '{"\\x01a20ef11a83effa869f6b8760077dc8"}', '{}', '{}');
INSERT INTO public.batches VALUES ('\x01a20ef11b20000000000c93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '772', 13, 1795547011878, 1, false, '{10}', '{1}', '{}', '{}', '{}');
INSERT INTO public.batches VALUES ('\x01a20ef11b2f000000000d93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '773', 14, 1795547011888, 1, false, '{20,21}', '{1,1}', '{"\\x01a20ef11b2f7a7c332186f3457af6fe"}', '{}', '{"\\xc0a20b45bfd713312c10871e11b0f721"}');
INSERT INTO public.batches VALUES ('\x01a20ef11b42000000000e93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '776', 15, 1795547011910, 1, false, '{20,21}', '{2,2}', '{"\\x01a20ef11b2f7a7c332186f3457af6fe"}', '{"\\x01a20ef11b35f0698796b6f5b6fa7804"}', '{"\\xc0a20b45bfd713312c10871e11b0f721"}');
INSERT INTO public.batches VALUES ('\x01a20ef11e63000000000f93d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '812', 16, 1795547012708, 1, false, '{22}', '{1}', '{"\\x01a20ef11e62e4486b23209846c39221"}', '{}', '{"\\x7a15491364912ae580bc0bd55657e571"}');
INSERT INTO public.batches VALUES ('\x01a20ef11e67000000001093d36b7ba2', 0, '\xae1846874e02d82870a3a193d36b7ba2', '813', 17, 1795547012720, 1, false, '{22}', '{2}', '{"\\x01a20ef11e62e4486b23209846c39221"}', '{"\\x01a20ef11e66d5a39bd90c740c2d46f3"}', '{"\\x7a15491364912ae580bc0bd55657e571"}');
INSERT INTO public.bookings VALUES ('\x01a20ef11aaac0ae3bfcc753c8084285', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'ann', '\x0674a1533b40d74738c6d5f2fce0f374', '\x01a20ef119d3aa349f7a7364671d9ab6', 1, 1, 'till 1', NULL, 1795547011754, 1795547011754, 1, NULL);
INSERT INTO public.bookings VALUES ('\x01a20ef11abff5b64310f5087d9289cf', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'cid', '\xa894eb5aa18c32f1680593fad974abbc', '\x01a20ef11a5f5aacb428a89f2fe91e1c', 2, 1, NULL, NULL, 1795547011773, 1795547011773, 2, NULL);
INSERT INTO public.bookings VALUES ('\x01a20ef11b35f0698796b6f5b6fa7804', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'fay', '\xc0a20b45bfd713312c10871e11b0f721', '\x01a20ef11b2f7a7c332186f3457af6fe', 0, 1, NULL, 0, 1795547011892, NULL, 1, '{"amount":9000,"captured":0,"refunded":0,"bounced":0,"returned":0,"intent":null}');
INSERT INTO public.bookings VALUES ('\x01a20ef11e66d5a39bd90c740c2d46f3', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'gus', '\x7a15491364912ae580bc0bd55657e571', '\x01a20ef11e62e4486b23209846c39221', 0, 1, 'web', 0, 1795547012710, NULL, 1, '{"amount":4500,"captured":0,"refunded":0,"bounced":0,"returned":0,"intent":null}');
INSERT INTO public.charts VALUES (1, '\x7b22666f726d6174223a202267726964222c2022726f7773223a20332c202273656174735f7065725f726f77223a2031302c202263617465676f7279223a202253227d', '\x1da33bb1f90233fce0602e69e4e2237c2018c35d23d22692e636726dbd1fa77a', 30, '\xdf29850f19657be30da2079560c55bd476d4aff61faf3a37f446792b1bd2066a');
INSERT INTO public.clock VALUES (1, 1795547014502, 0);
INSERT INTO public.deliveries OVERRIDING SYSTEM VALUE VALUES (1, '\x01a20ef1189b8532f312ccee13489907', '\xa2dd77b5c893dcf59f647484bd1bb103', 1, '\x01a20ef119d3aa349f7a7364671d9ab6', 1795547011762, '{"type":"booking.confirmed","timestamp":"2026-11-24T19:03:31.754Z","data":{"id":"bkg_01m87f26nar2q3qz67af40ggm5","event":"hamlet","holder":"ann","hold":"hld_01m87f26ekn8t9yykkchkhv6np","state":"confirmed","fence":1,"lines":[{"seat":"A-1","price":4500,"version":2,"state":"sold"},{"seat":"A-2","price":4500,"version":2,"state":"sold"}],"total":9000,"currency":"EUR","reference":"till 1","payment":null,"created_at":"2026-11-24T19:03:31.754Z","confirmed_at":"2026-11-24T19:03:31.754Z"}}', 0, 1, NULL, 'no_connection', 1795547011863, 1795547017223, NULL, 0);
INSERT INTO public.deliveries OVERRIDING SYSTEM VALUE VALUES (2, '\x01a20ef1189b8532f312ccee13489907', '\xa818bce898a45eb4d3bd040288e54ca9', 1, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547011777, '{"type":"booking.confirmed","timestamp":"2026-11-24T19:03:31.773Z","data":{"id":"bkg_01m87f26nzypv4647n11ys52ef","event":"hamlet","holder":"cid","hold":"hld_01m87f26jzbapb8a58kwqyj7gw","state":"confirmed","fence":1,"lines":[{"seat":"A-4","price":4500,"version":2,"state":"sold"},{"seat":"A-5","price":4500,"version":2,"state":"sold"}],"total":9000,"currency":"EUR","reference":null,"payment":null,"created_at":"2026-11-24T19:03:31.773Z","confirmed_at":"2026-11-24T19:03:31.773Z"}}', 0, 1, NULL, 'no_connection', 1795547011864, 1795547016983, NULL, 0);
INSERT INTO public.deliveries OVERRIDING SYSTEM VALUE VALUES (3, '\x01a20ef1189b8532f312ccee13489907', '\xa163d6286de17faa81480b883b9b0920', 2, '\x01a20ef11a5f5aacb428a89f2fe91e1c', 1795547011809, '{"type":"booking.cancelled","timestamp":"2026-11-24T19:03:31.806Z","data":{"id":"bkg_01m87f26nzypv4647n11ys52ef","event":"hamlet","holder":"cid","hold":"hld_01m87f26jzbapb8a58kwqyj7gw","state":"partly_cancelled","fence":1,"lines":[{"seat":"A-4","price":4500,"version":3,"state":"cancelled"},{"seat":"A-5","price":4500,"version":2,"state":"sold"}],"total":9000,"currency":"EUR","reference":null,"payment":null,"created_at":"2026-11-24T19:03:31.773Z","confirmed_at":"2026-11-24T19:03:31.773Z"}}', 0, 0, NULL, NULL, NULL, 1795547016983, NULL, 0);
INSERT INTO public.events VALUES (0, 'hamlet', 'Hamlet', NULL, 'EUR', 1, '[4500]', '{"hold_ttl_ms":600000,"hold_max_ms":1800000,"units_per_hold_max":10,"units_per_holder_max":20,"units_bought_per_holder_max":null,"payment_window_ms":600000,"retry_window_ms":120000,"late_payment":"if_still_free","on_payment_failure":"keep","adjacency":"none","sale_opens_at":null,"sale_closes_at":null,"cancel_until":null}', NULL, 1795547011257, '\x082d56d6ee50c794d8dd50553d27f6f098cabc4904496c9dc00410e2672298c2', 1);
INSERT INTO public.events VALUES (1, 'lear', 'Lear', 1893524400000, 'EUR', 1, '[4500]', '{"hold_ttl_ms":600000,"hold_max_ms":1800000,"units_per_hold_max":4,"units_per_holder_max":20,"units_bought_per_holder_max":null,"payment_window_ms":600000,"retry_window_ms":120000,"late_payment":"if_still_free","on_payment_failure":"keep","adjacency":"none","sale_opens_at":null,"sale_closes_at":null,"cancel_until":null}', 'ill', 1795547011328, '\xa18e2251a572b6f3b7d4ad1ff03346cf231b3e5d382966fdf3f133fcc0aae188', 3);
INSERT INTO public.feed VALUES (1, 0, 1, 1, '\x01a20ef119d6000000000293d36b7ba2', '\xfb958cf672a9e9462d947600b8547d4bb54285a47625e2d1d756404612c7dc55');
INSERT INTO public.feed VALUES (2, 0, 2, 1, '\x01a20ef11a46000000000393d36b7ba2', '\x2ba281fc493f8b295d0aa18462bf1ce4617ae9a911a3f94dac609dffb80eab88');
INSERT INTO public.feed VALUES (3, 0, 3, 1, '\x01a20ef11a66000000000493d36b7ba2', '\x7a1c7cc72ccab2d4889897c337110320862075946d4be364acdc950d109dcc02');
INSERT INTO public.feed VALUES (4, 0, 4, 1, '\x01a20ef11a86000000000593d36b7ba2', '\x5d299e177e74ef7b8fcf20692fb78ff52d2e63ca9ec5216e283b44f36e1463d1');
INSERT INTO public.feed VALUES (5, 0, 5, 1, '\x01a20ef11a9f000000000693d36b7ba2', '\x60f39fbc2a52be0739b5c3cd1958ad42d106b7fd03267e76ece522ae53581284');
INSERT INTO public.feed VALUES (6, 0, 6, 1, '\x01a20ef11aab000000000793d36b7ba2', '\x7f64a1819ad8aaa6c82c9100be671e238496947c258aa83630ee5259bf93513a');
INSERT INTO public.feed VALUES (7, 0, 7, 1, '\x01a20ef11ac0000000000893d36b7ba2', '\xf1dc25a37c78ca39b10ece5fd4213f56833178c3d19223f3d948d2fae3bfe013');
INSERT INTO public.feed VALUES (8, 0, 8, 1, '\x01a20ef11adf000000000993d36b7ba2', '\xc1be36592d05527b3068e7ca1cb8450d1e16d095f4202bf9bebd2b925aeba8e6');
INSERT INTO public.feed VALUES (9, 0, 9, 1, '\x01a20ef11aff000000000a93d36b7ba2', '\xacec010a3fc609dc399c2c82c35c8df7159f44227ef38e6246cafe2a492e3d7d');
INSERT INTO public.feed VALUES (10, 0, 10, 1, '\x01a20ef11b0b000000000b93d36b7ba2', '\x7b3e7d8f82c3e613a009de1fa650a9216c24031c28aefc67aaad43dbfaf2bd44');
INSERT INTO public.feed VALUES (11, 0, 11, 1, '\x01a20ef11b20000000000c93d36b7ba2', '\x748224eae4c4b46845c76b0dc3c30d9a37160c98682558c498f67e7bddcb9971');
INSERT INTO public.feed VALUES (12, 0, 12, 1, '\x01a20ef11b2f000000000d93d36b7ba2', '\x3f53260c34d640e2c87e68ae68cdf217fb2f9141ebf2e48a1b1a99a213b9a76c');
INSERT INTO public.feed VALUES (13, 0, 13, 1, '\x01a20ef11b42000000000e93d36b7ba2', '\x2cae17fd263657533299983bbc5c7ab9457b74069519e231cfa355a50e2d182b');
INSERT INTO public.feed VALUES (14, 0, 14, 1, '\x01a20ef11e63000000000f93d36b7ba2', '\x0f55ec879e1798487c37c9e0c05b9e5d206906e406a2466fa28121a199873cfd');
INSERT INTO public.feed VALUES (15, 0, 15, 1, '\x01a20ef11e67000000001093d36b7ba2', '\xc9bca8a74df1bbbbdc11ce282f6bb21ff90de897c7d2e8f88bb9984efc92a489');
INSERT INTO public.feed_heads VALUES (0, 15, '\xc9bca8a74df1bbbbdc11ce282f6bb21ff90de897c7d2e8f88bb9984efc92a489');
INSERT INTO public.holders VALUES (0, '\x52d328e9d8b4143f326e90e962ba9127', '\x01a20ef118854d00a4952b88d7727f5c', 'bob', 0, 1);
INSERT INTO public.holders VALUES (0, '\xa73a63dc3b6e468f479cf9bec4ffab8f', '\x01a20ef118854d00a4952b88d7727f5c', 'dan', 0, 1);
INSERT INTO public.holders VALUES (0, '\x1cfa51b884922d7783718c2d7503ffb9', '\x01a20ef118854d00a4952b88d7727f5c', 'eve', 0, 1);
INSERT INTO public.holders VALUES (0, '\x0674a1533b40d74738c6d5f2fce0f374', '\x01a20ef118854d00a4952b88d7727f5c', 'ann', 2, 2);
INSERT INTO public.holders VALUES (0, '\xa894eb5aa18c32f1680593fad974abbc', '\x01a20ef118854d00a4952b88d7727f5c', 'cid', 1, 3);
INSERT INTO public.holders VALUES (0, '\xc0a20b45bfd713312c10871e11b0f721', '\x01a20ef118854d00a4952b88d7727f5c', 'fay', 0, 2);
INSERT INTO public.holders VALUES (0, '\x7a15491364912ae580bc0bd55657e571', '\x01a20ef118854d00a4952b88d7727f5c', 'gus', 0, 2);
INSERT INTO public.holds VALUES ('\x01a20ef11a9fc6b84824338b5740413f', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'eve', 0, NULL, NULL, 1, '\x0694230101942301', 1795547011731, 1795547611731, 1795548811731, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef119d3aa349f7a7364671d9ab6', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'ann', 2, '\x01a20ef11aaac0ae3bfcc753c8084285', NULL, 1, '\x0094230201942302', 1795547011533, 1795547611533, 1795548811533, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef11a5f5aacb428a89f2fe91e1c', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'cid', 2, '\x01a20ef11abff5b64310f5087d9289cf', NULL, 1, '\x0394230201942302', 1795547011677, 1795547611677, 1795548811677, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef11a3e4275aa393c317ef4ad9e', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'bob', 3, NULL, NULL, 1, '\x02942302', 1795547011652, 1795547611652, 1795548811652, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef11a83effa869f6b8760077dc8', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'dan', 5, NULL, 'a bot', 1, '\x05942302', 1795547011708, 1795547611708, 1795548811708, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef11b2f7a7c332186f3457af6fe', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'fay', 1, '\x01a20ef11b35f0698796b6f5b6fa7804', NULL, 1, '\x1494230201942302', 1795547011887, 1795547611892, 1795548811887, NULL);
INSERT INTO public.holds VALUES ('\x01a20ef11e62e4486b23209846c39221', 0, '\x01a20ef118854d00a4952b88d7727f5c', 'gus', 1, '\x01a20ef11e66d5a39bd90c740c2d46f3', NULL, 1, '\x16942302', 1795547012707, 1795547612710, 1795548812707, NULL);
INSERT INTO public.idempotency VALUES ('\x623feb3226cda68784539321ff3485a2', '\x527e7c5a86066c3d2efad5697a5ee910', 1795547011226, 6, '\x01a20ef1189b8532f312ccee13489907', '\x7b226964223a227768655f30316d38376632363476676d7366363470637872396d68363837222c2275726c223a22687474703a2f2f3132372e302e302e313a392f686f6f6b222c227479706573223a5b22686f6c642e65787069726564222c22626f6f6b696e672e636f6e6669726d6564222c22626f6f6b696e672e63616e63656c6c6564222c22626f6f6b696e672e726566756e646564222c22626f6f6b696e672e65786368616e676564225d2c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3232365a222c22726f74617465645f6174223a6e756c6c2c2264697361626c65645f6174223a6e756c6c2c2271756965745f756e74696c223a6e756c6c');
INSERT INTO public.idempotency VALUES ('\x4010ebae5a1132ff101339cbe0ed8db6', '\x9c12ffe4b0cec557f6149de968e5d1eb', 1795547011602, 0, '\x01a20ef119d3aa349f7a7364671d9ab6', '\x7b226964223a22686c645f30316d3837663236656b6e38743979796b6b63686b6876366e70222c226576656e74223a2268616d6c6574222c22686f6c646572223a22616e6e222c227374617465223a22616374697665222c2266656e6365223a312c22756e697473223a5b7b2273656174223a22412d31222c227072696365223a343530302c2276657273696f6e223a317d2c7b2273656174223a22412d32222c227072696365223a343530302c2276657273696f6e223a317d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3533335a222c22657870697265735f6174223a22323032362d31312d32345431393a31333a33312e3533335a222c226d61785f657870697265735f6174223a22323032362d31312d32345431393a33333a33312e3533335a222c22626f6f6b696e67223a6e756c6c');
INSERT INTO public.idempotency VALUES ('\x51db662b1f070f79b4e85801ce2c4972', '\x2eba5ca0760ebe4367d7467dbc156f07', 1795547011746, 0, '\x01a20ef11a9fc6b84824338b5740413f', '\x7b226964223a22686c645f30316d38376632366d7a727477346739316b6864626d3067397a222c226576656e74223a2268616d6c6574222c22686f6c646572223a22657665222c227374617465223a22616374697665222c2266656e6365223a312c22756e697473223a5b7b2273656174223a22412d37222c227072696365223a343530302c2276657273696f6e223a317d2c7b2273656174223a22412d38222c227072696365223a343530302c2276657273696f6e223a317d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3733315a222c22657870697265735f6174223a22323032362d31312d32345431393a31333a33312e3733315a222c226d61785f657870697265735f6174223a22323032362d31312d32345431393a33333a33312e3733315a222c22626f6f6b696e67223a6e756c6c');
INSERT INTO public.idempotency VALUES ('\xb8d728916caed183a7557284476a0420', '\xbadcfad75b8a90b0276daa71db25e161', 1795547011762, 3, '\x01a20ef11aaac0ae3bfcc753c8084285', '\x7b226964223a22626b675f30316d38376632366e6172327133717a36376166343067676d35222c226576656e74223a2268616d6c6574222c22686f6c646572223a22616e6e222c22686f6c64223a22686c645f30316d3837663236656b6e38743979796b6b63686b6876366e70222c227374617465223a22636f6e6669726d6564222c2266656e6365223a312c226c696e6573223a5b7b2273656174223a22412d31222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a22736f6c64227d2c7b2273656174223a22412d32222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a22736f6c64227d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c227265666572656e6365223a2274696c6c2031222c227061796d656e74223a6e756c6c2c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3735345a222c22636f6e6669726d65645f6174223a22323032362d31312d32345431393a30333a33312e3735345a22');
INSERT INTO public.idempotency VALUES ('\xcd61f8f7f6b2bd15feb458bda8ec897e', '\xd89ae99443aa174e37c70fef99ed557f', 1795547011777, 3, '\x01a20ef11abff5b64310f5087d9289cf', '\x7b226964223a22626b675f30316d38376632366e7a797076343634376e3131797335326566222c226576656e74223a2268616d6c6574222c22686f6c646572223a22636964222c22686f6c64223a22686c645f30316d38376632366a7a62617062386135386b7771796a376777222c227374617465223a22636f6e6669726d6564222c2266656e6365223a312c226c696e6573223a5b7b2273656174223a22412d34222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a22736f6c64227d2c7b2273656174223a22412d35222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a22736f6c64227d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c227265666572656e6365223a6e756c6c2c227061796d656e74223a6e756c6c2c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3737335a222c22636f6e6669726d65645f6174223a22323032362d31312d32345431393a30333a33312e3737335a22');
INSERT INTO public.idempotency VALUES ('\x41b853b069bce426f8f36b919a080add', '\xb708525ab103bb2d3c84932ad1af2a3c', 1795547011809, 4, '\x01a20ef11abff5b64310f5087d9289cf', '\x7b226964223a22626b675f30316d38376632366e7a797076343634376e3131797335326566222c226576656e74223a2268616d6c6574222c22686f6c646572223a22636964222c22686f6c64223a22686c645f30316d38376632366a7a62617062386135386b7771796a376777222c227374617465223a22706172746c795f63616e63656c6c6564222c2266656e6365223a312c226c696e6573223a5b7b2273656174223a22412d34222c227072696365223a343530302c2276657273696f6e223a332c227374617465223a2263616e63656c6c6564227d2c7b2273656174223a22412d35222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a22736f6c64227d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c227265666572656e6365223a6e756c6c2c227061796d656e74223a6e756c6c2c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3737335a222c22636f6e6669726d65645f6174223a22323032362d31312d32345431393a30333a33312e3737335a22');
INSERT INTO public.idempotency VALUES ('\xc46d2ae66c9b64d9cfc76fc628a96b3d', '\x59c8218324961ba0e058de87df6db77c', 1795547011910, 3, '\x01a20ef11b35f0698796b6f5b6fa7804', '\x7b226964223a22626b675f30316d3837663236736e79316d7266356e70797076666d793034222c226576656e74223a2268616d6c6574222c22686f6c646572223a22666179222c22686f6c64223a22686c645f30316d383766323673666639793336386336796432716e787179222c227374617465223a2270656e64696e675f7061796d656e74222c2266656e6365223a312c226c696e6573223a5b7b2273656174223a22432d31222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a2270656e64696e67227d2c7b2273656174223a22432d32222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a2270656e64696e67227d5d2c22746f74616c223a393030302c2263757272656e6379223a22455552222c227265666572656e6365223a6e756c6c2c22637265617465645f6174223a22323032362d31312d32345431393a30333a33312e3839325a222c22636f6e6669726d65645f6174223a6e756c6c');
INSERT INTO public.idempotency VALUES ('\xc3208a9cda0180b55d9068644801b4b3', '\x74b477f8701e03daa7d0fcc7afcce825', 1795547012720, 3, '\x01a20ef11e66d5a39bd90c740c2d46f3', '\x7b226964223a22626b675f30316d38376632376b367470687371703863656736327468716b222c226576656e74223a2268616d6c6574222c22686f6c646572223a22677573222c22686f6c64223a22686c645f30316d38376632376b3277683436703873306b31336337346831222c227374617465223a2270656e64696e675f7061796d656e74222c2266656e6365223a312c226c696e6573223a5b7b2273656174223a22432d33222c227072696365223a343530302c2276657273696f6e223a322c227374617465223a2270656e64696e67227d5d2c22746f74616c223a343530302c2263757272656e6379223a22455552222c227265666572656e6365223a22776562222c22637265617465645f6174223a22323032362d31312d32345431393a30333a33322e3731305a222c22636f6e6669726d65645f6174223a6e756c6c');
INSERT INTO public.lines VALUES ('\x01a20ef11aaac0ae3bfcc753c8084285', 0, 0, 0, 4500, 2, 1);
INSERT INTO public.lines VALUES ('\x01a20ef11aaac0ae3bfcc753c8084285', 1, 0, 1, 4500, 2, 1);
INSERT INTO public.lines VALUES ('\x01a20ef11abff5b64310f5087d9289cf', 0, 0, 3, 4500, 3, 2);
INSERT INTO public.lines VALUES ('\x01a20ef11abff5b64310f5087d9289cf', 1, 0, 4, 4500, 2, 1);
INSERT INTO public.lines VALUES ('\x01a20ef11b35f0698796b6f5b6fa7804', 0, 0, 20, 4500, 2, 0);
INSERT INTO public.lines VALUES ('\x01a20ef11b35f0698796b6f5b6fa7804', 1, 0, 21, 4500, 2, 0);
INSERT INTO public.lines VALUES ('\x01a20ef11e66d5a39bd90c740c2d46f3', 0, 0, 22, 4500, 2, 0);
INSERT INTO public.master_keys VALUES (1, '\x9b83755952b6fb0ee754f40a3390c3ebb311d1a4f5790cd41f43826e3d51a76b');
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (1, 1795547011910, 4, '\x01a20ef11b35f0698796b6f5b6fa7804', NULL, NULL, NULL, '\xae1846874e02d82870a3a193d36b7ba2', 1795547027067);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (2, 1795547012720, 4, '\x01a20ef11e66d5a39bd90c740c2d46f3', NULL, NULL, NULL, '\xae1846874e02d82870a3a193d36b7ba2', 1795547027908);
INSERT INTO public.sequencer VALUES (1, 814, 15, 0);
INSERT INTO public.soldonce_migrations VALUES (1, 'ledger', '2026-11-24T19:03:30.418817967Z', '8960041011559307514');
INSERT INTO public.soldonce_migrations VALUES (2, 'moves', '2026-11-24T19:03:30.470997085Z', '14997865186966332482');
INSERT INTO public.soldonce_migrations VALUES (3, 'payments', '2026-11-24T19:03:30.473877225Z', '1502301920308664827');
INSERT INTO public.soldonce_migrations VALUES (4, 'webhooks', '2026-11-24T19:03:30.475606043Z', '12209718649107648093');
INSERT INTO public.soldonce_migrations VALUES (5, 'row_types', '2026-11-24T19:03:30.488438015Z', '12430005132178569707');
INSERT INTO public.soldonce_migrations VALUES (6, 'room', '2026-11-24T19:03:30.490822703Z', '12307815687372054304');
INSERT INTO public.units VALUES (0, 8, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 9, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 11, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 12, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 13, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 14, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 15, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 16, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 17, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 18, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 19, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 23, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 24, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 25, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 26, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 27, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 28, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 29, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 0, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 1, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 2, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 3, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 4, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 5, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 6, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 7, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 8, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 9, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 10, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 11, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 12, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 13, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 14, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 15, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 16, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 17, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 18, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 19, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (0, 2, 0, NULL, NULL, 1, 2, 0);
INSERT INTO public.units VALUES (0, 4, 2, '\x01a20ef11abff5b64310f5087d9289cf', NULL, 1, 2, 0);
INSERT INTO public.units VALUES (0, 5, 0, NULL, NULL, 1, 2, 0);
INSERT INTO public.units VALUES (0, 3, 0, NULL, NULL, 2, 3, 0);
INSERT INTO public.units VALUES (0, 10, 3, NULL, NULL, 0, 1, 0);
INSERT INTO public.units VALUES (0, 6, 1, '\x01a20ef11a9fc6b84824338b5740413f', 1795547611731, 1, 1, 0);
INSERT INTO public.units VALUES (0, 7, 1, '\x01a20ef11a9fc6b84824338b5740413f', 1795547611731, 1, 1, 0);
INSERT INTO public.units VALUES (0, 0, 2, '\x01a20ef11aaac0ae3bfcc753c8084285', NULL, 1, 2, 0);
INSERT INTO public.units VALUES (0, 1, 2, '\x01a20ef11aaac0ae3bfcc753c8084285', NULL, 1, 2, 0);
INSERT INTO public.units VALUES (0, 22, 1, '\x01a20ef11e62e4486b23209846c39221', 1795547612710, 1, 2, 0);
INSERT INTO public.units VALUES (0, 20, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611892, 1, 2, 0);
INSERT INTO public.units VALUES (0, 21, 1, '\x01a20ef11b2f7a7c332186f3457af6fe', 1795547611892, 1, 2, 0);
INSERT INTO public.units VALUES (1, 20, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 21, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 22, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 23, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 24, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 25, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 26, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 27, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 28, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.units VALUES (1, 29, 0, NULL, NULL, 0, 0, 0);
INSERT INTO public.webhook_endpoints VALUES ('\x01a20ef1189b8532f312ccee13489907', 'http://127.0.0.1:9/hook', 2147483647, 0, NULL, 1795547011226, NULL, NULL);
SELECT pg_catalog.setval('public.deliveries_n_seq', 3, true);
SELECT pg_catalog.setval('public.outbox_n_seq', 2, true);
SELECT pg_catalog.setval('public.places', 17, true);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_sha256_key UNIQUE (sha256);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (event_no, unit_no, version);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.bookings
    ADD CONSTRAINT bookings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.charts
    ADD CONSTRAINT charts_pkey PRIMARY KEY (chart_no);
ALTER TABLE ONLY public.charts
    ADD CONSTRAINT charts_sha256_key UNIQUE (sha256);
ALTER TABLE ONLY public.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (n);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_id_key UNIQUE (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (event_no);
ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_batch_key UNIQUE (batch);
ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_event_no_first_seq_key UNIQUE (event_no, first_seq);
ALTER TABLE ONLY public.feed_heads
    ADD CONSTRAINT feed_heads_pkey PRIMARY KEY (event_no);
ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (n);
ALTER TABLE ONLY public.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (event_no, key);
ALTER TABLE ONLY public.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.lines
    ADD CONSTRAINT lines_pkey PRIMARY KEY (booking, n);
ALTER TABLE ONLY public.master_keys
    ADD CONSTRAINT master_keys_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (n);
ALTER TABLE ONLY public.sequencer
    ADD CONSTRAINT sequencer_pkey PRIMARY KEY (one);
ALTER TABLE ONLY public.soldonce_migrations
    ADD CONSTRAINT soldonce_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.units
    ADD CONSTRAINT units_pkey PRIMARY KEY (event_no, unit_no);
ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);
CREATE INDEX batches_by_xid ON public.batches USING btree (xid);
CREATE INDEX batches_of_event ON public.batches USING btree (event_no, xid);
CREATE INDEX bookings_of_holder ON public.bookings USING btree (holder_key, id);
CREATE INDEX bookings_unsettled ON public.bookings USING btree (created_at) WHERE ((payment < 4) OR (state = 6));
CREATE INDEX deliveries_due ON public.deliveries USING btree (endpoint, next_at) WHERE (state = 0);
CREATE INDEX deliveries_in_line ON public.deliveries USING btree (endpoint, subject, n) WHERE (state = 0);
CREATE INDEX deliveries_of_endpoint ON public.deliveries USING btree (endpoint, n);
CREATE INDEX deliveries_over ON public.deliveries USING btree (at) WHERE (state > 0);
CREATE INDEX idempotency_by_age ON public.idempotency USING btree (at);
CREATE INDEX outbox_open ON public.outbox USING btree (booking, n) WHERE (done_at IS NULL);
CREATE UNIQUE INDEX sold_unit_key ON public.lines USING btree (event_no, unit_no) WHERE (state = 1);
CREATE TRIGGER audit_only_grows BEFORE DELETE OR UPDATE ON public.audit FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER units_only_rise BEFORE UPDATE ON public.units FOR EACH ROW WHEN (((new.fence < old.fence) OR (new.version <= old.version) OR (new.token < old.token))) EXECUTE FUNCTION public.refuse_step_back();
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_chart_no_fkey FOREIGN KEY (chart_no) REFERENCES public.charts(chart_no);
ALTER TABLE ONLY public.lines
    ADD CONSTRAINT lines_booking_fkey FOREIGN KEY (booking) REFERENCES public.bookings(id);
