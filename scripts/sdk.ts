// Generates a client of the API from its OpenAPI description into `sdk/`, which is not committed:
//
//   bun run sdk typescript [server root]     installs the generator from the package registry
//   bun run sdk python [server root]         runs openapi-python-client, which must be installed
//
// The server must be running; the default is http://localhost:3000.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The generator needs a TypeScript with a compiler in JavaScript, which ours no longer has. It is therefore installed
 * in its own folder.
 */
const TYPESCRIPT_GENERATOR = { "@hey-api/openapi-ts": "0.99.0", typescript: "5.9.3" };
const GENERATOR_FOLDER = join(import.meta.dir, "../.cache/sdk");
const FOLDER = join(import.meta.dir, "../sdk");
export const PYTHON_GENERATOR = "openapi-python-client";

type Language = "typescript" | "python";

/** Returns the command that generates a client into a folder from a description file. */
function generatorOf(language: Language, description: string, folder: string): string[] {
  const options = ["--path", description, "--output-path", folder, "--meta", "none", "--overwrite"];
  if (language === "python") return [PYTHON_GENERATOR, "generate", ...options];
  const more = ["-i", description, "-o", folder, "-c", "@hey-api/client-fetch"];
  return [
    process.execPath,
    "--bun",
    join(GENERATOR_FOLDER, "node_modules/.bin/openapi-ts"),
    ...more,
  ];
}

/** Installs the TypeScript generator; returns false if the package registry cannot be reached. */
export function installGenerator(): boolean {
  mkdirSync(GENERATOR_FOLDER, { recursive: true });
  const wanted = { private: true, dependencies: TYPESCRIPT_GENERATOR };
  writeFileSync(join(GENERATOR_FOLDER, "package.json"), JSON.stringify(wanted));
  const options = { cwd: GENERATOR_FOLDER, stdout: "ignore", stderr: "ignore" } as const;
  return Bun.spawnSync([process.execPath, "install"], options).success;
}

/** Generates the client; throws with the generator's output if it fails. */
export async function makeClient(language: Language, root: string, folder: string): Promise<void> {
  const answer = await fetch(`${root}/openapi.json`);
  if (!answer.ok) throw new Error(`${root}/openapi.json was answered ${answer.status}.`);
  const description = `${folder}.openapi.json`;
  mkdirSync(dirname(folder), { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  writeFileSync(description, await answer.text());
  const command = generatorOf(language, description, folder);
  const made = Bun.spawn(command, { env: process.env, stdout: "pipe", stderr: "pipe" });
  const said = await Promise.all([made.stdout.text(), made.stderr.text()]);
  if ((await made.exited) !== 0) throw new Error(said.join("\n"));
}

async function main([language, root = "http://localhost:3000"]: string[]): Promise<void> {
  if (language !== "typescript" && language !== "python")
    throw new Error("Name a language: typescript or python.");
  if (language === "typescript" && !installGenerator())
    throw new Error("The generator cannot be installed: the package registry cannot be reached.");
  const folder = join(FOLDER, language === "python" ? "reviewrelay_client" : language);
  await makeClient(language, root, folder);
  console.log(`A client for ${language} is in ${folder}.`);
}

if (import.meta.main)
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
