import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { verify } from "@octokit/webhooks-methods";

import { eventExamples, EXAMPLES, vectorFiles, type Vector } from "../../scripts/vectors.ts";
import { isSigned } from "../../src/docs/verify/verify.ts";
import { CATALOG } from "../../src/outbox/event.ts";
import { GO_ENV } from "../support/processes/go.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { lacks } from "../support/needs.ts";

describe("the vectors", () => {
  test("match the current envelope and signature (else run scripts/vectors.ts)", () => {
    const files = vectorFiles();
    expect(stored.toSorted()).toEqual([...files.keys()].toSorted());
    for (const [path, text] of files) expect(readFileSync(join(FOLDER, path), "utf8")).toBe(text);
    expect(readFileSync(EXAMPLES, "utf8")).toBe(eventExamples());
  });

  test("contain every event of the catalog in both modes, and invalid deliveries", () => {
    const names = new Set(vectors.map(({ name }) => name));
    for (const { value } of CATALOG)
      for (const mode of ["full", "minimal"]) expect(names).toContain(`${value}-${mode}`);
    for (const name of ["changed-byte", "wrong-secret", "missing-header"])
      expect(names).toContain(name);
    expect(vectors.filter(({ valid }) => !valid).length).toBeGreaterThanOrEqual(10);
  });

  test("agree with a third-party library", async () => {
    for (const vector of vectors) {
      const signature = signatureOf(vector) ?? "";
      const known = signature !== "" && vector.body !== "";
      const verdict = known && (await verify(vector.secret, vector.body, signature));
      expect([vector.name, verdict]).toEqual([vector.name, vector.valid]);
    }
  });

  test("have bodies that agree with their headers", () => {
    for (const { headers, body } of vectors.filter((one) => one.valid))
      expect(JSON.parse(body)).toMatchObject({
        event: headers["X-SVC-Event"],
        event_id: headers["X-SVC-Delivery"],
      });
  });
});

describe("the snippet in TypeScript", () => {
  test.each(vectors.map((one) => [one.name, one] as const))(
    "gives the right verdict for %s",
    (_, vector) => {
      expect(isSigned(vector.secret, vector.body, signatureOf(vector))).toBe(vector.valid);
      expect(isSigned(vector.secret, Buffer.from(vector.body), signatureOf(vector))).toBe(
        vector.valid,
      );
    },
  );

  test("takes each signature of a rotation, in either order", () => {
    const rotated = vectors.filter(({ name }) => name.startsWith("grace-"));
    expect(rotated).toHaveLength(2);
    const other = `sha256=${"0".repeat(64)}`;
    for (const { secret, body, ...one } of rotated) {
      const valid = signatureOf(one);
      for (const given of [
        [valid, other],
        [other, valid],
        [undefined, valid],
      ])
        expect(isSigned(secret, body, ...given)).toBe(true);
      expect(isSigned(secret, body, other, undefined)).toBe(false);
    }
  });
});

type JudgeAll = (some: readonly Vector[]) => Promise<boolean[]>;

interface Language {
  readonly name: string;
  readonly needs: readonly NeedName[];
  /** Runs once before the vectors. */
  readonly prepare: (folder: string) => Promise<JudgeAll>;
}

const LANGUAGES: readonly Language[] = [
  {
    name: "Python",
    needs: ["python"],
    async prepare() {
      // The interpreter itself, because the wrapper of a version manager takes longer than the work.
      const program = await output(["python3", "-c", "import sys; print(sys.executable)"]);
      return judgeEach([program, "-I", "-S", file("verify.py")]);
    },
  },
  {
    name: "JavaScript",
    needs: ["node"],
    async prepare(folder) {
      const harness = join(folder, "judge.mjs");
      writeFileSync(harness, nodeHarness(file("verify.mjs")));
      return judgeTogether(["node", harness]);
    },
  },
  { name: "PHP", needs: ["php"], prepare: async () => judgeEach(["php", file("verify.php")]) },
  { name: "Ruby", needs: ["ruby"], prepare: async () => judgeEach(["ruby", file("verify.rb")]) },
  {
    name: "the shell",
    needs: ["openssl"],
    prepare: async () => judgeEach(["sh", file("verify.sh")]),
  },
  {
    name: "Go",
    needs: ["go"],
    async prepare(folder) {
      const program = join(folder, "verify-go");
      const main = join(folder, "main.go");
      writeFileSync(main, GO_HARNESS);
      cpSync(file("verify.go"), join(folder, "verify.go"));
      // Go caches its library build in the home folder, or in this test's folder without one.
      const home = process.env["HOME"] ?? folder;
      const build = ["go", "build", "-o", program, main, join(folder, "verify.go")];
      await output(build, { HOME: home, ...GO_ENV });
      return judgeEach([program]);
    },
  },
  {
    name: "Java",
    needs: ["java"],
    async prepare(folder) {
      const harness = join(folder, "Harness.java");
      writeFileSync(harness, JAVA_HARNESS);
      await output(["javac", "-d", folder, file("Verify.java"), harness]);
      return judgeTogether(["java", "-cp", folder, "Harness"]);
    },
  },
];

