import { expect, test } from "bun:test";

import { citationFaults, sectionsOf } from "../../../scripts/check/citations.ts";

// The words are assembled here, because the check reads this file, too.
const WORD = "contract";
const cite = (numbers: string) => `${WORD} ${numbers}`;

test("chapters and sections are read from the numbers of the headings", () => {
  expect([...sectionsOf(new Map([[PAGE, "# 1. A\n## 1.1 B\n### 1.2 C\n## D\n"]]))]).toEqual([
    "1",
    "1.1",
  ]);
});

test.each([
  cite("1"),
  cite("1.1"),
  cite("1.1, 1.10 and 1"),
  `${cite("1.1")}.`,
  "the contract, 5 pages",
])("%s is in order", (text) => expect(faultsIn(`/** ${text} */`)).toEqual([]));

test.each([
  [cite("1.2"), "1.2"],
  [cite("1.1 and 2"), "2"],
  [cite("1.1 or\n * 1.3"), "1.3"],
  [`${WORD}\n// 1.4`, "1.4"],
])("a section that is not there is named with its line: %p", (text, number) => {
  expect(faultsIn(`\n/** ${text} */`)).toEqual([
    `src/app.ts:2: the contract has no section ${number}`,
  ]);
});

test("references between pages of the contract are checked", () => {
  const path = "docs/contract/2-http.md";
  expect(faultsIn("see section 1.1, and RFC 6749, section 5.2", path)).toEqual([]);
  expect(faultsIn("see sections 1.1 and 1.4", path)).toHaveLength(1);
});

const PAGE = "docs/contract/1-service.md";

const faultsIn = (text: string, path = "src/app.ts") =>
  citationFaults(
    new Map([
      [PAGE, "# 1. The service\n\n## 1.1 What it does\n\n## 1.10 Limits\n"],
      [path, text],
    ]),
  );
