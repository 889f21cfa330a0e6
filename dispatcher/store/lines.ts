/*
 * What is hot goes to Postgres and comes from it as lines of text: the driver has one value to make or read for a row,
 * instead of one for each column. An empty field is null.
 */

/** No value contains it: what receivers send is cleaned of it, and JSON has it escaped. */
export const BETWEEN_RECORDS = "\x1e";
export const BETWEEN_FIELDS = "\x1f";
