import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../../scripts/install/install.ts";

const MARK = "@@ended";

/** A bash that runs the blocks of a guide one after the other, so that later blocks have the variables of earlier ones. */
export class Shell {
  readonly #folder: string;
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #err: Promise<string>;
  readonly #lines: AsyncIterator<string>;
  #blocks = 0;

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#folder = folder;
    // `-e` stops at errors, which a reader would notice; the trap ends background jobs with the shell.
    this.#child = Bun.spawn(["bash", "--norc", "-eu", "-o", "pipefail"], {
      cwd: ROOT,
      env,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#err = this.#child.stderr.text();
    this.#lines = linesOf(this.#child.stdout);
    void this.#child.stdin.write("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
  }

  /** Runs a block in the shell itself and answers its output; throws with the errors of the shell if the block fails. */
  async run(block: string): Promise<string> {
    const file = join(this.#folder, `block-${++this.#blocks}.sh`);
    writeFileSync(file, block);
    await this.#child.stdin.write(`. '${file}' < /dev/null\necho '${MARK}'\n`);
    await this.#child.stdin.flush();
    const out: string[] = [];
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) throw new Error(`${block}\n${out.join("\n")}\n${await this.#err}`);
      if (value === MARK) return out.join("\n");
      out.push(value);
    }
  }

  async stop(): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of stream) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
