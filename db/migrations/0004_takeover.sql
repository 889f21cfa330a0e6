-- A takeover frees the shards of the dead and walks nothing: that they are orphaned is all that is kept, and says to
-- whoever holds them next that the first entries of their lanes may have been sent already (contract 7.4).

-- Set by the burial of the holder, left as it is by a claim, cleared by an orderly release.
alter table shards add column orphaned boolean not null default false;

-- A dead process may have begun the same attempt before.
alter table delivery_attempts add column possibly_repeated boolean not null default false;
