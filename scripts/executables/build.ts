// Imports no development dependency, because the build of the image has only those of production.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { driverError } from "../../db/driver.ts";
import { ROOT } from "../../db/executable.ts";
import { builtDashboard, writeBuilt } from "../../src/dashboard/assets.ts";
import { bundleForNode } from "../../src/lib/bun.ts";

/** The source files that the product reads at run time. */
const FILES = [
  "db/migrations/*.sql",
  "db/migrations/meta/_journal.json",
  "src/docs/*.{css,js}",
  "src/docs/guides/*.md",
  "src/docs/{embed,oauth,verify}/*.*",
];
/** The remaining source files: modules, and files that only the build, the client packages and developers use. */
const NOT_READ = [
  "{db,dispatcher,src}/**/*.{ts,tsx}",
  "db/migrations/meta/*_snapshot.json",
  "db/patches/**/*",
  "src/dashboard/app/**/*",
  "src/docs/event-examples.json",
  "src/sdk/**/*",
  "**/__pycache__/**/*",
];
/**
 * The native code, by its name in {@link namesInside}. Without it the server works, but needs twice the time for a
 * password.
 */
const NATIVE = "argon2.node";
const REMEDY =
  " Run `bun install --frozen-lockfile --cpu '*' --os '*'` first, for the native code of all machines.";
const COMMAND = join(ROOT, "src/cli/main.ts");

export interface BuildOptions {
  /** The folder of the two executables. */
  readonly folder: string;
  readonly commit: string;
  /** A target with Bun's name, such as `bun-linux-arm64`; this machine by default. */
  readonly target?: string | undefined;
}

/**
 * Builds `reviewrelay-server`, which contains all processes, commands and files of the product, and `reviewrelay`, the
 * command line program for partners, also as `reviewrelay.mjs` for Node. Returns the paths of the files inside the
 * server. Throws if one is missing.
 */
export async function buildExecutables(options: BuildOptions): Promise<readonly string[]> {
  const fault = driverError();
  if (fault !== undefined) throw new Error(fault);
  const made = {
    "dist/dashboard.json": writeBuilt(await builtDashboard()),
    "dist/reviewrelay.mjs": await bundleForNode(COMMAND),
  };
  const names = [...namesOfFiles(), ...Object.keys(made)];
  const entry = join(ROOT, "dist/server.ts");
  const source = [
    // A package for passkeys needs this polyfill before the bundler would load it.
    'import "reflect-metadata";',
    // The executable contains every file that one of its modules imports with `type: "file"`.
    ...names.map((name, at) => `import f${at} from ${quoted(name)} with { type: "file" };`),
    `export const files = [${names.map((_, at) => `f${at}`).join(", ")}];`,
    `await import(${quoted("src/operate/main.ts")});`,
  ];
  const server = join(options.folder, "reviewrelay-server");
  const { inputs } = await compile(server, entry, options, {
    [entry]: source.join("\n"),
    ...Object.fromEntries(Object.entries(made).map(([name, text]) => [join(ROOT, name), text])),
  });
  refuseImports(names, inputs);
  await compile(join(options.folder, "reviewrelay"), COMMAND, options);
  await Bun.write(join(options.folder, "reviewrelay.mjs"), made["dist/reviewrelay.mjs"]);
  const inside = namesInside(server);
  const missing = [...names, NATIVE].filter((name) => !inside.includes(name));
  const remedy = missing.includes(NATIVE) ? REMEDY : "";
  if (missing.length > 0) throw new Error(`${server} lacks ${missing.join(", ")}.${remedy}`);
  return inside;
}

const quoted = (name: string) => JSON.stringify(join(ROOT, name));

/** Returns the paths that match `FILES`. Throws for a file in the product's folders that is in neither list. */
function namesOfFiles(): string[] {
  const names = globSync(FILES, { cwd: ROOT });
  const known = new Set([...names, ...globSync(NOT_READ, { cwd: ROOT })]);
  const all = new Bun.Glob("{db,dispatcher,src}/**/*").scanSync({ cwd: ROOT });
  const unknown = [...all].filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(
      `${unknown.join(", ")}: add the files that the product reads to FILES in scripts/executables/build.ts, and the others to NOT_READ.`,
    );
  return names;
}

/**
 * Throws if a module imports one of the files: the bundler would then resolve that import as a path, like the import of
 * the entry.
 */
function refuseImports(names: readonly string[], inputs: Bun.BuildMetafile["inputs"]): void {
  for (const [module, { imports }] of Object.entries(inputs))
    for (const { path } of module === "dist/server.ts" ? [] : imports)
      if (names.includes(path))
        throw new Error(`${module} imports ${path}, a file of the executable: read it instead.`);
}

/**
 * Reads the paths of the files inside an executable; Bun ends each path with a zero byte. Native code has a different
 * path for each kind of machine, so only the beginning of its name is compared.
 */
function namesInside(executable: string): string[] {
  const text = readFileSync(executable).toString("latin1");
  const paths = [...text.matchAll(/\/\$bunfs\/root\/([\w@./-]+\/[\w@./-]+)\0/g)];
  const names = paths.map(([, path = ""]) => path.replace(/^.*\/(\w+)\.[^/]*\.node$/, "$1.node"));
  return [...new Set(names)].toSorted();
}

async function compile(
  outfile: string,
  entrypoint: string,
  { commit, target }: BuildOptions,
  files: Readonly<Record<string, string>> = {},
): Promise<Bun.BuildMetafile> {
  const built = await Bun.build({
    entrypoints: [entrypoint],
    root: ROOT,
    files,
    metafile: true,
    compile: {
      outfile,
      ...(target !== undefined && { target: target as Bun.Build.CompileTarget }),
    },
    // Files keep their paths below the root, which is `/$bunfs/root` inside the executable.
    naming: { asset: "[dir]/[name].[ext]" },
    // Not minified, because Elysia reads the source code of handlers to find the parts of a request that they use.
    define: { BUILD_COMMIT: JSON.stringify(commit) },
  });
  if (!built.success || built.metafile === undefined)
    throw new AggregateError(built.logs, `${outfile} was not built.`);
  console.log(`${outfile}: ${(Bun.file(outfile).size / 1e6).toFixed(1)} MB`);
  return built.metafile;
}
