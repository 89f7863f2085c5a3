), write_bookings AS (
    INSERT INTO bookings AS b (id, event_no, caller, holder, holder_key, hold, state, fence, reference,
                               payment, created_at, confirmed_at, payment_detail, version)
    SELECT n.id, $1, n.caller, n.holder, n.holder_key, n.hold, n.state, n.fence, n.reference,
           n.payment, n.created_at, n.confirmed_at, n.payment_detail, 1
    FROM go, unnest($15::booking_row[]) AS n
    ON CONFLICT (id) DO UPDATE
    SET state = excluded.state, fence = excluded.fence, payment = excluded.payment,
        confirmed_at = excluded.confirmed_at, payment_detail = excluded.payment_detail,
        version = b.version + 1
), write_lines AS (
    INSERT INTO lines (booking, n, event_no, unit_no, price, version, state)
    SELECT n.booking, n.n, $1, n.unit_no, n.price, n.version, n.state
    FROM go, unnest($16::line_row[]) AS n
), write_effects AS (
    INSERT INTO outbox (at, kind, booking, amount, total)
    SELECT go.at, n.kind, n.booking, n.amount, n.total
    FROM go, unnest($18::effect_row[]) AS n
), settle_effects AS (
    UPDATE outbox o SET done_at = go.at
    FROM go, unnest($19::effect_row[]) AS n
    WHERE o.done_at IS NULL AND o.booking = n.booking AND o.kind = n.kind
      AND o.total IS NOT DISTINCT FROM n.total
), write_deliveries AS (
    INSERT INTO deliveries (endpoint, message, kind, subject, at, body, next_at)
    SELECT e.id, n.message, n.kind, n.subject, go.at, n.body, go.at
    FROM go, unnest($10::message_row[]) WITH ORDINALITY AS n (message, kind, subject, body, place)
    JOIN webhook_endpoints e ON e.kinds & (1 << n.kind::integer) <> 0
    ORDER BY n.place, e.id
), write_event AS (
    -- A field that only a newer server knows stays.
    UPDATE events SET policy = (policy::jsonb || $28::jsonb)::text, cancelled = $29, version = version + 1
    FROM go WHERE event_no = $1 AND $28::text IS NOT NULL
