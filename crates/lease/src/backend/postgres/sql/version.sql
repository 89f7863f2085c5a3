-- The version of the objects above. Last, so that it is true only when all of them are there.
CREATE OR REPLACE FUNCTION soldonce_lease_version() RETURNS integer LANGUAGE sql IMMUTABLE
AS $$ SELECT 3 $$;
