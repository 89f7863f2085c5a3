-- Servers look for events that others changed several times a second: few batches are such.
CREATE INDEX batches_renewing ON batches (xid) WHERE renews;
