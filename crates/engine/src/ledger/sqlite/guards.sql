-- What the file refuses by itself, even against what the program believes: the last word of "Why no unit is sold twice".
-- `migrate` runs this file after the migrations, in one transaction with the number of the schema; a change here
-- raises that number. A ledger that lacks one of these, or has it in another form, is not served.
--
-- units.state: 0 free, 1 held, 2 sold, 3 blocked. lines.state: 0 pending, 1 sold, 2 cancelled. A hold is over from
-- state 2 on. SQLite tests each row at once, so a commit writes holds, then units that are not sold, then lines, then
-- units that are sold, then the audit. OR REPLACE deletes a row without its trigger, so each INSERT looks for the row
-- that would go, and no UPDATE changes a key. One trigger for each table and verb: SQLite calls them all for every row.
-- With FAIL the rows that the statement wrote before stay written, each of which passed its own test; the writer rolls
-- back the whole transaction. ABORT would journal each statement.

-- Of all lines of a unit one is sold at most. Lines are updated in place, so the key is never out of force.
CREATE UNIQUE INDEX IF NOT EXISTS sold_unit_key ON lines (event_no, unit_no) WHERE state = 1;

DROP TRIGGER IF EXISTS lines_added;
CREATE TRIGGER lines_added BEFORE INSERT ON lines
BEGIN
    SELECT RAISE(FAIL, 'this line exists')
    WHERE EXISTS (SELECT 1 FROM lines WHERE booking = NEW.booking AND n = NEW.n);
    SELECT RAISE(FAIL, 'the unit of this line is sold')
    WHERE NEW.state = 1
      AND EXISTS (SELECT 1 FROM lines WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no AND state = 1);
END;

DROP TRIGGER IF EXISTS lines_changed;
CREATE TRIGGER lines_changed BEFORE UPDATE ON lines
BEGIN
    SELECT RAISE(FAIL, 'a line stays of its booking and unit')
    WHERE (NEW.booking, NEW.n, NEW.event_no, NEW.unit_no) IS NOT (OLD.booking, OLD.n, OLD.event_no, OLD.unit_no);
    SELECT RAISE(FAIL, 'the unit of this line is sold to another')
    WHERE NEW.state = 1 AND OLD.state <> 1
      AND EXISTS (SELECT 1 FROM lines WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no AND state = 1);
    SELECT RAISE(FAIL, 'the unit of this line is sold to its booking')
    WHERE NEW.state <> 1 AND OLD.state = 1
      AND EXISTS (SELECT 1 FROM units WHERE event_no = OLD.event_no AND unit_no = OLD.unit_no
                  AND state = 2 AND owner = OLD.booking);
END;

DROP TRIGGER IF EXISTS lines_deleted;
CREATE TRIGGER lines_deleted BEFORE DELETE ON lines
WHEN OLD.state = 1
BEGIN
    SELECT RAISE(FAIL, 'the unit of this line is sold to its booking')
    WHERE EXISTS (SELECT 1 FROM units WHERE event_no = OLD.event_no AND unit_no = OLD.unit_no
                  AND state = 2 AND owner = OLD.booking);
END;

-- A unit has one row, or none before its first transition.
DROP TRIGGER IF EXISTS units_added;
CREATE TRIGGER units_added BEFORE INSERT ON units
BEGIN
    SELECT RAISE(FAIL, 'this unit has a row')
    WHERE EXISTS (SELECT 1 FROM units WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no);
    SELECT RAISE(FAIL, 'this unit is sold without a line')
    WHERE NEW.state = 2
      AND NOT EXISTS (SELECT 1 FROM lines WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no
                      AND state = 1 AND booking = NEW.owner);
END;

