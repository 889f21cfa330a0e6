import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { NeedName } from "../../../scripts/needs.ts";
import { GO_ENV } from "./go.ts";

export const SDK = join(import.meta.dir, "../../../src/sdk");

/** A package of src/sdk that needs another program than Bun. */
interface Package {
  readonly name: "Python" | "PHP" | "Go";
  readonly needs: readonly NeedName[];
  /** Writes a program that uses the package into an empty folder, and returns the command that runs it. */
  readonly command: (folder: string, program: string) => string[];
}

export const PACKAGES: readonly Package[] = [
  {
    name: "Python",
    needs: ["python"],
    command: (folder, program) => ["python3", written(folder, "program.py", program)],
  },
  {
    name: "PHP",
    needs: ["php"],
    command: (folder, program) => ["php", written(folder, "program.php", PHP_LOADER + program)],
  },
  {
    name: "Go",
    needs: ["go"],
    command(folder, program) {
      cpSync(join(SDK, "go"), join(folder, "reviewrelay"), { recursive: true });
      written(folder, "go.mod", GO_MODULE);
      written(folder, "main.go", program);
      return ["go", "run", "."];
    },
  },
];

/** Runs a program that reads JSON from its input and prints JSON. */
export async function runProgram<T>(
  { command }: Package,
  program: string,
  input: unknown,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "program-"));
  try {
    const child = Bun.spawn(command(folder, program), {
      cwd: folder,
      env: { ...process.env, ...GO_ENV, SDK, PYTHONPATH: join(SDK, "python") },
      stdin: Buffer.from(JSON.stringify(input)),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect([await child.exited, err]).toEqual([0, ""]);
    return JSON.parse(out);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function written(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const PHP_LOADER = `<?php
spl_autoload_register(function ($class) {
    require getenv('SDK') . '/php/src/' . substr($class, strlen('ReviewRelay\\\\')) . '.php';
});
`;

const GO_MODULE = `module program

go 1.22

require reviewrelay v0.0.0

replace reviewrelay => ./reviewrelay
`;
