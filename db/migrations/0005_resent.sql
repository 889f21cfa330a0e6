-- A kept connection died without a byte of an answer, and the same request went out once more on a fresh one within
-- the attempt (decisions.md 4): the receiver may have got it twice, so the record says so.
alter table delivery_attempts add column resent boolean not null default false;