DROP TRIGGER IF EXISTS units_changed;
CREATE TRIGGER units_changed BEFORE UPDATE ON units
BEGIN
    SELECT RAISE(FAIL, 'a unit stays the same unit')
    WHERE NEW.event_no <> OLD.event_no OR NEW.unit_no <> OLD.unit_no;

    -- It never goes back, and each hold has a higher fence than the owner before it.
    SELECT RAISE(FAIL, 'a unit would go back')
    WHERE NEW.fence < OLD.fence OR NEW.version <= OLD.version
       OR NEW.state = 1 AND NEW.fence = OLD.fence AND NEW.owner IS NOT OLD.owner;

    -- An operator's correction of the clock writes a sold unit as it is.
    SELECT RAISE(FAIL, 'a sold unit may only become free')
    WHERE OLD.state = 2 AND NEW.state <> 0 AND (NEW.state, NEW.owner, NEW.fence) IS NOT (2, OLD.owner, OLD.fence);

    -- It goes to another owner when the hold is over, or gave it up and has had a higher fence since.
    SELECT RAISE(FAIL, 'a unit of a live hold may only become free')
    WHERE OLD.state = 1 AND NEW.state <> 0 AND (NEW.owner IS NOT OLD.owner OR NEW.state = 2)
      AND NOT EXISTS (SELECT 1 FROM holds WHERE id = OLD.owner AND (state >= 2 OR fence > OLD.fence));

    SELECT RAISE(FAIL, 'this unit is sold without a line')
    WHERE NEW.state = 2
      AND NOT EXISTS (SELECT 1 FROM lines WHERE event_no = NEW.event_no AND unit_no = NEW.unit_no
                      AND state = 1 AND booking = NEW.owner);
END;

DROP TRIGGER IF EXISTS units_deleted;
CREATE TRIGGER units_deleted BEFORE DELETE ON units
WHEN NOT EXISTS (SELECT 1 FROM dropped_events WHERE event_no = OLD.event_no)
BEGIN SELECT RAISE(FAIL, 'units are never deleted'); END;

-- The audit only grows, at its end ..
DROP TRIGGER IF EXISTS audit_changed;
CREATE TRIGGER audit_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(FAIL, 'rows of the audit are never changed'); END;

DROP TRIGGER IF EXISTS audit_deleted;
CREATE TRIGGER audit_deleted BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM dropped_events WHERE event_no = OLD.event_no)
BEGIN SELECT RAISE(FAIL, 'rows of the audit are never deleted'); END;

-- .. by legal steps: the table of states and causes, in SQL's own words. Causes as in `audit_in_words`. Who stays in
-- a state stays its owner, and every step of a hold is made in its name.
DROP TRIGGER IF EXISTS audit_added;
CREATE TRIGGER audit_added BEFORE INSERT ON audit
BEGIN
    SELECT RAISE(FAIL, 'the audit grows at its end')
    WHERE NEW.seq <= (SELECT seq FROM chains WHERE event_no = NEW.event_no)
       OR EXISTS (SELECT 1 FROM audit WHERE event_no = NEW.event_no AND seq = NEW.seq AND n = NEW.n);

    SELECT RAISE(FAIL, 'no unit makes this step')
    WHERE NOT (
        CASE NEW.from_state * 10 + NEW.to_state
            WHEN 01 THEN NEW.cause IN (0, 2)            -- held, changed
            WHEN 10 THEN NEW.cause IN (2, 5, 6, 7)      -- changed, released, expired, revoked
            WHEN 11 THEN NEW.cause IN (1, 2, 3, 4, 14)  -- extended, changed, pinned, unpinned
            WHEN 12 THEN NEW.cause IN (8, 11)           -- confirmed, exchanged
            WHEN 02 THEN NEW.cause = 9                  -- sold_directly
            WHEN 20 THEN NEW.cause IN (10, 11)          -- cancelled, exchanged
            WHEN 03 THEN NEW.cause = 12                 -- blocked
            WHEN 30 THEN NEW.cause = 13                 -- unblocked
            WHEN 00 THEN NEW.cause = 14                 -- clock_corrected
            WHEN 22 THEN NEW.cause = 14
            WHEN 33 THEN NEW.cause = 14
            ELSE 0
        END
        AND (NEW.from_owner IS NOT NULL) = (NEW.from_state IN (1, 2))
        AND (NEW.to_owner IS NOT NULL) = (NEW.to_state IN (1, 2))
        AND (NEW.from_state <> NEW.to_state OR NEW.from_owner IS NEW.to_owner)
        AND NEW.hold IS CASE 1 WHEN NEW.from_state THEN NEW.from_owner WHEN NEW.to_state THEN NEW.to_owner END
    );