/** Returns the output of a command; throws with its error output if it fails. */
async function output(
  command: string[],
  env: Record<string, string> = {},
  input = "",
): Promise<string> {
  const child = Bun.spawn(command, {
    stdin: Buffer.from(input),
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, complaint] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${complaint}`);
  return text.trim();
}

/** Runs the command once per vector, with secret, signature, and the body on standard input. */
function judgeEach(command: readonly string[]): JudgeAll {
  return (some) => Promise.all(some.map((vector) => judge(command, vector)));
}

/** Runs all vectors in one process, because a virtual machine takes a while to start. */
function judgeTogether(command: string[]): JudgeAll {
  return async (some) => {
    const encode = (text: string) => Buffer.from(text).toString("base64");
    const lines = some.map((vector) =>
      [vector.secret, signatureOf(vector) ?? "", vector.body]
        .map((one) => `-${encode(one)}`)
        .join(" "),
    );
    const verdicts = await output(command, {}, lines.join("\n"));
    return verdicts.split("\n").map((line) => line === "true");
  };
}

const nodeHarness = (snippet: string) => `
import { readFileSync } from "node:fs";
import { isSigned } from ${JSON.stringify(snippet)};

for (const line of readFileSync(0, "utf8").split("\\n")) {
  const [secret, signature, body] = line.split(" ").map((one) => Buffer.from(one.slice(1), "base64"));
  console.log(isSigned(String(secret), body, String(signature)));
}
`;

const GO_HARNESS = `
package main

import (
	"io"
	"os"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !IsSigned(os.Args[1], body, os.Args[2]) {
		os.Exit(1)
	}
}
`;

const JAVA_HARNESS = `
import java.util.Base64;
import java.util.Scanner;

public final class Harness {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            byte[][] parts = new byte[3][];
            String[] texts = lines.nextLine().split(" ");
            for (int i = 0; i < 3; i++) parts[i] = Base64.getDecoder().decode(texts[i].substring(1));
            System.out.println(Verify.isSigned(new String(parts[0]), parts[2], new String(parts[1])));
        }
    }
}
`;

async function judge(command: readonly string[], vector: Vector): Promise<boolean> {
  const child = Bun.spawn([...command, vector.secret, signatureOf(vector) ?? ""], {
    stdin: Buffer.from(vector.body),
    env: process.env,
    stderr: "pipe",
  });
  const status = await child.exited;
  // Any other status or error output means that the snippet is broken.
  const error = await new Response(child.stderr).text();
  if ((status !== 0 && status !== 1) || error !== "") throw new Error(`${status}: ${error}`);
  return status === 0;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "vectors-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

for (const { name, needs, prepare } of LANGUAGES) {
  test.skipIf(lacks(...needs))(`the snippet in ${name} judges every kind of vector`, async () => {
    const judgeAll = await prepare(folder);
    const verdicts = await judgeAll(KINDS);
    const shown = KINDS.map(({ name: vector }, i) => [vector, verdicts[i]]);
    expect(shown).toEqual(KINDS.map(({ name: vector, valid }) => [vector, valid]));
  });
}

const FOLDER = join(import.meta.dir, "../vectors");
const SNIPPETS = join(import.meta.dir, "../../src/docs/verify");

const stored = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((path) =>
  /\/.*\.json$/.test(path),
);

const vectors: Vector[] = stored.map((path) =>
  JSON.parse(readFileSync(join(FOLDER, path), "utf8")),
);

/**
 * One vector of each kind, because most snippets need a process for each: every case of a signature, and an event of each
 * mode. The body of `review_received-full` has characters beyond ASCII.
 */
const KINDS = vectors.filter(
  ({ name }) => !/-(?:full|minimal)$/.test(name) || name.startsWith("review_received-"),
);

const signatureOf = ({ headers }: Pick<Vector, "headers">) => headers["X-SVC-Signature"];
const file = (name: string) => join(SNIPPETS, name);
