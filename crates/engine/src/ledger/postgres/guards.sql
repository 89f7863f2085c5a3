-- What the database refuses by itself, even against what a server believes: the last word of "Why no unit is sold twice".
-- `soldonce migrate` runs this file after the migrations; a change here comes with a migration, so that servers wait
-- for it. A database that lacks one of these is not served. Servers of the schema before go on meanwhile: all that
-- they write in ordinary work passes.
--
-- units.state: 0 free, 1 held, 2 sold, 3 blocked. lines.state: 0 pending, 1 sold, 2 cancelled. A hold is over from
-- state 2 on. Conditions after WHEN are tested without a call of a function. What ties two tables is tested at COMMIT, on
-- what is committed then: two sessions by hand, each of which writes one half, are not seen by either. A server writes
-- both halves in one transaction.
--
-- The text of each trigger and function is what `guards.rs` compares the database with.
BEGIN;

-- Functions look tables up here alone: temporary tables of a session come last.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- In the sequence in which a commit locks them, so that it waits for this file, or this file for it.
LOCK TABLE units, bookings, holds, lines, audit IN ACCESS EXCLUSIVE MODE;

CREATE OR REPLACE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION '%: %', TG_NAME, TG_ARGV[0]
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
              DETAIL = coalesce(OLD::text, TG_OP);
END $$;

-- Rows go only with an event that was dropped.
CREATE OR REPLACE FUNCTION refuse_unless_dropped() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM dropped_events WHERE event_no = OLD.event_no) THEN
        RAISE EXCEPTION '%: rows of % go only with an event that was dropped', TG_NAME, TG_TABLE_NAME
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN OLD;
END $$;

-- Of all lines of a unit one is sold at most.
CREATE UNIQUE INDEX IF NOT EXISTS sold_unit_key ON lines (event_no, unit_no) WHERE state = 1;

-- A unit has one row (units_pkey), made free with its event and deleted with it.
DROP TRIGGER IF EXISTS units_begin_free ON units;
CREATE TRIGGER units_begin_free BEFORE INSERT ON units FOR EACH ROW
WHEN (NEW.state <> 0 OR NEW.fence <> 0 OR NEW.version <> 0)
EXECUTE FUNCTION refuse_write('a unit begins free');

DROP TRIGGER IF EXISTS units_stay ON units;
CREATE TRIGGER units_stay BEFORE DELETE ON units FOR EACH ROW
EXECUTE FUNCTION refuse_unless_dropped();

DROP TRIGGER IF EXISTS units_are_kept ON units;
CREATE TRIGGER units_are_kept BEFORE TRUNCATE ON units FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('units are never deleted');

-- A unit never goes back, and each hold has a higher fence than the owner before it.
DROP TRIGGER IF EXISTS units_only_rise ON units;
CREATE TRIGGER units_only_rise BEFORE UPDATE ON units FOR EACH ROW
WHEN (NEW.fence < OLD.fence OR NEW.version <= OLD.version OR NEW.token < OLD.token
      OR NEW.state = 1 AND NEW.owner IS DISTINCT FROM OLD.owner AND NEW.fence = OLD.fence
      OR NEW.event_no <> OLD.event_no OR NEW.unit_no <> OLD.unit_no)
EXECUTE FUNCTION refuse_write('a unit would go back');

-- A sold unit may only become free. An operator's correction of the clock writes one as it is.
DROP TRIGGER IF EXISTS units_sold_only_free ON units;
CREATE TRIGGER units_sold_only_free BEFORE UPDATE ON units FOR EACH ROW
WHEN (OLD.state = 2 AND NEW.state <> 0
      AND NOT (NEW.state = 2 AND NEW.owner = OLD.owner AND NEW.fence = OLD.fence))
EXECUTE FUNCTION refuse_write('a sold unit may only become free');

-- A unit of a live hold may only become free, too: it goes to another owner when the hold is over, or gave it up and
-- has had a higher fence since. And a unit is sold exactly to the booking that has its sold line. One call for both,
-- planned once for a connection, when tables may be small: it looks up rows by their keys all the same.
CREATE OR REPLACE FUNCTION require_owner() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF OLD.state = 1 AND NOT EXISTS (SELECT FROM holds WHERE id = OLD.owner AND (state >= 2 OR fence > OLD.fence))
       OR (CASE WHEN NEW.state = 2 THEN NEW.owner END) IS DISTINCT FROM
          (SELECT booking FROM lines WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no AND state = 1) THEN
        RAISE EXCEPTION '%: unit % of event % is of a live hold, or has not its sold line',
            TG_NAME, OLD.unit_no, OLD.event_no
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS units_owner ON units;
CREATE CONSTRAINT TRIGGER units_owner AFTER UPDATE ON units DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (OLD.state = 2 OR NEW.state = 2 OR OLD.state = 1 AND NEW.state <> 0 AND NEW.owner IS DISTINCT FROM OLD.owner)
EXECUTE FUNCTION require_owner();

-- So a sold line stays while its unit is sold.
CREATE OR REPLACE FUNCTION require_no_sold_unit() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM units u WHERE event_no = OLD.event_no AND unit_no = OLD.unit_no AND state = 2
               AND owner IS DISTINCT FROM (SELECT booking FROM lines WHERE event_no = OLD.event_no
                                           AND unit_no = OLD.unit_no AND state = 1)) THEN
        RAISE EXCEPTION '%: unit % of event % has not its sold line', TG_NAME, OLD.unit_no, OLD.event_no
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS lines_sold_stay ON lines;
CREATE CONSTRAINT TRIGGER lines_sold_stay AFTER DELETE OR UPDATE ON lines DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (OLD.state = 1)
EXECUTE FUNCTION require_no_sold_unit();