END;

-- Other rows go only with an event that was dropped, too: once, and without a held unit. Its number and id stay taken.
DROP TRIGGER IF EXISTS holds_deleted;
CREATE TRIGGER holds_deleted BEFORE DELETE ON holds
WHEN NOT EXISTS (SELECT 1 FROM dropped_events WHERE event_no = OLD.event_no)
BEGIN SELECT RAISE(FAIL, 'holds are never deleted'); END;

DROP TRIGGER IF EXISTS holds_added;
CREATE TRIGGER holds_added BEFORE INSERT ON holds
WHEN EXISTS (SELECT 1 FROM holds WHERE id = NEW.id)
BEGIN SELECT RAISE(FAIL, 'this hold exists'); END;

-- A hold stays its holder's, and one that is over stays so.
DROP TRIGGER IF EXISTS holds_changed;
CREATE TRIGGER holds_changed BEFORE UPDATE ON holds
WHEN (NEW.id, NEW.event_no, NEW.caller, NEW.holder) IS NOT (OLD.id, OLD.event_no, OLD.caller, OLD.holder)
  OR OLD.state >= 2 AND NEW.state < 2
BEGIN SELECT RAISE(FAIL, 'a hold stays of its holder, and over'); END;

DROP TRIGGER IF EXISTS bookings_deleted;
CREATE TRIGGER bookings_deleted BEFORE DELETE ON bookings
WHEN NOT EXISTS (SELECT 1 FROM dropped_events WHERE event_no = OLD.event_no)
BEGIN SELECT RAISE(FAIL, 'bookings are never deleted'); END;

DROP TRIGGER IF EXISTS bookings_added;
CREATE TRIGGER bookings_added BEFORE INSERT ON bookings
WHEN EXISTS (SELECT 1 FROM bookings WHERE id = NEW.id)
BEGIN SELECT RAISE(FAIL, 'this booking exists'); END;

DROP TRIGGER IF EXISTS bookings_changed;
CREATE TRIGGER bookings_changed BEFORE UPDATE ON bookings
WHEN NEW.id IS NOT OLD.id
BEGIN SELECT RAISE(FAIL, 'a booking keeps its id'); END;

DROP TRIGGER IF EXISTS events_deleted;
CREATE TRIGGER events_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(FAIL, 'events are never deleted'); END;

DROP TRIGGER IF EXISTS events_added;
CREATE TRIGGER events_added BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE event_no = NEW.event_no OR id = NEW.id)
BEGIN SELECT RAISE(FAIL, 'this event exists'); END;

DROP TRIGGER IF EXISTS events_changed;
CREATE TRIGGER events_changed BEFORE UPDATE ON events
WHEN (NEW.event_no, NEW.id) IS NOT (OLD.event_no, OLD.id)
BEGIN SELECT RAISE(FAIL, 'an event keeps its number and id'); END;

DROP TRIGGER IF EXISTS dropped_events_added;
CREATE TRIGGER dropped_events_added BEFORE INSERT ON dropped_events
BEGIN
    SELECT RAISE(FAIL, 'this event was dropped')
    WHERE EXISTS (SELECT 1 FROM dropped_events WHERE event_no = NEW.event_no);
    SELECT RAISE(FAIL, 'a unit of this event is held')
    WHERE EXISTS (SELECT 1 FROM units WHERE event_no = NEW.event_no AND state = 1);
END;

DROP TRIGGER IF EXISTS dropped_events_changed;
CREATE TRIGGER dropped_events_changed BEFORE UPDATE ON dropped_events
WHEN NEW.event_no <> OLD.event_no
BEGIN SELECT RAISE(FAIL, 'a dropped event stays dropped'); END;

DROP TRIGGER IF EXISTS dropped_events_deleted;
CREATE TRIGGER dropped_events_deleted BEFORE DELETE ON dropped_events
BEGIN SELECT RAISE(FAIL, 'a dropped event stays dropped'); END;
