), write_records AS (
    INSERT INTO idempotency (key, fingerprint, at, kind, subject, body)
    SELECT n.key, n.fingerprint, go.at, n.kind, n.subject, n.body
    FROM go, unnest($17::idempotency_row[]) AS n
), write_batch AS (
    INSERT INTO batches (id, event_no, server, place, at, commands, renews, units, versions, holds,
                         bookings, holders)
    SELECT $20, $1, $21, go.place, go.at, $13::integer, $2, $23::integer[], $24::bigint[],
           $25::bytea[], $26::bytea[], $27::bytea[]
    FROM go
)
SELECT (SELECT at FROM go) AS at,
       coalesce((SELECT wall FROM read_clock), $6::bigint,
                greatest((SELECT clock.at FROM clock), ledger_clock())) AS wall,
       CASE WHEN EXISTS (SELECT FROM go) THEN
           require_rows('units', (SELECT count(*) FROM write_units),
                        (SELECT count(*) FROM units_seen WHERE state IS NOT NULL))
           AND require_rows('holds', (SELECT count(*) FROM add_holds) + (SELECT count(*) FROM write_holds),
                            cardinality($11::hold_row[]))
       END
