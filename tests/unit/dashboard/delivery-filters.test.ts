import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";

import { asCurl } from "../../../src/dashboard/app/pages/webhooks/deliveries/attempt-words.ts";
import { listOptions, slotsOf } from "../../../src/dashboard/app/ui/pages.ts";
import {
  deliveryFilterOf,
  deliveryQuery,
} from "../../../src/dashboard/app/pages/webhooks/data/filters.ts";
import {
  csvHead,
  csvLine,
  EXPORTED_AT_MOST,
  exportRows,
} from "../../../src/dashboard/app/ui/export-rows.ts";
import { guidesLike, tabsLike, topicsLike } from "../../../src/dashboard/app/search/hit.ts";
import { hasWords } from "../../../src/dashboard/app/ui/text-query.ts";

describe("a line of CSV", () => {
  test.each([
    ["plain", "plain"],
    ["=1+1", `"'=1+1"`],
    ["+1", `"'+1"`],
    ["-1", `"'-1"`],
    ["@SUM(A1)", `"'@SUM(A1)"`],
    ["  =1", `"'  =1"`],
    ["\t=1", `"'\t'=1"`],
    ["\r=1", `"'\r'=1"`],
    ['say "hi", you', '"say ""hi"", you"'],
    ["two\nlines", '"two\nlines"'],
    ["a=1", "a=1"],
    ["x;=1+1", `"x;'=1+1"`],
    ['x;"=1+1;y', `"x;'""=1+1;y"`],
    ["x;\u200b-1", `"x;'\u200b-1"`],
    ["x\n=1\t+2", `"x\n'=1\t'+2"`],
    ["x; y, =1", '"x; y, =1"'],
    ...["\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212", "\ufe66"].map((one) => [
      `${one}1`,
      `"'${one}1"`,
    ]),
    ...["\u200b", "\ufeff", "\u00a0", "\u3164", "\u200f", "\u0000", "\u2800"].map((one) => [
      `${one}=1`,
      `"'${one}=1"`,
    ]),
    ["\u200fשלום", "\u200fשלום"],
  ])("writes %j as %s", (text, cell) => {
    expect(csvLine({ text })).toBe(`${cell}\r\n`);
  });

  test("has no cell that begins with a formula, wherever a spreadsheet separates cells", () => {
    const parts = [
      "=",
      "+",
      "-",
      "@",
      "\uff1d",
      ";",
      ",",
      "\t",
      "\r",
      "\n",
      '"',
      "'",
      " ",
      "\u200b",
      "a1",
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 12 }), (some) => {
        const text = some.join("");
        const line = csvLine({ id: 1, text, name: "x" });
        // With commas the cell is one; without the apostrophes, it is the text.
        const [, cell = "", ...more] = cellsOf(line, ",");
        expect([more, cell.replaceAll("'", "")]).toEqual([["x"], text.replaceAll("'", "")]);
        for (const separator of [",", ";", "\t"])
          for (const one of cellsOf(line, separator))
            expect(one).not.toMatch(/^[\s\u200b]*[=+\-@\uff1d]/);
      }),
    );
  });

  test("of a long text takes linear time", () => {
    const text = [";", "\t", " ", "\u200b", '"'].map((one) => one.repeat(200_000)).join("=");
    expect(csvLine({ text }).length).toBeGreaterThan(1_000_000);
  });

  test("writes numbers unchanged, and null as an empty cell", () => {
    expect(csvHead({ one: -1, two: null })).toBe("one,two\r\n");
    expect(csvLine({ one: -1, two: null })).toBe("-1,\r\n");
  });
});

describe("an export", () => {
  const save = async (format: "csv" | "json", total: number) => {
    const counts: number[] = [];
    const made = await exportRows({
      format,
      read: async (cursor) => {
        const from = Number(cursor ?? 0);
        const rows = Array.from({ length: Math.min(100, total - from) }, (_, i) => from + i);
        return { data: rows, next_cursor: from + 100 < total ? String(from + 100) : null };
      },
      lineOf: (row: number) => ({ row }),
      onProgress: (count) => counts.push(count),
      signal: new AbortController().signal,
    });
    return { ...made, counts, text: await new Blob([...made.parts]).text() };
  };

  test.each([0, 1, 100, 101, 250])("of %i rows contains all of them", async (total) => {
    const json = await save("json", total);
    expect(JSON.parse(json.text)).toHaveLength(total);
    const csv = await save("csv", total);
    expect(csv.text.split("\r\n").filter((line) => line !== "")).toHaveLength(total && total + 1);
    expect([json.isCut, csv.isCut]).toEqual([false, false]);
  });

  test.each([
    [EXPORTED_AT_MOST, EXPORTED_AT_MOST, false],
    [EXPORTED_AT_MOST + 1, EXPORTED_AT_MOST, true],
  ])("of %i rows contains %i, and reports whether it was cut", async (total, count, isCut) => {
    const made = await save("json", total);
    expect({ count: made.count, isCut: made.isCut }).toEqual({ count, isCut });
    expect(JSON.parse(made.text)).toHaveLength(count);
  });
});

