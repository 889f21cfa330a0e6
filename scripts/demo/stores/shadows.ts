/**
 * Creates a schema with tables, functions and operators that hide those of the product and of PostgreSQL if the search
 * path begins with it. Also creates an unexpected access method for tables.
 */
export const SHADOWS = `
  drop schema if exists shadows cascade;
  drop access method if exists foreign_heap cascade;
  create schema shadows;
  create access method foreign_heap type table handler heap_tableam_handler;
  create function shadows.now() returns timestamptz language sql as $$select '1999-01-01'::timestamptz$$;
  create function shadows.clock_timestamp() returns timestamptz language sql as $$select '1999-01-01'::timestamptz$$;
  create function shadows.hashtext(text) returns integer language sql as $$select 1$$;
  create function shadows.set_config(text, text, boolean) returns text language sql as $$select 'none'$$;
  create function shadows.never(text, text) returns boolean language sql as $$select false$$;
  create operator shadows.= (leftarg = text, rightarg = text, function = shadows.never);
  create function shadows.never(integer, integer) returns boolean language sql as $$select false$$;
  create operator shadows.= (leftarg = integer, rightarg = integer, function = shadows.never);
  create table shadows.users (id integer);
  create table shadows.outbox (id integer);
  create table shadows.delivery_attempts_default (id text);`;
