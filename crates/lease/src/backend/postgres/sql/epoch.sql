-- Gives the next epoch of a namespace, above `p_above`; NULL when none is left. The row lock makes
-- one caller wait for the other, so no number is given twice.
CREATE OR REPLACE FUNCTION soldonce_lease_epoch_next(p_ns text, p_above integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_epoch integer;
BEGIN
    PERFORM soldonce_lease_settings();
    INSERT INTO soldonce_lease_epoch AS e (ns, epoch)
        SELECT p_ns, p_above + 1 WHERE p_above < 2097151
        ON CONFLICT (ns) DO UPDATE SET epoch = greatest(e.epoch, p_above) + 1
            WHERE e.epoch < 2097151
        RETURNING e.epoch INTO v_epoch;
    RETURN v_epoch;
END $$;

-- Gives the next whole token of a namespace, above `p_above`; NULL when none is left. A row and not
-- a sequence: a sequence's number may come back after a crash unless its transaction wrote more.
-- Begins at epoch 1, so that the tokens count as anchored.
CREATE OR REPLACE FUNCTION soldonce_lease_token_next(p_ns text, p_above bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_number bigint;
BEGIN
    PERFORM soldonce_lease_settings();
    INSERT INTO soldonce_lease_token AS t (ns, number)
        SELECT p_ns, greatest(p_above, 4294967296) + 1 WHERE p_above < 9007199254740991
        ON CONFLICT (ns) DO UPDATE SET number = greatest(t.number, p_above) + 1
            WHERE t.number < 9007199254740991
        RETURNING t.number INTO v_number;
    RETURN v_number;
END $$;