describe("a list that is read page by page", () => {
  test("leads from each page to the page before and after, and knows the rows before it", () => {
    const { initialPageParam: first, ...options } = listOptions(["list"], async () => ({
      data: [""],
      next_cursor: null,
    }));
    const newest = { rows: ["a", "b"], next: "older" };
    const oldest = { rows: ["c"], next: null };
    const second = options.getNextPageParam(newest, [newest], first, [first]);
    if (second === undefined || second === null) throw new Error("There is a second page.");
    expect([second.cursor, second.from]).toEqual(["older", 2]);
    expect(options.getNextPageParam(oldest, [oldest], second, [second])).toBeUndefined();
    expect(options.getPreviousPageParam?.(oldest, [oldest], second, [second])).toBe(first);
    expect(options.getPreviousPageParam?.(newest, [newest], first, [first])).toBeUndefined();
    expect(slotsOf({ pages: [oldest], pageParams: [second] })).toEqual([undefined, undefined, "c"]);
  });
});

describe("the filter of the address", () => {
  test("drops values that the API would reject, and unknown parameters", () => {
    const params = new URLSearchParams(
      "tab=deliveries&review_id=0&event_id=short&state=lost&outcome=bad&status=600&within=2h&since=x&q= words &external_review_id=g-1",
    );
    expect(deliveryFilterOf(params)).toEqual({ q: "words", external_review_id: "g-1" });
    const good = {
      event: "note_added",
      since: "2026-06-01T00:00:00Z",
      review_id: "2147483647",
      status: "5xx",
      outcome: "not_delivered",
      within: "24h",
    };
    expect(deliveryFilterOf(new URLSearchParams(good))).toEqual(good);
    expect(deliveryFilterOf(new URLSearchParams({ review_id: "2147483648" }))).toEqual({});
  });

  test("converts a preset to a period that ends now", () => {
    const now = Date.parse("2026-06-02T00:00:00Z");
    expect(deliveryQuery({ within: "24h", q: "x" }, now)).toEqual({
      q: "x",
      since: "2026-06-01T00:00:00.000Z",
    });
    expect(deliveryQuery({ since: "2026-06-01T00:00:00Z" }, now)).toEqual({
      since: "2026-06-01T00:00:00Z",
    });
  });
});

test("a curl command quotes all texts for the shell", () => {
  const headers = {
    Host: "a.example",
    "X-SVC-Event": "it's",
    "Content-Length": "3",
    Two: ["a", "b"],
  };
  const command = asCurl("https://a.example/?a=1&b=$(id)", headers, `{"a":"'\`id\`"}`);
  expect(command.split("\n").slice(2)).toEqual([
    "curl -X POST 'https://a.example/?a=1&b=$(id)' \\",
    `  -H 'X-SVC-Event: it'\\''s' \\`,
    "  -H 'Two: a' \\",
    "  -H 'Two: b' \\",
    `  --data-raw '{"a":"'\\''\`id\`"}'`,
  ]);
});

test("the search matches all words, and titles come first", () => {
  expect(hasWords("API keys", "key api")).toBe(true);
  expect(hasWords("API keys", "key lock")).toBe(false);
  const section = (title: string, text: string) => ({ path: "/docs/x", guide: "G", title, text });
  const found = guidesLike([section("A", "about retries"), section("Retries", "")], "retries");
  expect(found.map(({ title }) => title)).toEqual(["Retries", "A"]);
});

test("the search finds settings and actions of the pages that the role may open, by other words, too", () => {
  const one = { id: "01A", label: "Reviews", webhook_url: "https://hooks.example/" };
  const shown = (typed: string, path: string, role = "partner_owner") =>
    [...tabsLike(one, typed), ...topicsLike([{ path }], role, typed)].map(({ title, href }) => [
      title,
      href,
    ]);
  expect(shown("rotate secret", "/keys")).toEqual([
    ["Reviews: settings", "/webhooks/01A?tab=settings"],
    ["OAuth clients", "/keys"],
  ]);
  expect(shown("01a", "/keys")).toEqual([["Reviews: overview", "/webhooks/01A"]]);
  expect(shown("2fa", "/security")).toEqual([["Two-step verification", "/security"]]);
  expect(shown("2fa", "/keys")).toEqual([]);
  expect(shown("redirect", "/keys")).toEqual([["New OAuth client", "/keys?new=client"]]);
  expect(shown("redirect", "/keys", "account_owner")).toEqual([]);
  expect(shown("new sub", "/webhooks")).toEqual([["New subscription", "/webhooks/new"]]);
});

/**
 * Reads the cells of CSV as spreadsheets do: quotes count only at the start of a cell, text after the closing quote is kept,
 * and a line break ends the cell.
 */
function cellsOf(csv: string, separator: string): string[] {
  const cells: string[] = [];
  for (let at = 0; at < csv.length; at++) {
    let cell = "";
    if (csv[at] === '"') {
      for (at++; at < csv.length; at++) {
        if (csv[at] !== '"') cell += csv[at];
        else if (csv[at + 1] === '"') cell += csv[at++];
        else break;
      }
      at++;
    }
    while (at < csv.length && csv[at] !== separator && !/[\r\n]/.test(csv[at] ?? ""))
      cell += csv[at++];
    if (csv.startsWith("\r\n", at)) at++;
    cells.push(cell);
  }
  return cells;
}