DROP TRIGGER IF EXISTS lines_are_kept ON lines;
CREATE TRIGGER lines_are_kept BEFORE TRUNCATE ON lines FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('lines are never deleted');

-- The audit only grows; version n of a unit happens once (audit_pkey) ..
DROP TRIGGER IF EXISTS audit_only_grows ON audit;
CREATE TRIGGER audit_only_grows BEFORE UPDATE ON audit FOR EACH ROW
EXECUTE FUNCTION refuse_write('rows of audit are never changed');

DROP TRIGGER IF EXISTS audit_is_kept ON audit;
CREATE TRIGGER audit_is_kept BEFORE TRUNCATE ON audit FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('rows of audit are never changed');

DROP TRIGGER IF EXISTS audit_stays ON audit;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit FOR EACH ROW
EXECUTE FUNCTION refuse_unless_dropped();

-- .. by legal steps: the table of states and causes, in SQL's own words. Causes as in `audit_in_words`. Who stays in
-- a state stays its owner, and every step of a hold is made in its name.
ALTER TABLE audit DROP CONSTRAINT IF EXISTS audit_step;
ALTER TABLE audit ADD CONSTRAINT audit_step CHECK (
    CASE from_state * 10 + to_state
        WHEN 00 THEN cause = 14
        WHEN 01 THEN cause IN (0, 2)            -- held, changed
        WHEN 02 THEN cause = 9                  -- sold_directly
        WHEN 03 THEN cause = 12                 -- blocked
        WHEN 10 THEN cause IN (2, 5, 6, 7)      -- changed, released, expired, revoked
        WHEN 11 THEN cause IN (1, 2, 3, 4, 14)  -- extended, changed, pinned, unpinned
        WHEN 12 THEN cause IN (8, 11)           -- confirmed, exchanged
        WHEN 20 THEN cause IN (10, 11)          -- cancelled, exchanged
        WHEN 22 THEN cause = 14                 -- clock_corrected
        WHEN 30 THEN cause = 13                 -- unblocked
        WHEN 33 THEN cause = 14
        ELSE false
    END
    AND (from_owner IS NOT NULL) = (from_state IN (1, 2))
    AND (to_owner IS NOT NULL) = (to_state IN (1, 2))
    AND (from_state <> to_state OR from_owner IS NOT DISTINCT FROM to_owner)
    AND hold IS NOT DISTINCT FROM CASE 1 WHEN from_state THEN from_owner WHEN to_state THEN to_owner END
) NOT VALID;

DROP TRIGGER IF EXISTS holds_stay ON holds;
CREATE TRIGGER holds_stay BEFORE DELETE ON holds FOR EACH ROW
EXECUTE FUNCTION refuse_unless_dropped();

DROP TRIGGER IF EXISTS holds_are_kept ON holds;
CREATE TRIGGER holds_are_kept BEFORE TRUNCATE ON holds FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('holds are never deleted');

-- A hold stays its holder's, and one that is over stays so.
DROP TRIGGER IF EXISTS holds_keep_holder ON holds;
CREATE TRIGGER holds_keep_holder BEFORE UPDATE ON holds FOR EACH ROW
WHEN (NEW.id <> OLD.id OR NEW.event_no <> OLD.event_no OR NEW.caller IS DISTINCT FROM OLD.caller
      OR NEW.holder <> OLD.holder OR OLD.state >= 2 AND NEW.state < 2)
EXECUTE FUNCTION refuse_write('a hold stays of its holder, and over');

DROP TRIGGER IF EXISTS bookings_are_kept ON bookings;
CREATE TRIGGER bookings_are_kept BEFORE TRUNCATE ON bookings FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('bookings are never deleted');

DROP TRIGGER IF EXISTS bookings_stay ON bookings;
CREATE TRIGGER bookings_stay BEFORE DELETE ON bookings FOR EACH ROW
EXECUTE FUNCTION refuse_unless_dropped();

-- An event is dropped once, without a held unit; the key of dropped_events keeps its row, and so its id.
CREATE OR REPLACE FUNCTION require_no_held_unit() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM units WHERE event_no = NEW.event_no AND state = 1) THEN
        RAISE EXCEPTION '%: a unit of event % is held', TG_NAME, NEW.event_no
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER IF EXISTS dropped_events_begin ON dropped_events;
CREATE TRIGGER dropped_events_begin BEFORE INSERT ON dropped_events FOR EACH ROW
EXECUTE FUNCTION require_no_held_unit();

DROP TRIGGER IF EXISTS dropped_events_stay ON dropped_events;
CREATE TRIGGER dropped_events_stay BEFORE DELETE OR TRUNCATE ON dropped_events FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('a dropped event stays dropped');

DROP TRIGGER IF EXISTS dropped_events_keep_number ON dropped_events;
CREATE TRIGGER dropped_events_keep_number BEFORE UPDATE ON dropped_events FOR EACH ROW
WHEN (NEW.event_no <> OLD.event_no)
EXECUTE FUNCTION refuse_write('a dropped event stays dropped');

-- Without it a batch would compare its time with nothing.
DROP TRIGGER IF EXISTS clock_stays ON clock;
CREATE TRIGGER clock_stays BEFORE DELETE OR TRUNCATE ON clock FOR EACH STATEMENT
EXECUTE FUNCTION refuse_write('the ledger has a clock');

DROP FUNCTION IF EXISTS refuse_step_back();
DROP FUNCTION IF EXISTS refuse_change();
COMMIT;

-- Reads the whole audit, while servers go on writing to it.
ALTER TABLE audit VALIDATE CONSTRAINT audit_step;
