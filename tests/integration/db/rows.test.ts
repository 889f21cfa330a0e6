import { expect, test } from "bun:test";
import { createHash } from "node:crypto";

import { sql } from "drizzle-orm";

import { mails } from "../../../db/schema/alerts.ts";
import { outbox } from "../../../db/schema/outbox.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { nullable, rows, statement, value } from "../../../db/statement.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

test("numbers, booleans, instants and lists round-trip unchanged", async () => {
  const given = [
    { ...NULLS, yes: true, integer: -2_147_483_648, bigint: Number.MAX_SAFE_INTEGER },
    { ...NULLS, yes: false, integer: 0, bigint: 0, numbers: [] },
    { ...NULLS, numbers: [1, -1, 0], profanity: [] },
    { ...NULLS, at: new Date("2026-02-28T23:59:59.999Z") },
    { ...NULLS, at: new Date("0001-01-01T00:00:00.000Z") },
    { ...NULLS, at: new Date("9999-12-31T23:59:59.999Z") },
    { ...NULLS, json: [] },
    { ...NULLS, json: { deep: [{ a: null, b: false, c: 1.5 }] } },
  ];
  expect([...(await database.db.run(echo, { given }))]).toEqual(given);
});

test("numbers, booleans, instants and lists arrive at the server as they were given", async () => {
  const at = new Date("2026-02-28T23:59:59.999Z");
  const given = [
    { ...NULLS, yes: true, integer: -2_147_483_648, numbers: [1, -1, 0] },
    { ...NULLS, at, bigint: Number.MAX_SAFE_INTEGER, profanity: ["a,b", ""] },
  ];
  expect([...(await database.db.run(texts, { given }))]).toEqual([
    { ...NO_TEXTS, yes: "true", integer: "-2147483648", numbers: "{1,-1,0}" },
    { ...NO_TEXTS, at: "2026-02-28 23:59:59.999", bigint: "9007199254740991", words: '{"a,b",""}' },
  ]);
});

test("no rows stay no rows, and a row of nulls stays a row", async () => {
  expect([...(await database.db.run(echo, { given: [] }))]).toEqual([]);
  expect([...(await database.db.run(echo, { given: [NULLS] }))]).toEqual([NULLS]);
  expect([...(await database.db.run(echo, { given: [NULLS, NULLS] }))]).toEqual([NULLS, NULLS]);
});

test("rows of one field round-trip unchanged", async () => {
  for (const given of [
    [],
    [{ content: null }],
    [{ content: "" }],
    [{ content: null }, { content: "" }],
  ])
    expect([...(await database.db.run(single, { given }))]).toEqual(given);
});

const database = fixture(createDatabase);

const TEXTS = [
  "",
  " ",
  '"',
  '""',
  '"null"',
  "null",
  "NULL",
  "\\N",
  "\\",
  "{}",
  '{"a"}',
  "a\x1eb",
  "a\x1fb",
  "\x1e",
  "\x1f",
  '"\x1e\x1f\\\n',
  "\u0001\u001d\u007f\u0085\u2028\ufeff\uffff",
  "ß, и, 日本, 🎉",
  "a\tb\r\nc",
];

test.each(TEXTS.map((text) => [text]))(
  "%j round-trips unchanged, in one row and among others",
  async (text) => {
    const given = [
      { ...NULLS, content: text },
      { ...NULLS, bytewise: text },
      { ...NULLS, profanity: [text] },
      { ...NULLS, profanity: [text, "b", text] },
      { ...NULLS, json: text },
      { ...NULLS, json: { [text === "" ? "empty" : text]: [text] } },
    ];
    expect([...(await database.db.run(echo, { given }))]).toEqual(given);
    for (const one of given)
      expect([...(await database.db.run(echo, { given: [one] }))]).toEqual([one]);
    // The server computes the digests, so that an error of the encoding is not undone by the decoding.
    const digest = createHash("md5").update(text).digest("hex");
    const everywhere = {
      ...NULLS,
      content: text,
      bytewise: text,
      profanity: ["a", text],
      json: text,
    };
    expect([...(await database.db.run(digests, { given: [everywhere] }))]).toEqual([
      { content: digest, bytewise: digest, word: digest, json: digest },
    ]);
  },
);

const single = statement({
  name: "test.single",
  // Returns its parameter.
  params: { given: rows({ content: nullable(reviews.content) }) },
  columns: { content: nullable(reviews.content) },
  text: ({ given }) => sql`select * from ${given}`,
});

const FIELDS = {
  content: nullable(reviews.content),
  bytewise: nullable(outbox.eventId),
  profanity: nullable(reviews.profanity),
  numbers: nullable(value("integer[]")),
  json: nullable(reviewHistory.review),
  yes: nullable(outbox.isTest),
  integer: nullable(reviews.rate),
  bigint: nullable(outbox.sequence),
  at: nullable(mails.createdAt),
};

const NULLS = {
  content: null,
  bytewise: null,
  profanity: null,
  numbers: null,
  json: null,
  yes: null,
  integer: null,
  bigint: null,
  at: null,
};

const TEXT = nullable(value("text"));

const NO_TEXTS = { yes: null, integer: null, bigint: null, numbers: null, words: null, at: null };

const texts = statement({
  name: "test.texts",
  // Returns the values as the server writes them.
  params: { given: rows(FIELDS) },
  columns: { yes: TEXT, integer: TEXT, bigint: TEXT, numbers: TEXT, words: TEXT, at: TEXT },
  text: ({ given }) => sql`
    select yes::text, "integer"::text, "bigint"::text, numbers::text, profanity::text as words,
           to_char("at" at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') as "at"
      from ${given}`,
});

const digests = statement({
  name: "test.digests",
  params: { given: rows(FIELDS) },
  columns: { content: TEXT, bytewise: TEXT, word: TEXT, json: TEXT },
  text: ({ given }) => sql`
    select md5(content) as content, md5(bytewise) as bytewise, md5(profanity[2]) as word,
           md5("json" #>> '{}') as "json"
      from ${given}`,
});

const echo = statement({
  name: "test.echo",
  // Returns its parameter.
  params: { given: rows(FIELDS) },
  columns: FIELDS,
  text: ({ given }) => sql`select * from ${given}`,
});
